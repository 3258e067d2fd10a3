"""The models and drafts inside a draft, found by one traversal of its attributes."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from specdec_lib.core.protocols import Draft, HasVocabulary, LanguageModel


def parts_of(*parts: object) -> Iterator[LanguageModel | Draft]:
    """Every draft and model reachable from `parts` through the attributes of drafts.

    Attributes may hold them in lists, tuples and dictionaries with names as keys. A part that is
    reachable twice comes twice.
    """
    for part in parts:
        if isinstance(part, LanguageModel):
            yield part
        elif isinstance(part, Draft):
            yield part
            yield from parts_of(*_attributes(part))
        elif isinstance(part, Mapping):
            if isinstance(next(iter(part), None), str):
                yield from parts_of(*part.values())
        elif isinstance(part, list | tuple):
            yield from parts_of(*(one for one in part if not isinstance(one, int | float | str)))


def _attributes(draft: Draft) -> list[object]:
    """The values of a draft's attributes in the order of their names.

    They are its dataclass fields, if it has any, what its dictionary holds, and its slots.
    """
    slots = [vars(kind).get("__slots__", ()) for kind in type(draft).__mro__]
    names = {name for its in slots for name in ([its] if isinstance(its, str) else its)}
    names |= {field.name for field in (fields(draft) if is_dataclass(draft) else ())}
    names |= set(getattr(draft, "__dict__", ()))
    return [getattr(draft, name, None) for name in sorted(names)]  # a slot may be empty


def models_in(*parts: object) -> dict[str, LanguageModel]:
    """Every model among `parts_of` these, by name.

    Raises ValueError if two different models share a name, because their records would mix.
    """
    found: dict[str, LanguageModel] = {}
    for model in parts_of(*parts):
        if isinstance(model, LanguageModel) and found.setdefault(model.name, model) is not model:
            raise ValueError(f"two models are called {model.name!r}; give them different names")
    return found


def vocabularies_in(*parts: object) -> list[tuple[str, int]]:
    """The name and the number of tokens of every model and table among `parts_of` these.

    A model has its own name, a draft that of its type. Drafts that fit any vocabulary are left out.
    """
    return [
        (part.name if isinstance(part, LanguageModel) else type(part).__name__, part.vocabulary)
        for part in parts_of(*parts)
        if isinstance(part, HasVocabulary) and part.vocabulary is not None
    ]
