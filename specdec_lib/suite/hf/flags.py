"""`specdec hf`: the closest flags of other engines for a setting, and what is lost. A stage or a
cascade becomes the nearest draft without: one guesser and a shape; engines.toml has the engines.
"""

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from pathlib import Path

from specdec_lib.core.chance import Sampler
from specdec_lib.core.kinds import checked
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.drafts.trees.slots import best_slots
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.suite.hf.settings import ExportedSetting, export_setting, parse_setting

ENGINES = Path(__file__).with_name("engines.toml")
RANKED = "shared noise and match tables: the draft's probabilities alone rank its guesses"
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
class Flags:
    """How one engine comes closest."""

    engine: str
    line: str  # to paste
    lost: tuple[str, ...]  # what the setting does and no engine does
    limits: str  # what this engine does not do or does otherwise, in any setting


@dataclass(frozen=True)
class Nearest:
    """A draft without stages and cascades."""

    model: str | None = None  # its name; None if guesses are copied from the text
    length: int = 0  # of the chain, or of a tree's first-ranked path; 0 without speculation
    guesses: int = 0  # of the tree, whose broadest node has `width` children
    width: int = 1
    window: int = WINDOW  # longest ending that is looked for; `least` the shortest
    least: int = 1
    drawn: bool = False
    floor: float = 0.0
    lost: tuple[str, ...] = ()  # what this draft does not do


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the flags of every engine; raises ValueError if the file is no exported setting."""
    parser = Parser("hf", "translate an exported setting into other engines' flags")
    parser.add_argument("file", type=Path, help="JSON that `export_setting` wrote")
    given = parser.parse_args(arguments)
    try:
        data = parse_setting(given.file.read_text(encoding="utf-8"))
        found = _flags(data)
    except (OSError, ValueError, TypeError, LookupError, StopIteration) as error:
        raise ValueError(f"{given.file}: {error}") from error
    print(f"sampling of each request: {_sampling(data.sampler)}")
    print("\n".join(f"lost: {what}" for what in found[0].lost) or "lost: nothing")
    for one in found:
        print("\n  ".join((one.engine, *(one.line or "(no speculation)").splitlines())))
        print(f"  not here: {one.limits}")


@checked
def flags(setting: Setting) -> tuple[Flags, ...]:
    """For each engine; raises ValueError if the draft is not the library's own."""
    return _flags(parse_setting(export_setting(setting)))


def _flags(data: ExportedSetting) -> tuple[Flags, ...]:
    plain = nearest(data.draft)
    if plain.model not in (None, *data.models):
        raise ValueError(f"models has no {plain.model!r}")
    Sampler(**{name: one for name, one in data.sampler.items() if name != "type"})  # checks them
    if not 0 <= plain.length <= plain.guesses:
        raise ValueError(f"a draft has 0 guesses or more, got {plain.length} of {plain.guesses}")
    entry, sampled = data.models.get(plain.model), plain.length and data.sampler["temperature"]
    path = (entry and entry.source) or f"PATH_OF_{plain.model}"
    loader = "Seq2SeqLM" if entry and entry.kind == "Seq2SeqModel" else "CausalLM"
    values = vars(plain) | {
        "path": path,
        "quoted": shlex.quote(path),
        "escaped": json.dumps(path).replace("'", r"'\''"),
        "loader": f"AutoModelFor{loader}",
        "rows": plain.guesses + 1,
        "drawing": "probabilistic" if plain.drawn and sampled else "greedy",
        "sampling": _sampling(data.sampler),
    }
    lost = (*plain.lost, RANKED) if sampled else plain.lost
    which = "copies" if plain.model is None else "model"
    found = []
    for name, engine in tomllib.loads(ENGINES.read_text(encoding="utf-8")).items():
        line = engine[which].format(**values) if plain.length else ""
        found.append(Flags(name, line, lost, engine["limits"].format(**values)))
    return tuple(found)


def _sampling(sampler: Mapping[str, object]) -> str:
    temperature, top_k, top_p = (sampler[name] for name in ("temperature", "top_k", "top_p"))
    if not temperature:
        return "do_sample=False"
    return f"temperature={temperature!r}, top_k={top_k or 0}, do_sample=True, top_p={top_p!r}"


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
