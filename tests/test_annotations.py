"""What each annotation allows, written down by hand: the oracle of the fuzzed calls rests on it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch

from specdec_lib.core.kinds import Within, checked, is_a

Few = Annotated[int, Within(1, 8)]
Share = Annotated[float, Within(0, 1)]
ARRAY = np.array([1, 2])

ALLOWED = [
    (int, 4, True),
    (int, np.int64(4), True),
    (int, -1, True),
    (int, 4.0, False),
    (int, "4", False),
    (int, True, False),
    (int, None, False),
    (Integral, np.int32(4), True),
    (Integral, 0.5, False),
    (float, 0.5, True),
    (float, 1, True),
    (float, np.float32(0.5), True),
    (float, float("nan"), True),
    (float, "0.5", False),
    (float, np.bool_(True), False),
    (Real, 2j, False),
    (bool, True, True),
    (bool, 1, False),
    (str, "", True),
    (str, b"a", False),
    (int | None, None, True),
    (int | None, 0, True),
    (int | None, "None", False),
    (Few, 1, True),
    (Few, 8, True),
    (Few, 0, False),
    (Few, 9, False),
    (Few, True, False),
    (Share, 1, True),
    (Share, 1.01, False),
    (Share, float("nan"), False),
    (Literal["ranked", "iid"], "iid", True),
    (Literal["ranked", "iid"], "Iid", False),
    (Literal["ranked", "iid"], None, False),
    (tuple[int, ...], (1, 2), True),
    (tuple[int, ...], [1, 2], True),
    (tuple[int, ...], (), True),
    (tuple[int, ...], ARRAY, True),
    (tuple[int, ...], torch.tensor([1, 2]), True),
    (tuple[int, ...], "12", False),
    (tuple[int, ...], {1, 2}, False),
    (tuple[int, ...], (1, "2"), False),
    (tuple[int, str], (1, "2"), True),
    (tuple[int, str], (1, "2", 3), False),
    (Sequence[Sequence[int]], [[1], (2, 3)], True),
    (Sequence[Sequence[int]], [1, 2], False),
    (Sequence[int], iter([1]), False),
    (Iterable[int], {1, 2}, True),
    (Iterable[int], iter(["not looked at"]), True),
    (Mapping[str, float], {"a": 1}, True),
    (Mapping[str, float], {"a": "1"}, False),
    (Mapping[str, float], {1: 1.0}, False),
    (Mapping[str, float], [("a", 1.0)], False),
    (Callable, len, True),
    (Callable, "len", False),
]


def shown(value: object) -> str:
    """A name without an address, which would be another in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize("annotation, value, allowed", ALLOWED, ids=shown)
def test_a_value_is_of_a_kind_as_written_here(annotation, value, allowed):
    assert is_a(value, annotation) is allowed

    def public(value):
        return "taken"

    public.__annotations__["value"] = annotation
    if allowed:
        assert checked(public)(value) == "taken"
    else:
        with pytest.raises(ValueError, match="value of public must be"):
            checked(public)(value)


def test_what_has_no_annotation_or_any_is_not_checked():
    def public(value, other: Any, named: "int" = 0):
        return value, other, named

    assert checked(public)(object, 2j, named="one") == (object, 2j, "one")
