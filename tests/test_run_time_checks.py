"""What holds in every test: checks of shapes and types in its first calls, none where asked, and
the same random numbers.
"""

import jaxtyping
import numpy as np
import pytest
import torch
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


@pytest.fixture(scope="module")
def drawn_for_all() -> torch.Tensor:
    return torch.rand(3)


@pytest.mark.parametrize("expected", [slice(3, 6), slice(3)], ids=["first", "again"])
def test_random_numbers_begin_anew_before_a_test_and_its_fixtures(drawn_for_all, expected):
    numbers = torch.rand(6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn_for_all, numbers[:3])
    assert torch.equal(torch.rand(3), numbers[expected])
