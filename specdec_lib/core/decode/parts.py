"""The models and drafts inside a draft, found by one traversal of its attributes."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from specdec_lib.core.protocols import Draft, HasVocabulary, LanguageModel, Learner
from specdec_lib.core.tree import MatchTable, Shape

PLAIN = (int, float, str, NoneType, MatchTable, Shape)


def parts_of(*parts: object) -> Iterator[LanguageModel | Draft]:
    """Yield the drafts and models in these, in collections and attributes; shared ones again."""
    for part in parts:
        if isinstance(part, PLAIN):  # most attributes; looking for a protocol's members takes long
            continue
        if isinstance(part, LanguageModel):
            yield part
        elif isinstance(part, Draft):
            yield part
            # attributes, maybe in slots, in the order of names
            state: Any = object.__getstate__(part)
            held, slots = state if isinstance(state, tuple) else (state, None)
            named = (held or {}) | (slots or {})
            yield from parts_of(*(named[name] for name in sorted(named)))
        elif isinstance(part, Mapping):
            if isinstance(next(iter(part), None), str):
                yield from parts_of(*part.values())
        elif isinstance(part, list | tuple):
            yield from parts_of(*part)


def models_in(*parts: object) -> dict[str, LanguageModel]:
    """Every model that `parts_of` finds here, by name; raises ValueError if two share a name."""
    found: dict[str, LanguageModel] = {}
    for model in parts_of(*parts):
        if isinstance(model, LanguageModel) and found.setdefault(model.name, model) is not model:
            raise ValueError(f"two models are called {model.name!r}; give them different names")
    return found


def learners_in(*drafts: Draft) -> tuple[Learner, ...]:
    """Every draft that learns, of those that `parts_of` finds here, each once."""
    learners = (part for part in parts_of(*drafts) if isinstance(part, Learner))
    return tuple({id(part): part for part in learners}.values())


def refuse_learners(where: str, *drafts: Draft) -> None:
    """Raises ValueError, saying where, if a draft learns while it decodes."""
    for learner in learners_in(*drafts):
        raise ValueError(
            f"{where} takes no draft that learns, whose rounds depend on what was decoded before:"
            f" {type(learner).__name__}"
        )


def vocabularies_in(*parts: object) -> list[tuple[str, int]]:
    """The name (or type) and vocabulary size of each part that has a fixed vocabulary size."""
    return [
        (part.name if isinstance(part, LanguageModel) else type(part).__name__, part.vocabulary)
        for part in parts_of(*parts)
        if isinstance(part, HasVocabulary) and part.vocabulary is not None
    ]
