"""One thread or all: what is possible, what is chosen, and what is measured."""

import pandas as pd
import pytest
import torch
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.measure import thread_counts
from specdec_lib.measure.contenders import Continuation
from specdec_lib.measure.pages import GUIDE
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.race_table import MEASURED
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.target_text import chosen_prompts
from specdec_lib.measure.thread_counts import (
    ENVIRONMENT,
    TREE,
    choose_threads,
    measure_threads,
    possible_threads,
    set_threads,
    threads_beside,
)
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two(monkeypatch):
    """Two cores, and an environment that says nothing."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr(thread_counts, "THREADS", 2)
    torch.set_num_threads(2)


def test_the_environment_decides_where_it_says_a_number(monkeypatch, two):
    assert possible_threads() == [1, 2]
    monkeypatch.setenv(ENVIRONMENT, "2")
    assert possible_threads() == [2]
    assert choose_threads(tiny_ladder(), Sampler(0)) == f"threads: 2 ({ENVIRONMENT} says so)"
    monkeypatch.delenv(ENVIRONMENT)
    torch.set_num_threads(1)
    assert choose_threads(tiny_ladder(), Sampler(0)) == "threads: 1 (there are no more)"


@pytest.mark.parametrize("quicker", [1, 2])
def test_the_number_with_which_a_tree_is_sooner_is_taken(monkeypatch, two, quicker):
    ladder = tiny_ladder()

    def timed(ladder, threads, run, *asked):
        set_threads(ladder, threads)
        return Continuation((), 24, 0.24 if threads == quicker else 0.48, 24)

    monkeypatch.setattr(thread_counts, "_run_on", timed)
    said = choose_threads(ladder, Sampler(0))
    assert said.startswith(f"threads: {quicker}, the quicker for a tree")
    assert f"{quicker}: plain 10.00, tree 10.00 ms" in said and "--threads" in said
    assert torch.get_num_threads() == quicker


def test_a_fast_model_runs_on_as_many_as_it_is_told(two):
    ladder = tiny_ladder(runtime="fast")
    set_threads(ladder, 2)
    assert torch.get_num_threads() == 2 and ladder.target.threads == 1, "a small model takes one"
    with pytest.raises(ValueError, match="1 thread or more, got 0"):
        ladder.target.run_on(0)


def test_both_numbers_race_on_the_same_texts(monkeypatch, two):
    monkeypatch.setattr(thread_counts, "racing_ladder", lambda edition: tiny_ladder())
    monkeypatch.setattr(thread_counts, "EDITIONS", {"exact": "reference"})
    prompts = chosen_prompts("chat", "held-out", 1)
    found = measure_threads(prompts, (1, 2), Quiet(busy=True), tokens=6)
    assert set(found.threads) == {1, 2} and set(found.method) == {AUTOREGRESSIVE, TREE}
    assert found.groupby(["temperature", "method"]).rounds.nunique().max() == 1
    table = threads_beside(found)
    assert (table[table.threads == 1].ratio == 1).all() and len(table) == 8


def test_the_ratio_is_of_one_thread():
    rows = [
        {"prompt": f"p{number}", "threads": count, "tokens": 10, "seconds": number / count}
        for number in range(1, 12)
        for count in (1, 2)
    ]
    names = {"edition": "exact", "temperature": 0.0, "top_k": 0, "method": TREE}
    table = threads_beside(pd.DataFrame(rows).assign(**names)).set_index("threads")
    assert table.loc[2, ["ratio", "ratio_low", "ratio_high"]].tolist() == [2, 2, 2]


def test_one_thread_is_among_those_compared():
    with pytest.raises(ValueError, match=r"compared with one thread, got \(2,\)"):
        run("measure", "threads", "--counts", "2")


def test_what_the_guide_says_of_a_second_thread_is_measured():
    stored = pd.read_csv(MEASURED / "threads_amd-epyc-zen-5-avx512-bf16.csv")
    table = threads_beside(stored).query("threads == 2")
    assert stored.prompt.nunique() == 12 and (table.ratio_low > 1).all()
    guide = " ".join((GUIDE / "runtimes.md").read_text(encoding="utf-8").split())
    for method, words in {AUTOREGRESSIVE: "plain decoding", TREE: "the quickest tree"}.items():
        own = table[table.method == method].ratio
        assert f"{words} {own.min():.2f} to {own.max():.2f} times" in guide
