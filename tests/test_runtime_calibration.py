"""Which runtime is picked, and that the answer is kept."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fakes import Table
from tiny import finished_folder, target_network
from torch import Tensor

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.calibration import REPEATS, ROWS, WARM_UPS, fastest
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import choose_runtime
from specdec_lib.workload import load_ladder


class Timed(Table):
    """A model whose passes take so many seconds by a clock that it moves itself."""

    vocabulary, max_positions = 50, 200

    def __init__(self, name: str, one: float, eight: float, hands: list[float]) -> None:
        self.name, self.hands, self.passes = name, hands, 0
        self.seconds = {1: one, 8: eight}

    def score(self, context: Context, tree: TokenTree) -> Tensor:
        self.passes += 1
        self.hands[0] += self.seconds[len(tree)]
        return torch.zeros(len(tree), self.vocabulary)

    def forget(self) -> None:
        self.forgotten = True


def clocked(**seconds: tuple[float, float]) -> tuple[dict[str, Timed], Callable[[], float]]:
    hands = [0.0]
    models = {name: Timed(name, *both, hands) for name, both in seconds.items()}
    return models, lambda: hands[0]


def test_the_least_time_for_one_row_and_eight_together_wins(tmp_path: Path) -> None:
    models, clock = clocked(steep=(1.0, 9.0), flat=(3.0, 4.0), slow=(5.0, 6.0))
    assert fastest(models, cache=tmp_path / "runtime.json", clock=clock) == "flat"
    passes = 2 * len(ROWS) * (REPEATS + WARM_UPS)
    assert all(model.forgotten and model.passes == passes for model in models.values())


def test_the_answer_is_kept_and_measured_only_once(tmp_path: Path) -> None:
    cache = tmp_path / "folder" / "runtime.json"
    models, clock = clocked(slow=(2.0, 2.0), quick=(1.0, 1.0))
    assert fastest(models, cache=cache, clock=clock) == "quick"
    again, clock = clocked(slow=(1.0, 1.0), quick=(2.0, 2.0))
    assert fastest(again, cache=cache, clock=clock) == "quick" and not again["quick"].passes
    assert fastest(again, identity=("another",), cache=cache, clock=clock) == "slow"
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize("text", ["[1]", '{"a": "no such runtime"}', "\x00"])
def test_a_damaged_cache_is_measured_anew(tmp_path: Path, text: str) -> None:
    cache = tmp_path / "runtime.json"
    cache.write_text(text)
    models, clock = clocked(slow=(2.0, 2.0), quick=(1.0, 1.0))
    assert fastest(models, cache=cache, clock=clock) == "quick"
    assert "quick" in json.loads(cache.read_text()).values()


def test_a_model_gives_the_same_tokens_and_a_stored_choice_is_taken(tmp_path: Path) -> None:
    reference, cache = CachedModel(target_network(), "draft"), tmp_path / "runtime.json"
    context = Context.of([1, 2, 3])
    tree = TokenTree.rooted(context)
    found = choose_runtime(reference, cache=cache)
    assert (found.score(context, tree) - reference.score(context, tree)).abs().max() < 1e-4
    for stored, made in (("reference", CachedModel), ("fast, 1 thread", FastModel)):
        cache.write_text(json.dumps(dict.fromkeys(json.loads(cache.read_text()), stored)))
        chosen = choose_runtime(reference, cache=cache)
        assert isinstance(chosen, made) and chosen.runtime.startswith(stored.partition(",")[0])


def test_the_ladder_can_be_loaded_on_what_is_fastest(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    folder = finished_folder(tmp_path)
    load_ladder(folder=folder, device="cpu", runtime="auto")
    assert len(json.loads((tmp_path / "runtime.json").read_text())) == 3
    doubled = load_ladder(folder=folder, device="cpu", dtype="float64", runtime="auto").target
    assert doubled.runtime == "reference: Hugging Face in float64 on cpu"
