"""Whatever is given to a public function or constructor, it works or raises a one-line ValueError;
what its annotation does not allow, it never takes.
"""

import functools
import inspect
import json
import math
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import tiny_ladder

from specdec_lib import theory
from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import checked_card
from specdec_lib.core.kinds import checked, is_a
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import Shape
from specdec_lib.core.tree.shape import MOST_IN_TREE
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.cascade import Relay, Reviewed, from_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees import ChainDraft, TreeDraft
from specdec_lib.measure import comparing
from specdec_lib.measure.cascade.record import CascadeSetting, record
from specdec_lib.measure.comparing import compare_methods
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.models.loading import load_model
from specdec_lib.models.table import TableModel
from specdec_lib.suite.hf import export_setting, flags, import_setting
from specdec_lib.workload import Prompt, load_ladder, load_prompts, seeds

TRIES, SECONDS = 3_200, 5.0
LADDER = functools.cache(tiny_ladder)
GREEDY = Chance(0, Sampler())
PAST = Context.of((5, 7, 5, 7, 5))
RATES = ((0.6, 0.2), (0.5, 0.1))


def drafts() -> dict[Callable, dict]:
    """Drafts, and functions of ladders and prompts, each with arguments under which it works."""
    ladder, small = LADDER(), {"max_new_tokens": 2, "progress": False, "seed": 0}
    draft, middle, pair = ladder.draft, ladder.middle, (ladder.middle, ladder.draft)
    tree, chain, copies = TreeDraft(draft, budget=2), ChainDraft(draft, 2), MaxGram(length=2)
    prompts, matrix = load_prompts("code", "development", 1), ((1, 2), (0, 2))
    setting, missing = Setting("tree", tree, Sampler()), {"device": "cpu", "dtype": "float32"}
    return {
        TreeDraft: dict(model=draft, budget=3, depth=2, floor=0.1, deepen=0.2),
        ChainDraft: dict(model=draft, length=2, floor=0.1),
        StagedTree: dict(draft=tree, scout=copies, guided=2),
        StagedChain: dict(model=draft, scout=copies, length=3, siblings="ranked"),
        MaxGram: dict(length=4, least=2),
        NgramDraft: dict(table=ladder.katz, budget=4, depth=3, counted_at=1.0),
        FirstDraft: dict(parts=(copies, tree), least=2),
        MergedDraft: dict(parts=(copies, tree)),
        Reviewed: dict(reviewer=middle, draft=chain, lenience=2.0, width=2),
        Relay: dict(parts=(chain, chain), lengths=(1, 1)),
        from_matrix: dict(drafters=pair, matrix=matrix, convention="increments", lenience=1.0),
        load_prompts: dict(domain="code", split="development", limit=1),
        seeds: dict(prompts=prompts, seed=3),
        load_ladder: dict(target="/missing", draft="/missing", runtime="fast") | missing,
        load_model: dict(source="/missing", name="x", tokens=0) | missing,
        Setting: dict(name="a", draft=tree, sampler=Sampler(), rule=look_up),
        sweep: dict(settings=[setting], prompts=prompts, ladder=ladder) | small,
        record: dict(prompts=prompts, ladder=ladder) | small,
        compare_methods: dict(ladder=ladder, prompts=prompts, own={}, max_new_tokens=2, seed=0),
        CascadeSetting: dict(drafters=("middle", "draft"), matrix=matrix, lenience=1.0),
        export_setting: dict(setting=setting),
        import_setting: dict(text=export_setting(setting), models=ladder),
        flags: dict(setting=setting),
    }


def numbers() -> dict[Callable, dict]:
    """The same of functions of numbers and shapes."""
    size, small = theory.ModelShape(2, 8, 100), Shape((-1, 0, 0, 1))
    table, copies = TableModel(lambda path: torch.zeros(3), 3, max_positions=9), MaxGram(length=2)
    return {
        Sampler: dict(temperature=1.0, top_k=5, top_p=0.9),
        Chance: dict(seed=1, sampler=Sampler()),
        Shape: dict(parents=(-1, 0, 0, 1)),
        Shape.chains: dict(count=2, length=2),
        decode: dict(target=table, draft=copies, prompt=(1, 2), chance=GREEDY, max_new_tokens=2)
        | dict(stop_tokens={2}, rule=look_up),
        TableModel: dict(logits=lambda path: torch.zeros(3), vocabulary=3, max_positions=9),
        theory.phi: dict(acceptance_rate=0.5, length=3, x=0.5),
        theory.expected_tokens: dict(shape=small, rates=RATES),
        theory.best_tree: dict(rates=RATES, budget=4, depth=2),
        theory.tree_table: dict(rates=RATES, nodes=4, depth=2),
        theory.ModelShape: dict(layers=2, width=8, vocabulary=100, bytes_per_number=4.0),
        theory.Machine: dict(name="m", bytes_per_second=1e9, flops_per_second=1e10),
        theory.pass_flops: dict(model=size, rows=2, context=8),
        theory.bytes_moved: dict(model=size, passes=1, rows=2, context_tokens=8),
        theory.PassTable: dict(rows=(1, 2), contexts=(8, 16), seconds=((0.1, 0.2),) * 2),
        theory.plain_work: dict(context=8, target="target"),
    }


@functools.cache
def calls() -> dict[str, tuple[Callable, dict]]:
    """All of them, by name."""
    given = drafts() | numbers()
    return {one.__name__: (one, arguments) for one, arguments in given.items()}


LONG = ("sweep", "record", "compare_methods")  # a large `max_new_tokens` is honest work
NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2, 10**9, -(10**18), 2**63, 10**30]),
    st.sampled_from([0.0, -0.5, 0.5, 1.5, 1e308, math.inf, -math.inf, math.nan]),
    st.sampled_from([np.int32(2), np.float32(0.5), np.int64(-1), np.nan]),
    st.integers(),
    st.floats(),
)
TEXTS = st.one_of(st.sampled_from(["", "4", "0.7", "a", "x" * 400, "\ud800", "../.."]), st.text())
ODD = st.sampled_from([None, True, b"4", object(), Sampler, 2j, {1, 2}, {"a": 1}, range(3)])
SIMPLE = NUMBERS | TEXTS | ODD
NESTED = st.lists(SIMPLE, max_size=3) | st.lists(st.lists(NUMBERS, max_size=3), max_size=3)
BAD = SIMPLE | NESTED | NESTED.map(tuple) | st.sampled_from([np.zeros((2, 2)), torch.zeros(2)])


def too_long(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of the processor")


def allows(public: Callable, parameter: str, value: object) -> bool:
    """By `is_a`, which `test_annotations` holds against what is written down by hand."""
    hint = inspect.signature(public).parameters[parameter].annotation
    return isinstance(hint, str) or hint is Any or is_a(value, hint)


@functools.cache
def work() -> None:
    """Every call once, with its own arguments; the folders of models that some name are missing.

    What is compiled is compiled here: broken off for time, LLVM ends the process.
    """
    for public, arguments in calls().values():
        if "/missing" not in arguments.values():
            made = public(**arguments)
            if isinstance(made, Draft):
                made.propose(PAST, GREEDY)


@pytest.fixture
def timed_once(monkeypatch):
    """The default's size is chosen once: its rounds are honest work, at any of the values."""
    size = comparing.usual_size(LADDER(), Sampler(0))
    monkeypatch.setattr(comparing, "usual_size", lambda ladder, sampler: size)


@pytest.mark.usefixtures("unchecked", "timed_once")
@settings(max_examples=TRIES, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_a_bad_value_is_refused_in_one_line_or_works(data):
    work()
    name = data.draw(st.sampled_from(sorted(calls())))
    public, arguments = calls()[name]
    left_out = {"max_new_tokens" if name in LONG else ""}
    parameter = data.draw(st.sampled_from(sorted({*arguments} - left_out)))
    value = data.draw(BAD)
    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        made = public(**(arguments | {parameter: value}))
        if isinstance(made, Draft):
            made.propose(PAST, GREEDY)
        assert allows(public, parameter, value), f"{parameter}={value!r} was taken by {name}"
    except ValueError as error:
        assert "\n" not in str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def test_what_is_not_checked_takes_what_it_should_not():
    """The control."""

    def double(size: int) -> int:
        return 2 * size

    with pytest.raises(ValueError, match="size of double must be a whole number, got '4'"):
        checked(double)("4")
    assert double("4") == "44" and not is_a("4", int)


SIZES = {  # everything that takes a number of guesses, as functions of it
    "chains": lambda size: Shape.chains(size, 2),
    "long chains": lambda size: Shape.chains(2, size),
    "full": lambda size: Shape.full(size, 2),
    "deep": lambda size: Shape.full(2, size),
    "width": lambda size: TreeDraft(LADDER().draft, widths=(size, 1)),
    "widths": lambda size: TreeDraft(LADDER().draft, widths=(10,) * min(size, 20)),
    "table's width": lambda size: NgramDraft(LADDER().katz, widths=(size,)),
}


@pytest.mark.parametrize("make", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("size", (MOST_IN_TREE + 1, 10**30))
def test_more_guesses_than_a_tree_holds_are_refused_at_once(size, make):
    make(3)  # which is allowed
    with pytest.raises(ValueError, match=r" 4,096( guesses| or None)?, got ") as refused:
        make(size)
    assert "\n" not in str(refused.value)


DEEP, TOO_LONG = "[" * 200_000, json.dumps({"text": [[1] * 10_000]})


@pytest.mark.parametrize("line", [DEEP, '{"text": "x", "name": "\\ud800"}', TOO_LONG])
def test_json_that_is_too_deep_or_no_text_is_refused_in_short(tmp_path, line):
    for name in ("mine.jsonl", "card.json"):
        (tmp_path / name).write_text(line)
    with pytest.raises(ValueError, match=r"jsonl.*(recursion|hex escape|valid string)") as refused:
        load_prompts(tmp_path / "mine.jsonl")
    assert len(str(refused.value)) < 400
    with pytest.raises(ValueError, match=r"card\.json is damaged"):
        checked_card(tmp_path, ())


def test_half_a_character_has_no_tokens(ladder):
    half = "half \ud800 of a character"
    for text in (half, Prompt("one", half, "own", "held-out", "here")):
        with pytest.raises(ValueError, match="position 5: surrogates not allowed"):
            ladder.encode(text)
    assert ladder.encode("whole \U0001f642")
