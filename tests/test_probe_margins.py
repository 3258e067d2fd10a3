"""The probe at load tells rounding from a wrong mask on the real target, in two precisions."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from specdec_lib.models.cached import probing
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import load_model
from specdec_lib.models.prepared import PREPARED, prepared_folder

TRIES = 4  # with other tokens each


class SeesAll(CachedModel):
    """A model behind a mask that hides no branch."""

    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Tensor:
        first = len(self._memory.committed)
        whole = [[*range(first, self._memory.used + row + 1)] for row in range(len(tokens))]
        return super().run_rows(tokens, positions, whole, keep)


@pytest.fixture(scope="module")
def network() -> LlamaForCausalLM:
    if not (prepared_folder() / PREPARED).is_file():
        pytest.skip("the target is not prepared: specdec setup")
    return load_model(prepared_folder(), "target", device="cpu").model


def some_tokens(random: Random, vocabulary: int, special: set[int], count: int) -> tuple[int, ...]:
    return tuple(random.randrange(vocabulary) for _ in range(count))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_is_far_below_what_is_refused_and_a_wrong_mask_above(
    network, dtype, monkeypatch, unchecked
):
    found: list[float] = []
    difference = probing.difference

    def noted(*rows: Tensor) -> float:
        found.append(difference(*rows))
        return found[-1]

    monkeypatch.setattr(probing, "difference", noted)
    network = network.to(dtype)
    for seed in range(TRIES):
        tokens: Callable = partial(some_tokens, Random(seed))
        monkeypatch.setattr(probing, "plain_tokens", tokens)
        probing._probed.discard(network)
        CachedModel(network, "target")
        assert max(found) < probing.tolerance(network) / 2, "room for other models"
        probing._probed.discard(network)
        with pytest.raises(ValueError, match="has other logits behind a cache"):
            SeesAll(network, "target")
        found.clear()
