"""A tuned setting as JSON that loads back: draft, sampler and rule, with models by name."""

import hashlib
import json
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

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
from specdec_lib.drafts.paying import FirstPaying
from specdec_lib.drafts.planned import Planned
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder, Pair
from specdec_lib.workload.prompts import wrong_fields

DRAFTS = (NoDraft, ChainDraft, TreeDraft, StagedTree, StagedChain, Reviewed, Relay, MergedDraft)
DRAFTS += (FirstDraft, FirstPaying, NgramDraft, MaxGram, Planned)
KINDS = {kind.__name__: kind for kind in (*DRAFTS, MatchTable, Shape, Sampler)}
RULES = {rule.__name__: rule for rule in (look_up, reject)}
STRICT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, config=STRICT)
class ModelEntry:
    """What the JSON says of a model; `source` is the folder or hub name that it came from."""

    kind: str
    vocabulary: int
    source: str | None


@dataclass(frozen=True, config=STRICT)
class ExportedSetting:
    """The fields of the JSON, in order."""

    schema: Literal[2]
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
    if setting.rule not in RULES.values():
        raise ValueError(f"a rule that can be exported is {' or '.join(RULES)}, got {setting.rule}")
    data = {
        "schema": 2,
        "library": f"specdec {version('specdec')}",
        "name": setting.name,
        "sampler": setting.sampler,
        "rule": setting.rule_name,
        "draft": setting.draft,
        "models": {
            name: {"kind": type(one).__name__, "vocabulary": one.vocabulary, "source": _source(one)}
            for name, one in models_in(setting.draft).items()
        },
    }
    return json.dumps(data, default=_plain, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> object:
    """What JSON can hold, or parts that it asks about in turn."""
    if type(value) in KINDS.values():
        counted = [one.name for one in fields(value) if one.repr]
        shown = {name: vars(value)[name] for name in counted}
        return {"type": type(value).__name__} | shown
    if isinstance(value, LanguageModel):
        return {"model": value.name}
    if isinstance(value, np.ndarray):
        return {"bigrams": len(value), "sha256": _digest(value)}
    if isinstance(value, np.integer | np.floating):
        return value.item()
    raise ValueError(f"{type(value).__name__} cannot be exported; the kinds are {', '.join(KINDS)}")


def _source(model: LanguageModel) -> str | None:
    """The folder (relative if in this repository) or hub name of a model; None if unknown."""
    network = getattr(model, "model", None)
    source = network.config.name_or_path if isinstance(network, PreTrainedModel) else None
    if not source:
        return None
    inside = Path(source).is_relative_to(REPOSITORY)
    return Path(source).relative_to(REPOSITORY).as_posix() if inside else source


@checked
def import_setting(text: str, models: Ladder | Pair) -> Setting:
    """The setting that `export_setting` wrote, with the models of a ladder or a pair.

    Raises ValueError naming the field if one is unknown, missing or of the wrong type, the schema
    is another, or a model is missing or has another vocabulary.
    """
    data = parse_setting(text)
    known = models_in(*vars(models).values())

    def build(value: dict[str, Any]) -> object:
        if value.keys() == {"model"}:
            return _model(value["model"], data.models, known)
        if value.keys() == {"bigrams", "sha256"}:
            table = models.max_gram.bigrams
            if table is None or _digest(table) != value["sha256"]:
                raise ValueError("bigrams: these models have another table of bigrams, or none")
            return table
        name = value.pop("type", None)
        if str(name) not in KINDS:
            raise ValueError(f"type: one of {', '.join(KINDS)}, got {name!r}")
        kind: Any = KINDS[name]
        return kind(**{key: _tuples(one) for key, one in value.items()})

    try:
        sampler, draft = json.loads(json.dumps([data.sampler, data.draft]), object_hook=build)
    except TypeError as error:  # a field that is unknown, missing or no value at all
        raise ValueError(f"the setting cannot be read: {error}") from error
    return Setting(data.name, draft, sampler, RULES[data.rule])


def _model(
    name: str, entries: dict[str, ModelEntry], known: dict[str, LanguageModel]
) -> LanguageModel:
    """The known model of this name; raises ValueError if its vocabulary is not the entry's."""
    entry = entries.get(name)
    if name in known and entry and known[name].vocabulary == entry.vocabulary:
        return known[name]
    there = [f"{other!r} with {one.vocabulary}" for other, one in known.items()]
    raise ValueError(
        f"the setting needs a model {name!r} with {entry and entry.vocabulary} tokens,"
        f" there are {', '.join(there)}"
    )


def parse_setting(text: str) -> ExportedSetting:
    """The fields of an exported setting, draft and sampler not yet checked; raises ValueError."""
    try:
        return TypeAdapter(ExportedSetting).validate_json(text)
    except ValidationError as error:
        raise ValueError(wrong_fields(error, "the setting")) from error


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _digest(table: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(table, np.int64).tobytes()).hexdigest()
