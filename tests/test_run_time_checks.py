"""The tests' own checks of shapes and types: on in a test's first calls, and off where asked."""

import jaxtyping
import numpy as np
import pytest
from conftest import CHECKED

from specdec_lib.core.chance.sampler import largest

WHOLE = np.array([3, 1])  # where real numbers are asked for


def test_a_wrong_type_is_caught_in_the_first_calls_of_a_test():
    for values in (WHOLE, np.ones((2, 2))):
        with pytest.raises(jaxtyping.TypeCheckError, match="largest"):
            largest(values, 1)
    for _ in range(CHECKED):
        largest(np.array([3.0, 1.0]), 1)
    assert largest(WHOLE, 1) == ([0], [3.0])


def test_a_later_test_is_checked_again():
    with pytest.raises(jaxtyping.TypeCheckError, match="largest"):
        largest(WHOLE, 1)


def test_an_unchecked_test_is_not_checked(unchecked):
    assert largest(WHOLE, 1) == ([0], [3.0])
