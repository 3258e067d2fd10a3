"""The kinds of values that public functions take, checked where they are called."""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from torch import Tensor

Public = TypeVar("Public", bound=Callable)
WIDER = {int: Integral, float: Real}  # NumPy's numbers are numbers
WORDS = {Integral: "a whole number", int: "a whole number", Real: "a number", float: "a number"}
WORDS |= {str: "text", types.NoneType: "None"}
LONGEST = 60  # characters of a value in a message


def checked(public: Public) -> Public:
    """The same function or class, which raises ValueError for a value of another kind than its
    annotation names, before it does anything: what it got and what it takes.

    Lists and arrays do for tuples. An annotation that is a string is not checked: it names a
    package that is not imported.
    """
    function = public.__init__ if isinstance(public, type) else public
    parameters = inspect.signature(function).parameters.values()
    hints = {
        one.name: one.annotation
        for one in parameters
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and _is_known(one.annotation)
    }
    order = [one.name for one in parameters]

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        for name, value in (*zip(order, given, strict=False), *named.items()):
            if name in hints and not is_a(value, hints[name]):
                wanted = f"{name} of {public.__name__} must be {in_words(hints[name])}"
                raise ValueError(f"{wanted}, got {shown(value)}")
        return function(*given, **named)

    if not isinstance(public, type):
        return called
    public.__init__ = called
    return public


def is_a(value: object, hint: object) -> bool:
    """Whether a value is of the kind that an annotation names, every element of a sequence and
    every entry of a mapping included.
    """
    if _is_union(hint):
        return any(is_a(value, one) for one in get_args(hint))
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Literal:
        return value in parts
    if kind is Mapping:
        return isinstance(value, Mapping) and all(
            is_a(key, parts[0]) and is_a(entry, parts[1]) for key, entry in value.items()
        )
    if isinstance(kind, type) and issubclass(kind, Iterable):
        return _holds(value, kind, parts)
    leaf = WIDER.get(hint, hint) if kind is None else kind
    if leaf in (Integral, Real) and isinstance(value, bool | np.bool_):
        return False  # Python takes True for 1
    return isinstance(value, leaf)


def _holds(value: object, kind: type, parts: tuple) -> bool:
    """Whether a value is such a collection and its elements are of their kinds; an iterator's are
    not looked at.
    """
    if isinstance(value, np.ndarray | Tensor):
        value = value.tolist()
    does = (list, tuple) if kind is tuple else kind
    if not isinstance(value, does) or isinstance(value, str | bytes):
        return False
    if isinstance(value, Iterator):
        return True
    each = parts if kind is tuple and parts[-1] is not ... else parts[:1] * len(value)
    return len(each) == len(value) and all(map(is_a, value, each))


def in_words(hint: object) -> str:
    """What an annotation allows, in words."""
    if _is_union(hint):
        return " or ".join(map(in_words, get_args(hint)))
    if get_origin(hint) is None:
        return WORDS.get(hint) or f"a {hint.__name__}"
    return re.sub(r"[\w.]+\.(?=\w)", "", str(hint))


def shown(value: object) -> str:
    """A value in a message: its beginning, on one line."""
    return " ".join(repr(value).split())[:LONGEST]


def _is_known(hint: object) -> bool:
    return hint not in (inspect.Parameter.empty, Any) and not isinstance(hint, str | TypeVar)


def _is_union(hint: object) -> bool:
    return isinstance(hint, types.UnionType) or get_origin(hint) is Union
