"""`specdec hf`: the closest flags of other engines for a setting, and what is lost. A stage or a
cascade becomes the nearest draft without: one guesser and a shape, or a model beside copies for an
engine that takes both; engines.toml has the engines.
"""

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Any

from specdec_lib.core.chance import Sampler
from specdec_lib.core.kinds import checked
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.drafts.trees.slots import best_slots
from specdec_lib.measure.settings.exported import ExportedSetting, export_setting, parse_setting
from specdec_lib.measure.settings.setting import Setting

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
    "FirstPaying": "the off-switch: drafts guess where they do not pay, too",
}
ALONE = {  # where an engine has one guesser
    "FirstDraft": "taking turns with the other drafts",
    "FirstPaying": "taking turns with the other drafts",
    "MergedDraft": "the other drafts' guesses in the same pass",
}
TRIED_FIRST = "copies are tried first, and the model guesses where there are none"


@dataclass(frozen=True)
class Flags:
    """The closest flags of one engine.

    engine     its name
    line       the flags, or lines of Python, to paste; "" for plain decoding
    lost       what the setting does and these flags do not
    limits     what this engine does not do, or does otherwise, in any setting
    version    of the engine, with which the names of the flags were checked
    """

    engine: str
    line: str
    lost: tuple[str, ...]
    limits: str
    version: str


@dataclass(frozen=True)
class Nearest:
    """A draft without stages and cascades.

    model      its name; None if guesses are copied from the text
    length     guesses of the chain, or of a tree's first-ranked path; 0 without speculation
    guesses    of the whole tree
    width      children of the tree's broadest node
    window     the longest ending that is looked for in the text, tokens
    least      the shortest one
    drawn      whether siblings are drawn by chance
    floor      the least score of a guess
    lost       what this draft does not do, and the exported one does
    copies     the copying draft that guesses beside the model; None if there is none
    alone      what is lost besides where an engine has one guesser, and so no `copies`
    beside     what is lost besides where an engine tries copies first, then the model
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
    copies: "Nearest | None" = None
    alone: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def print_flags(file: Path) -> None:
    """Print the flags of every engine for the setting that a file exports; raises ValueError if it
    holds none.
    """
    try:
        data = parse_setting(file.read_text(encoding="utf-8"))
        found = _flags(data)
    except (ValueError, TypeError, LookupError, StopIteration) as error:
        raise ValueError(f"{file}: {error}") from error
    print(f"sampling of each request: {_sampling(data.sampler)}")
    everywhere = [what for what in found[0].lost if all(what in one.lost for one in found)]
    for what in everywhere or ["nothing"]:
        print(f"lost: {what}")
    for one in found:
        line = one.line or "(no speculation)"
        print("\n  ".join([f"{one.engine} {one.version}", *line.splitlines()]))
        for what in one.lost:
            if what not in everywhere:
                print(f"  lost: {what}")
        print(f"  not here: {one.limits}")


@checked
def flags(setting: Setting) -> tuple[Flags, ...]:
    """For each engine; raises ValueError if the draft is not the library's own."""
    return _flags(parse_setting(export_setting(setting)))


def _flags(data: ExportedSetting) -> tuple[Flags, ...]:
    draft = nearest(data.draft)
    if draft.model not in (None, *data.models):
        raise ValueError(f"models has no {draft.model!r}")
    fields: dict[str, Any] = {name: one for name, one in data.sampler.items() if name != "type"}
    sampler = Sampler(**fields)  # which checks them
    for one in (draft, draft.copies or draft):
        if not 0 <= one.length <= one.guesses:
            raise ValueError(f"a draft has 0 guesses or more, got {one.length} of {one.guesses}")
    sampled = draft.length > 0 and sampler.temperature > 0
    values = _values(draft, data, sampled)
    engines = tomllib.loads(ENGINES.read_text(encoding="utf-8"))
    return tuple(
        _engine_flags(name, engine, draft, values, sampled) for name, engine in engines.items()
    )


def _values(draft: Nearest, data: ExportedSetting, sampled: bool) -> dict[str, object]:
    """What stands in braces in engines.toml."""
    entry = None if draft.model is None else data.models.get(draft.model)
    path = f"PATH_OF_{draft.model}" if entry is None or not entry.source else entry.source
    encodes = entry is not None and entry.kind == "Seq2SeqModel"
    values = {
        "path": path,
        "quoted": shlex.quote(path),
        "escaped": json.dumps(path).replace("'", r"'\''"),
        "loader": "AutoModelForSeq2SeqLM" if encodes else "AutoModelForCausalLM",
        "rows": draft.guesses + 1,
        "reach": draft.window + draft.length,
        "drawing": "probabilistic" if draft.drawn and sampled else "greedy",
        "sampling": _sampling(data.sampler),
    }
    copied = {f"copied_{name}": one for name, one in vars(draft.copies or draft).items()}
    return vars(draft) | copied | values


def _engine_flags(
    name: str, engine: Mapping[str, str], draft: Nearest, values: Mapping, sampled: bool
) -> Flags:
    """The flags of one engine: of model and copies if it takes both, else of the model alone."""
    which = "copies" if draft.model is None else "model"
    more = draft.alone
    if draft.copies is not None and "both" in engine:
        which = "both"
        more = draft.beside
    line = engine[which].format(**values) if draft.length else ""
    lost = (*more, *draft.lost, RANKED) if sampled else (*more, *draft.lost)
    return Flags(name, line, lost, engine["limits"].format(**values), engine["version"])


def _sampling(sampler: Mapping[str, object]) -> str:
    if not sampler["temperature"]:
        return "do_sample=False"
    top_k = sampler["top_k"] or 0
    top_p = sampler["top_p"]
    return f"temperature={sampler['temperature']!r}, top_k={top_k}, do_sample=True, top_p={top_p!r}"


def nearest(draft: Mapping) -> Nearest:
    """The nearest plain draft to an exported one: of several drafts the first with a model, beside
    the first that copies; of a planned one the usual part; a reviewer guesses itself.  Raises
    ValueError for any other mapping.
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
        case {"type": "FirstPaying", "parts": list(parts)}:
            found = _of_several(draft, [nearest(part) for part in parts])
        case {"type": "FirstDraft" | "MergedDraft", "parts": list(parts)}:
            return _of_several(draft, [nearest(part) for part in parts])
        case _:
            raise ValueError(f"no draft of the library's with all its fields: {draft}")
    return replace(found, lost=(LOST[draft["type"]].format(**draft), *found.lost))


def _of_several(draft: Mapping, parts: Sequence[Nearest]) -> Nearest:
    """The first part with a model, beside the first that copies; else the first part."""
    modelled = [part for part in parts if part.model is not None]
    copying = [part for part in parts if part.model is None and part.length > 0]
    alone = ALONE[draft["type"]]
    if not modelled or not (copying or modelled[0].copies):
        found = modelled[0] if modelled else parts[0]
        return replace(found, lost=(alone, *found.lost), alone=(), beside=(), copies=None)
    found = modelled[0]
    copies = copying[0] if copying else found.copies
    beside = [f"the draft {part.model}" for part in modelled[1:]]
    if draft["type"] == "MergedDraft":
        beside.append(f"guesses of both in one pass: {TRIED_FIRST}")
    elif copying and parts.index(found) < parts.index(copies):
        beside.append(f"the order of the drafts: {TRIED_FIRST}")
    elif draft.get("least", 1) > 1:
        beside.append(f"that copies of fewer than {draft['least']} tokens are passed over")
    return replace(
        found,
        copies=copies,
        alone=(alone, *found.alone),
        beside=(*beside, *(copies.lost if copies else ()), *found.beside),
    )


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
            slots = best_slots(table, budget, depth, floor, draft.get("deepen", 0.0))
            ends = (at for at in range(depth) if (0,) * at not in slots)
            return max(1, next(ends, depth)), max(slots.values(), default=1), budget
    raise ValueError(f"a TreeDraft has widths, a shape or a budget, got {draft}")
