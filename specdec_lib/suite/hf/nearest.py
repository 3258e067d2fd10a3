"""The nearest draft without stages and cascades: one guesser, a shape, and what was lost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.drafts.trees.slots import best_slots

WINDOW = 10  # longest ending that is looked for; Max-Gram has no limit
DRAWN = ("iid", "distinct")  # siblings that are drawn by chance
LOST = {  # by draft, whose fields stand in braces
    "NgramDraft": "the n-gram table with its back-off and its tree: the text is copied",
    "MaxGram": "the bigram table, if any, that fills up the chain",
    "TreeDraft": "the shape of the tree, siblings {siblings}",
    "StagedTree": "the scout, which saves passes of the draft",
    "StagedChain": "the scout, which saves passes of the draft",
    "Reviewed": "the review: the reviewer guesses token by token, with a pass for each (lenience"
    " {lenience}, {width} children per position)",
    "Relay": "the horizontal cascade of lengths {lengths}: left is the first that is not 0",
    "Planned": "the choice of a draft by the situation",
    "FirstDraft": "taking turns with the other drafts",
    "MergedDraft": "the other drafts' guesses in the same pass",
}


@dataclass(frozen=True)
class Nearest:
    """A plain draft.

    model     its name; None if guesses are copied from the text
    length    guesses of the chain, or of a tree's first-ranked path; 0 without speculation
    guesses   of the tree, whose broadest node has `width` children
    window    longest ending that is looked for; `least` the shortest
    lost      what the plain draft does not do
    """

    model: str | None = None
    length: int = 0
    guesses: int = 0
    width: int = 1
    window: int = WINDOW
    least: int = 1
    drawn: bool = False
    floor: float = 0.0
    lost: tuple[str, ...] = ()


def nearest(draft: Mapping) -> Nearest:
    """The nearest plain draft to an exported one: of several drafts the first with a model, of a
    planned one the usual part; a reviewer guesses itself.  Raises ValueError for any other mapping.
    """
    match draft:
        case {"type": "NoDraft"}:
            return Nearest()
        case {"type": "ChainDraft", "model": {"model": name}, "length": int(length)}:
            return _chain(name, length, draft)
        case {"type": "TreeDraft", "model": {"model": name}}:
            length, width, guesses = _shape(draft)
            found = replace(_chain(name, length, draft), width=width, guesses=guesses)
        case {"type": "MaxGram", "length": int(length), "least": int(least)}:
            found = Nearest(None, length, length, window=max(least, WINDOW), least=least)
        case {"type": "NgramDraft", "depth": int(depth), "widths": widths}:
            length = len(widths or range(depth))
            found = Nearest(None, length, length)
        case {"type": "StagedTree", "draft": inner}:
            found = nearest(inner)
        case {"type": "StagedChain", "model": {"model": name}, "length": int(length)}:
            found = _chain(name, length, draft)
        case {"type": "Reviewed", "reviewer": {"model": name}, "draft": inner}:
            found = _chain(name, nearest(inner).length + 1, draft)
        case {"type": "Relay", "parts": list(parts), "lengths": list(lengths)}:
            length, part = next(one for one in zip(lengths, parts, strict=True) if one[0])
            found = replace(nearest(part), length=length, guesses=length, width=1)
        case {"type": "Planned", "parts": list(parts), "tokens": tokens, "seconds": seconds}:
            pairs = zip(tokens, seconds, strict=True)  # in the first situation nothing is copied
            worth = [given[0] - draft["price"] * took[0] for given, took in pairs]
            found = nearest(parts[worth.index(max(worth))])
        case {"type": "FirstDraft" | "MergedDraft", "parts": list(parts)}:
            drafts = [nearest(part) for part in parts]
            found = next((one for one in drafts if one.model is not None), drafts[0])
        case _:
            raise ValueError(f"no draft of the library's with all its fields: {draft}")
    return replace(found, lost=(LOST[draft["type"]].format(**draft), *found.lost))


def _chain(name: str, length: int, draft: Mapping) -> Nearest:
    drawn = draft.get("siblings") in DRAWN
    return Nearest(name, length, length, drawn=drawn, floor=draft.get("floor", 0.0))


def _shape(draft: Mapping) -> tuple[int, int, int]:
    """Depth of the first-ranked path, children of the broadest node, guesses in all."""
    match draft:
        case {"widths": list(widths)}:
            return len(widths), max(widths), sum(accumulate(widths, mul))
        case {"shape": {"parents": list(parents)}}:
            shape = Shape(tuple(parents))
            return shape.depth, max(map(parents.count, parents)), shape.guesses
        case {"budget": int(budget), "depth": int(depth), "floor": floor, "match": match}:
            table = MatchTable(tuple(match["rates"]))  # whatever the gaps
            slots = best_slots(table, budget, depth, floor)
            ends = (at for at in range(depth) if (0,) * at not in slots)
            return max(1, next(ends, depth)), max(slots.values(), default=1), budget
    raise ValueError(f"a TreeDraft has widths, a shape or a budget, got {draft}")
