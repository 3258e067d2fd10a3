"""What cannot be measured, replayed or priced is refused in one line that says what is allowed."""

import math

import numpy as np
import pandas as pd
import pytest
from fakes import Clock, Linear, assert_refused, recording, table_model
from tiny import tiny_ladder

from specdec_lib import theory
from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.drafts.cascade import Relay, Reviewed
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees import ChainDraft
from specdec_lib.measure import acceptance
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, record
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.tune import Replays, costs_of
from specdec_lib.measure.latency.passes import pass_tables, time_passes, with_roofline
from specdec_lib.measure.latency.predict import beside_predictions
from specdec_lib.measure.race_table import counterfactuals, ratio_table, stored_ledger
from specdec_lib.measure.ratios import interval
from specdec_lib.measure.settings.bench import bench_settings
from specdec_lib.measure.trial import Trial
from specdec_lib.measure.tuned_methods import tune_contenders
from specdec_lib.models.katz.model import Katz
from specdec_lib.theory.chains import chain_speed_up
from specdec_lib.theory.choosing import Tally, smoothed

CONTEXT, GREEDY = Context.of((1, 2)), Chance(0, Sampler())
MADE_UP, ONE = recording("made up", 0), CascadeSetting(("draft",), ((1,),))
PRICES = {"target": 1.0, "middle": 0.2, "draft": 0.05}
PASSES = theory.PassTable((1, 2), (8, 16), ((0.1, 0.2), (0.2, 0.3)))
PLACES = [("a", "fast", rows, context, 0.1) for rows in (1, 2) for context in (8, 16)]
CURVES = pd.DataFrame(
    PLACES, columns=["model", "runtime", "rows", "context_tokens", "network_seconds"]
)
LEDGER = pd.DataFrame(
    [("staged", 0.0, 0, "verify", 0.5), ("staged", 0.0, 0, "n-gram", 0.5)],
    columns=["method", "temperature", "top_k", "part", "share"],
)


def timing(method: str, prompt: str, setting: str = "any") -> Trial:
    return Trial(
        method=method,
        runtime="reference",
        setting=setting,
        sampler=Sampler(0),
        prompt=prompt,
        tokens=10,
        timed_tokens=10,
        seconds=1.0,
        rounds=5,
        repetition=0.0,
    )


def predicted(*drafts: str) -> pd.DataFrame:
    rows = [(name, "chain", 10.0, 2.0) for name in drafts]
    return pd.DataFrame(rows, columns=["draft", "kind", "predicted", "tokens_per_round"])


RACED = [timing("autoregressive", "a/1", "autoregressive"), timing("chain", "a/1", "chain of 2")]
TIMED = pd.DataFrame([vars(one) for one in RACED]).assign(domain="a")
GUESSES = pd.DataFrame({"prompt": ["a"], "rank": [0], "depth": [1], "accepted": [True]})


def named(name: str) -> ChainDraft:
    return ChainDraft(table_model(4, 0, name=name), 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: PASSES.at(0), "at least 1 row, a context 0 tokens or more, got rows=0"),
        (lambda: PASSES.at(1, -1), "got rows=1, context=-1"),
        (lambda: PASSES.at(math.nan), "got rows=nan"),
        (lambda: PASSES.faster(0), "a model is more than 0 times as fast, got 0"),
        (lambda: PASSES.faster(-1), "more than 0 times as fast, got -1"),
        (lambda: smoothed([Tally(0.0, 0.0, 0.0)] * 2), "tallies need a round in some situation"),
        (
            lambda: theory.relay_speed_up([0.5], [0.1, 0.2], [2]),
            "drafter, got 1 rates, 2 costs",
        ),
        (lambda: theory.best_chain_speed_up(0.5, 0.1, lengths=()), "of the lengths, got none"),
        (lambda: theory.phi(0.5, 3, 3.0), "x of phi must be .* from 0 to 1, got 3.0"),
    ],
)
def test_a_number_that_theory_cannot_take_is_named(call, said):
    assert_refused(call, said)


def test_the_best_chain_is_the_best_of_the_lengths_that_are_asked_for():
    best = theory.best_chain_speed_up(0.95, 0.01)
    assert theory.best_chain_speed_up(0.95, 0.01, lengths=range(1, 40)) > best
    assert theory.best_chain_speed_up(0.95, 0.01, lengths=[3]) == chain_speed_up(0.95, 3, 0.01)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: Relay((), ()), "one above, got"),
        (lambda: Relay((MaxGram(),), (0,)), r"one above, got \(0,\)"),
        (lambda: Relay((named("prompt"),), (2,)), "call the model 'prompt' otherwise"),
        (lambda: Relay((MaxGram(), named("bigram")), (1, 2)), "call the model 'bigram' otherwise"),
        (
            lambda: Reviewed(table_model(4, 0, name="generation"), MaxGram()),
            "prompt, generation, bigram are the names of Max-Gram's guesses; call the model 'g",
        ),
    ],
)
def test_a_cascade_of_nothing_or_of_a_model_called_as_a_copy_is_refused(call, said):
    assert_refused(call, said)


def test_a_bigram_table_without_the_last_token_is_refused():
    copies = MaxGram(np.array([1, 0]))
    assert copies.propose(Context.of((0, 1)), GREEDY).guesses  # a token that it has
    assert_refused(
        lambda: copies.propose(Context.of((0, 2)), GREEDY),
        "the bigram table has 2 entries, one per token of the vocabulary, and none for token 2",
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: interval([1, 2], [1]), "as many numerators as denominators, got 2 and 1"),
        (lambda: acceptance.tokens(GUESSES, ["nonsense"]), "by holds different columns of prompt"),
        (lambda: acceptance.rank_rates(GUESSES[:0]), "at least 1 row, got an empty table"),
        (lambda: time_passes([], progress=False), "timing needs models"),
        (lambda: time_passes([Linear("a", Clock())] * 2, progress=False), "names or runtimes"),
        (lambda: pass_tables(CURVES[1:]), "a needs one value of network_seconds per place, got 3"),
        (lambda: pass_tables(pd.concat([CURVES] * 2)), "per place, got 8 for 4"),
        (lambda: pass_tables(CURVES, "int8"), "no pass was timed with runtime 'int8'"),
        (lambda: with_roofline(CURVES, [], theory.A40), r"a \(fast\) was timed and is not among"),
        (
            lambda: beside_predictions(predicted("chain of 9"), TIMED),
            "no measurement of chain of 9",
        ),
        (
            lambda: bench_settings(None, Sampler(), "nonsense"),
            "our methods are autoregressive, .*chain, .* got 'nonsense'",
        ),
        (
            lambda: tune_contenders([], [], None, stages=(1,)),
            "tuning needs contenders and ",
        ),
        (lambda: counterfactuals(LEDGER, TIMED), "the ledger lacks plain decoding, has staged"),
        (
            lambda: ratio_table([timing("autoregressive", "a/1"), timing("chain", "a/2")], {}),
            "chain, reference and autoregressive, reference share no prompt",
        ),
    ],
)
def test_what_cannot_be_measured_or_compared_is_named(call, said):
    assert_refused(call, said)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: record([], tiny_ladder()), "a recording needs prompts, got none"),
        (lambda: Replays({}, {}), "recorded texts under each name, got none for any"),
        (lambda: Replays({"code": []}, {}), "got none for code"),
        (
            lambda: costs_of([MADE_UP], ONE, PRICES | {"target": 0.0}),
            "the target's price is above 0",
        ),
        (lambda: costs_of([MADE_UP], ONE, {"draft": 0.1}), "a price.*: target has none in"),
        (
            lambda: replay_cascade(MADE_UP, CascadeSetting((MAX_GRAM,), ((65,),))),
            "recorded for 64 tokens at most",
        ),
    ],
)
def test_what_cannot_be_replayed_or_priced_is_named(call, said):
    assert_refused(call, said)


def test_a_race_without_a_ledger_says_which_command_makes_one(tmp_path):
    assert_refused(lambda: stored_ledger("mine", folder=tmp_path), "`specdec bench` makes it")


def test_a_table_whose_arrays_do_not_fit_each_other_is_damaged(ladder, tmp_path):
    path = tmp_path / "katz.npz"
    ladder.katz.save(path)
    with np.load(path) as arrays:
        parts = dict(arrays)
    Katz.load(path)
    np.savez(path, **parts | {"ends_0": parts["ends_0"][:, :-1]})
    assert_refused(lambda: Katz.load(path), "do not fit each other at level 0.*distil ngrams")
    np.savez(path, **parts | {"order": np.array(0)})
    assert_refused(lambda: Katz.load(path), "it has 0 levels.*distil ngrams")


def test_a_model_that_counts_nothing_can_be_timed_without_a_network_of_its_own():
    table = time_passes([table_model(9, 0)], (1, 2), (3,), repeats=2, progress=False)
    assert len(table) == 4 and table.network_seconds.isna().all() and (table.seconds > 0).all()


def test_the_likeliest_of_an_n_gram_table_do_not_follow_the_noise(ladder):
    """The control: ranked siblings do."""
    context, kinds = Context.of(tuple(range(5))), {}
    for siblings in ("top", "ranked"):
        draft = NgramDraft(ladder.katz, widths=(4, 2), siblings=siblings)
        trees = [draft.propose(context, Chance(seed, Sampler(1.0))) for seed in range(6)]
        kinds[siblings] = len({one.tokens for one in trees})
    assert kinds["top"] == 1 < kinds["ranked"]
