"""A tuned setting as JSON that loads back: draft, sampler and rule, with models by name."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import models_in
from specdec_lib.core.files import REPOSITORY
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Relay, Reviewed
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.planned import Planned
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder, Pair
from specdec_lib.workload.jsonl import wrong_fields

DRAFTS = (
    *(NoDraft, ChainDraft, TreeDraft, MergedDraft, FirstDraft, NgramDraft, MaxGram),
    *(StagedTree, StagedChain, Reviewed, Relay, Planned),
)
KINDS = {kind.__name__: kind for kind in (*DRAFTS, MatchTable, Shape, Sampler)}
RULES = {rule.__name__: rule for rule in (look_up, reject)}
STRICT = ConfigDict(extra="forbid", strict=True)

Find = Callable[[Mapping[str, object]], object]
"""From what the JSON says of a model or a table of bigrams to that model or table."""


@runtime_checkable
class HasNetwork(Protocol):
    """A language model that runs a Hugging Face network."""

    model: PreTrainedModel


@dataclass(frozen=True, config=STRICT)
class ModelEntry:
    """What the JSON says of a model; `source` is the folder or hub name that it came from."""

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


@checked
def export_setting(setting: Setting) -> str:
    """The setting as JSON.  Raises ValueError if it holds a draft or a rule that is not the
    library's own, or two models of one name.
    """
    return json.dumps(asdict(exported(setting)), indent=2, allow_nan=False) + "\n"


def exported(setting: Setting) -> ExportedSetting:
    """The fields of the JSON; raises ValueError as `export_setting` does."""
    if setting.rule not in RULES.values():
        known = ", ".join(RULES)
        raise ValueError(f"the rules that can be exported are {known}, got {setting.rule!r}")
    return ExportedSetting(
        schema=1,
        library=f"specdec {version('specdec')}",
        name=setting.name,
        sampler=_plain(setting.sampler),
        rule=setting.rule.__name__,
        draft=_plain(setting.draft),
        models={
            name: ModelEntry(type(one).__name__, one.vocabulary, _source(one))
            for name, one in models_in(setting.draft).items()
        },
    )


def _source(model: LanguageModel) -> str | None:
    """The folder (relative if in this repository) or hub name of a model; None if unknown."""
    source = model.model.config.name_or_path if isinstance(model, HasNetwork) else ""
    inside = Path(source).is_absolute() and Path(source).is_relative_to(REPOSITORY)
    return Path(source).relative_to(REPOSITORY).as_posix() if inside else source or None


@checked
def import_setting(text: str, models: Ladder | Pair) -> Setting:
    """The setting that `export_setting` wrote, with the models of a ladder or a pair.

    Raises ValueError naming the field if one is unknown, missing or of the wrong type, the schema
    is another, or a model is missing or has another vocabulary.
    """
    data = parse_setting(text)
    known = models_in(*vars(models).values())

    def find(named: Mapping[str, object]) -> object:
        if "model" not in named:
            table = models.max_gram.bigrams
            if table is None or _digest(table) != named["sha256"]:
                raise ValueError("these models have another table of bigrams, or none")
            return table
        name, entry = named["model"], data.models.get(named["model"])
        if name in known and entry and known[name].vocabulary == entry.vocabulary:
            return known[name]
        there = ", ".join(f"{name!r} with {one.vocabulary}" for name, one in known.items())
        needed = f"a model {name!r} with {entry and entry.vocabulary} tokens"
        raise ValueError(f"the setting needs {needed}, there are {there}")

    sampler, draft = _build(data.sampler, "sampler", find), _build(data.draft, "draft", find)
    if not isinstance(sampler, Sampler) or not isinstance(draft, DRAFTS):
        raise ValueError(f"a setting has a Sampler and a draft, got {sampler!r} and {draft!r}")
    return Setting(data.name, draft, sampler, RULES[data.rule])


def parse_setting(text: str) -> ExportedSetting:
    """The fields of an exported setting, draft and sampler not yet checked; raises ValueError."""
    try:
        return TypeAdapter(ExportedSetting).validate_json(text)
    except ValidationError as error:
        raise ValueError(wrong_fields(error, "the setting")) from error


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if type(value) in KINDS.values():
        shown = {one.name: _plain(vars(value)[one.name]) for one in fields(value) if one.repr}
        return {"type": type(value).__name__} | shown
    if isinstance(value, LanguageModel):
        return {"model": value.name}
    if isinstance(value, np.ndarray):
        return {"bigrams": len(value), "sha256": _digest(value)}
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{type(value).__name__} cannot be exported; the kinds are {', '.join(KINDS)}")


def _build(value: object, where: str, find: Find) -> object:
    if isinstance(value, list):
        return tuple(_build(one, f"{where}[{number}]", find) for number, one in enumerate(value))
    if not isinstance(value, dict):
        return value
    named = value.keys() in ({"model"}, {"bigrams", "sha256"})
    made = {} if named else {key: _build(one, f"{where}.{key}", find) for key, one in value.items()}
    kind = KINDS.get(str(made.pop("type", None)))
    if kind is None and not named:
        raise ValueError(f"{where}.type: one of {', '.join(KINDS)}, got {value.get('type')!r}")
    try:
        return find(value) if named else kind(**made)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def _digest(table: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(table, np.int64).tobytes()).hexdigest()
