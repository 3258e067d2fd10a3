"""The kinds and limits of values that public functions take, checked where they are called."""

import inspect
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import numpy as np
from torch import Tensor

Public = TypeVar("Public", bound=Callable[..., Any] | type)
Value = TypeVar("Value")
UNIONS = (Union, types.UnionType)
WIDER = {int: Integral, float: Real}  # NumPy's numbers are numbers
WORDS = {  # one and many
    **dict.fromkeys((Integral, int), ("a whole number", "whole numbers")),
    **dict.fromkeys((Real, float), ("a number", "numbers")),
    str: ("text", "texts"),
    types.NoneType: ("None", "None"),
}
LONGEST = 60  # characters of a value in a message


class Within(NamedTuple):
    """The limits of a number, both allowed, for an annotation: Annotated[int, Within(1, 8)]."""

    least: float
    most: float = math.inf

    def __str__(self) -> str:
        some = f"of {self.least:,} or more"
        return some if self.most == math.inf else f"from {self.least:,} to {self.most:,}"


def checked(public: Public) -> Public:
    """Decorator: each call checks every argument against its annotation, and raises ValueError if
    one does not match. Lists and arrays pass for tuples; annotations that are strings are not
    checked. Of a class, the arguments of its constructor are checked.
    """
    function = public.__init__ if isinstance(public, type) else public
    parameters = inspect.signature(function).parameters
    hints = {
        name: one.annotation
        for name, one in parameters.items()
        if one.annotation not in (one.empty, Any) and not isinstance(one.annotation, str | TypeVar)
    }

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        for name, value in (*zip(parameters, given, strict=False), *named.items()):
            if name in hints and not is_a(value, hints[name]):
                raise ValueError(
                    f"{name} of {public.__name__} must be {in_words(hints[name])},"
                    f" got {shown(value)}"
                )
        return function(*given, **named)

    if not isinstance(public, type):
        return cast(Public, called)  # wraps keeps what it takes and returns
    public.__init__ = called
    return cast(Public, public)


def unchecked(kind: type[Value], **fields: object) -> Value:
    """An object of a frozen dataclass with these fields, whose constructor and checks do not run.

    For what is made in every round from values that were checked before: checking them again would
    take longer the longer they are. Every field must be given, its default too.
    """
    made = object.__new__(kind)
    vars(made).update(fields)  # a frozen dataclass cannot be assigned to
    return made


def is_a(value: Any, hint: Any) -> bool:
    """Whether a value, with all elements or entries, is of the kind that an annotation names."""
    kind = get_origin(hint)
    parts = get_args(hint)
    if kind in UNIONS:
        return any(is_a(value, one) for one in parts)
    if kind is Annotated:
        return is_a(value, parts[0]) and bool(parts[1].least <= value <= parts[1].most)
    if kind is Literal:
        return isinstance(value, tuple(map(type, parts))) and value in parts
    if kind is Mapping:
        return isinstance(value, Mapping) and all(
            all(map(is_a, entry, parts)) for entry in value.items()
        )
    if _is_collection(kind):
        return _holds(value, kind, parts)
    if isinstance(hint, TypeVar):
        return is_a(value, hint.__bound__)
    leaf = WIDER.get(hint, hint) if kind is None else kind
    if leaf in (Integral, Real) and isinstance(value, bool | np.bool_):
        return False  # Python takes True for 1
    return isinstance(value, leaf)


def _holds(value: Any, kind: type, parts: tuple) -> bool:
    """Whether a value is such a collection of such elements; an iterator's are not looked at."""
    if isinstance(value, np.ndarray | Tensor):
        value = value.tolist()
    does = (list, tuple) if kind is tuple else kind
    if not isinstance(value, does) or isinstance(value, str | bytes):
        return False
    if isinstance(value, Iterator):
        return True
    each = parts if kind is tuple and parts[-1] is not ... else parts[:1] * len(value)
    return len(each) == len(value) and all(map(is_a, value, each))


def in_words(hint: Any, *, many: bool = False) -> str:
    """What an annotation allows, in words."""
    kind = get_origin(hint)
    parts = get_args(hint)
    if isinstance(hint, TypeVar):
        return in_words(hint.__bound__, many=many)
    if kind in UNIONS:
        return " or ".join(in_words(one, many=many) for one in parts)
    if _is_collection(kind):
        return f"{'sequences' if many else 'a sequence'} of {in_words(parts[0], many=True)}"
    if kind is None:
        return WORDS.get(hint, (f"a {hint.__name__}", f"{hint.__name__}s"))[many]
    if kind is Annotated:
        return f"{in_words(parts[0], many=many)} {parts[1]}"
    if kind is Literal:
        return " or ".join(map(repr, parts))
    return re.sub(r"[\w.]+\.(?=\w)", "", str(hint))


def shown(value: object) -> str:
    """A value in a message: its beginning, on one line."""
    return " ".join(repr(value).split())[:LONGEST]


def _is_collection(kind: Any) -> TypeGuard[type]:
    return isinstance(kind, type) and issubclass(kind, Iterable) and kind is not Mapping
