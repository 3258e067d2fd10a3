"""A tuned setting as JSON that loads back: draft, sampler and rule, with models by name.

Weights stay where they are: a model is its name, its vocabulary and, where it is known, the folder
or hub name that it came from. To load, give a ladder, or models by name.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import models_in
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Relay, Reviewed
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder, Pair

DRAFTS = (
    *(NoDraft, ChainDraft, TreeDraft, MergedDraft, FirstDraft, NgramDraft, MaxGram),
    *(StagedTree, StagedChain, Reviewed, Relay),
)
KINDS = {kind.__name__: kind for kind in (*DRAFTS, MatchTable, Shape, Sampler)}
RULES = {rule.__name__: rule for rule in (look_up, reject)}
BIGRAMS = "bigrams"  # the name of Max-Gram's table among models given by name
STRICT = ConfigDict(extra="forbid", strict=True)

Parts = Ladder | Pair | Mapping[str, object]


@dataclass(frozen=True, config=STRICT)
class ModelEntry:
    """What the JSON says of a model.

    source    the folder or hub name that it came from; None if that is not known
    """

    kind: str
    vocabulary: int
    source: str | None


@dataclass(frozen=True, config=STRICT)
class ExportedSetting:
    """The fields of the JSON, in order."""

    schema: Literal[1]
    library: str
    name: str
    sampler: dict[str, object]
    rule: Literal["look_up", "reject"]
    draft: dict[str, object]
    models: dict[str, ModelEntry]


def export_setting(setting: Setting | Draft) -> str:
    """The setting as JSON; a bare draft as a greedy setting of the same name as its kind.

    Raises ValueError if it holds a draft or a rule that is not the library's own, or two models of
    one name.
    """
    if not isinstance(setting, Setting):
        setting = Setting(type(setting).__name__, setting)
    rule = next((name for name, rule in RULES.items() if rule is setting.rule), None)
    if rule is None:
        raise ValueError(
            f"the rules that can be exported are {', '.join(RULES)}, got {setting.rule!r}"
        )
    data = ExportedSetting(
        schema=1,
        library=f"specdec {version('specdec')}",
        name=setting.name,
        sampler=_plain(setting.sampler),
        rule=rule,
        draft=_plain(setting.draft),
        models={
            name: ModelEntry(type(one).__name__, one.vocabulary, source_of(one))
            for name, one in models_in(setting.draft).items()
        },
    )
    return json.dumps(asdict(data), indent=2, allow_nan=False) + "\n"


def import_setting(text: str, models: Parts) -> Setting:
    """The setting that `export_setting` wrote, with these models in it.

    models    a ladder or pair, or models and tables by name; `bigrams` is the name of Max-Gram's
              table

    Raises ValueError naming the field if one is unknown, missing or of the wrong type, the schema
    is another, or a model is missing or has another vocabulary.
    """
    data = parse_setting(text)
    known = models if isinstance(models, Mapping) else _named(models, data)
    for name, entry in data.models.items():
        size = getattr(known.get(name), "vocabulary", None)
        if size != entry.vocabulary:
            found = f"one with {size}" if name in known else f"there are {_listed(known)}"
            origin = f"came from {entry.source}" if entry.source else f"was a {entry.kind}"
            raise ValueError(
                f"models.{name}: the setting needs a model {name!r} with {entry.vocabulary}"
                f" tokens, {found}; it {origin}"
            )
    sampler = _build(data.sampler, "sampler", known)
    draft = _build(data.draft, "draft", known)
    if not isinstance(sampler, Sampler) or not isinstance(draft, DRAFTS):
        raise ValueError(f"a setting has a Sampler and a draft, got {sampler!r} and {draft!r}")
    return Setting(data.name, draft, sampler, RULES[data.rule])


def parse_setting(text: str) -> ExportedSetting:
    """The fields of an exported setting, checked but for what is in the draft.

    Raises ValueError as `import_setting` does.
    """
    try:
        return TypeAdapter(ExportedSetting).validate_json(text)
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, one['loc'])) or 'the setting'}: {one['msg']}, got {one['input']!r}"
            for one in error.errors()
        ]
        raise ValueError("; ".join(found)) from error


def source_of(model: object) -> str | None:
    """The folder (relative if in this repository) or hub name of a model; None if unknown."""
    source = getattr(model, "source", None) or getattr(
        getattr(getattr(model, "model", None), "config", None), "name_or_path", None
    )
    if not source:
        return None
    inside = Path(source).is_absolute() and Path(source).is_relative_to(DATA.parent)
    return Path(source).relative_to(DATA.parent).as_posix() if inside else str(source)


def digest(table: np.ndarray) -> str:
    """The SHA-256 of a bigram table."""
    return hashlib.sha256(np.ascontiguousarray(table, np.int64).tobytes()).hexdigest()


def _plain(value: object) -> object:
    """As JSON has it."""
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if type(value) in KINDS.values():
        return {"type": type(value).__name__} | {
            field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.repr
        }
    if isinstance(value, LanguageModel):
        return {"model": value.name}
    if isinstance(value, np.ndarray):
        return {"bigrams": len(value), "sha256": digest(value)}
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    what = "a draft of your own" if isinstance(value, Draft) or is_dataclass(value) else "a value"
    raise ValueError(
        f"{what} cannot be exported, got {type(value).__name__}; the kinds are {', '.join(KINDS)}"
    )


def _build(value: object, where: str, known: Mapping[str, object]) -> object:
    """What a piece of the JSON stands for."""
    if isinstance(value, list):
        return tuple(_build(one, f"{where}[{number}]", known) for number, one in enumerate(value))
    if not isinstance(value, dict):
        return value
    if value.keys() == {"model"}:
        if value["model"] not in known:
            raise ValueError(
                f"{where}: there is no model {value['model']!r}, there are {_listed(known)}"
            )
        return known[value["model"]]
    if value.keys() == {"bigrams", "sha256"}:
        return _bigrams(value, where, known)
    kind = KINDS.get(str(value.get("type")))
    if kind is None:
        raise ValueError(f"{where}.type: one of {', '.join(KINDS)}, got {value.get('type')!r}")
    given = {name: one for name, one in value.items() if name != "type"}
    allowed = [field.name for field in fields(kind) if field.repr]
    if unknown := given.keys() - set(allowed):
        raise ValueError(
            f"{where} has unknown {_listed(sorted(unknown))}; its fields are {_listed(allowed)}"
        )
    made = {name: _build(one, f"{where}.{name}", known) for name, one in given.items()}
    hints = get_type_hints(kind)
    for name, one in made.items():
        if not _fits(one, hints[name]):
            wanted = getattr(hints[name], "__name__", hints[name])
            raise ValueError(f"{where}.{name}: {wanted} is wanted, got {given[name]!r}")
    try:
        return kind(**made)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def _fits(value: object, hint: object) -> bool:
    """Whether a value has the type that a field is declared with."""
    inner = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(
            value, bool
        )
    return value is None if hint is NoneType else isinstance(value, hint)


def _bigrams(about: Mapping[str, object], where: str, known: Mapping[str, object]) -> np.ndarray:
    if about["sha256"] in known:  # the place of a table that is not loaded
        return known[about["sha256"]]
    table = known.get(BIGRAMS)
    if not isinstance(table, np.ndarray) or digest(table) != about["sha256"]:
        found = f"one of {len(table)} tokens" if isinstance(table, np.ndarray) else repr(table)
        raise ValueError(
            f"{where}: the setting needs its table of {about['bigrams']} bigrams as"
            f" models[{BIGRAMS!r}], there is {found}, with another content"
        )
    return table


def _named(models: Ladder | Pair, data: ExportedSetting) -> dict[str, object]:
    parts = [getattr(models, name, None) for name in ("target", "middle", "draft", "katz")]
    found = {part.name: part for part in parts if part is not None}
    if '"bigrams"' in json.dumps(data.draft) and getattr(models, "katz", None) is not None:
        found[BIGRAMS] = models.max_gram.bigrams
    return found


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names)) or "none"
