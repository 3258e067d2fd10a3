"""Threads that decode with the same models and drafts write what each would alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import product

import pytest
from tiny import tiny_ladder

from specdec_lib.core import locking
from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import TreeDraft

PROMPTS = [tuple((7 * one + place) % 50 for place in range(9 + one)) for one in range(4)]
SAMPLERS = (Sampler(0), Sampler(1.0, top_k=5))


def all_at_once(runtime: str) -> tuple[list, list]:
    """Texts of every prompt and sampler, written one after the other and by four threads."""
    ladder = tiny_ladder(runtime=runtime)
    draft = MergedDraft((MaxGram(None, 4), TreeDraft(ladder.draft, budget=6, depth=3)))
    tasks = list(product(PROMPTS, SAMPLERS)) * 2

    def write(task: tuple) -> tuple[int, ...]:
        prompt, sampler = task
        return decode(ladder.target, draft, prompt, Chance(1, sampler), max_new_tokens=12).tokens

    with ThreadPoolExecutor(4) as pool:
        return [*map(write, tasks)], [*pool.map(write, tasks)]


@pytest.mark.parametrize("runtime", ["reference", "fast", "int8"])
def test_threads_write_what_each_writes_alone(runtime, unchecked):
    alone, together = all_at_once(runtime)
    assert together == alone


class NoLocks(dict):
    """Locks that anybody passes."""

    def setdefault(self, *_):
        return nullcontext()


def test_without_turns_they_would_not(monkeypatch):
    monkeypatch.setattr(locking, "_LOCKS", NoLocks())
    with pytest.raises((KeyError, IndexError, ValueError, RuntimeError, AssertionError)):
        for _ in range(20):
            alone, together = all_at_once("reference")
            assert together == alone


def test_a_lock_belongs_to_a_network_not_to_a_wrapper():
    class Wrapper:
        def __init__(self, model):
            self.model = model

        @locking.in_turn
        def hold(self, other):
            """Whether another thread gets through `other` while this one holds its turn."""
            done = threading.Event()
            threading.Thread(target=lambda: other.call(done.set), daemon=True).start()
            return done.wait(0.2)

        @locking.in_turn
        def call(self, function):
            function()

    shared, another = threading.Event(), threading.Event()
    assert not Wrapper(shared).hold(Wrapper(shared)) and Wrapper(shared).hold(Wrapper(another))
