"""Shapes replayed along a text against the real loop, and predictions against what was drawn."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fakes import PROMPT, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.acceptance import (
    collect,
    compare_predictions,
    errors,
    position_rates,
    predicted_shapes,
    predictions,
    ranks_by_temperature,
    replayed_tokens,
)
from specdec_lib.measure.acceptance.prediction import PREDICTORS
from specdec_lib.measure.acceptance.ranks import replayed_guesses
from specdec_lib.measure.replay.shape_rounds import replay_shape, taken_ranks
from specdec_lib.workload import Prompt, seeds


@pytest.fixture(scope="module")
def texts():
    """Real generations on random distributions, and the ranks that a draft would have given their
    tokens, at T = 0 and T = 1.
    """
    target, model = table_model(6, 1), table_model(6, 2, name="draft")
    wide, found = TreeDraft(model, widths=(3, 2)), []
    for temperature in (0.0, 1.0):
        for seed in range(2):
            chance = Chance(seed, Sampler(temperature))
            made = decode(target, NoDraft(), PROMPT, chance, max_new_tokens=30)
            found.append((chance, made, taken_ranks(made, wide, chance)))
    return target, model, found


def emitted(shape, taken):
    """Tokens per round."""
    return [one.emitted for one in replay_shape(shape, taken)]


SHAPES = {
    "chain": Shape.chain(3),
    "wide": Shape.of_widths((4,)),
    "tree": Shape.of_widths((3, 2, 1)),
    "uneven": Shape((-1, 0, 0, 1, 1, 3, 0, 2)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_replayed_shape_emits_what_the_decoded_one_does_round_for_round(texts, shape):
    target, model, found = texts
    for chance, made, taken in found:
        run = decode(target, TreeDraft(model, shape=shape), PROMPT, chance, max_new_tokens=30)
        assert run.tokens == made.tokens
        assert emitted(shape, taken) == [len(one.emitted) for one in run.rounds]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_replayed_guesses_are_those_that_the_records_hold(texts, shape):
    target, model, found = texts
    columns = ["depth", "rank", "parent_rank", "accepted"]
    for chance, _, taken in found:
        made = decode(target, TreeDraft(model, shape=shape), PROMPT, chance, max_new_tokens=30)
        real = collect([({"prompt": "a"}, made)])[0]
        assert (
            replayed_guesses(shape, [taken])[columns].values.tolist()
            == real[columns].values.tolist()
        )


def test_a_stop_token_ends_the_replayed_text_where_the_decoded_one_ends(texts):
    target, model, found = texts
    for chance, made, _ in found:
        limits = {"max_new_tokens": 30, "stop_tokens": (made.tokens[9],)}
        run = decode(target, TreeDraft(model, shape=SHAPES["tree"]), PROMPT, chance, **limits)
        assert emitted(SHAPES["tree"], taken_ranks(run, TreeDraft(model, widths=(1,)), chance)) == [
            len(one.emitted) for one in run.rounds
        ]


def test_another_draft_is_asked_at_each_position(texts):
    _, model, found = texts
    for chance, made, taken in found:
        wide = MergedDraft((TreeDraft(model, widths=(6,)),))
        assert taken_ranks(made, wide, chance) == taken


def test_a_walk_by_hand():
    tree = Shape.of_widths((2, 1))
    assert emitted(tree, (0, 0, 0, 1, None, 0, 1, 1, 0)) == [3, 2, 2, 2]
    assert emitted(Shape.chain(2), (None, 0, 0, 0)) == [1, 3] and emitted(Shape.chain(2), ()) == []
    assert (
        replayed_tokens({"t": tree}, [(0, 0, 0, 1, None, 0, 1, 1, 0), (1,)]).tokens_per_round[0]
        == 10 / 5
    )
    assert position_rates([(0, 1, None, 0), (0,)], ranks=2).rate.tolist() == [0.6, 0.2]


def test_predictors_agree_where_positions_are_independent():
    """Ranks drawn independently: all five predict what other draws then give, within 4 %."""
    dice = np.random.default_rng(0)
    known, unseen = (
        [
            tuple(int(rank) for rank in dice.choice(4, 200, p=(0.6, 0.2, 0.1, 0.1)))
            for _ in range(60)
        ]
        for _ in range(2)
    )
    trees = {
        "chain": Shape.chain(3),
        "tree": Shape.of_widths((2, 2, 1)),
        "best": predicted_shapes(known)["best of 8"],
    }
    table = compare_predictions(
        predictions(trees, replayed_guesses(Shape.of_widths((4, 3, 2, 1)), known), known),
        replayed_tokens(trees, unseen),
    )
    assert len(table) == len(trees) * len(PREDICTORS) and (abs(table.error) < 0.04).all()


def test_only_replay_sees_that_hits_come_in_runs():
    """Half of each text is easy, half is hard: a rate per rank averages over both, and the long
    chain lives on the easy half alone.
    """
    known = [(0,) * 100 + (None,) * 100] * 3
    trees = {"chain of 8": Shape.chain(8)}
    measured = replayed_tokens(trees, known)
    table = compare_predictions(
        predictions(trees, replayed_guesses(Shape.of_widths((2, 1, 1)), known), known), measured
    ).set_index("predictor")
    assert table.error["replay"] == 0 and abs(table.error["every position"]) > 0.1


def test_errors_leave_the_sign_out():
    rows = {
        "predictor": "x",
        "predicted": [1.1, 0.8, 1.0],
        "measured": 1.0,
        "low": 0.95,
        "high": 1.15,
        "error": [0.1, -0.2, 0.0],
    }
    row = errors(pd.DataFrame(rows)).iloc[0]
    assert (row.median_error, row.largest_error, row.share_inside) == (0.1, 0.2, 2 / 3)


def test_texts_are_sorted_by_temperature(texts):
    target, model, _ = texts
    prompt = Prompt("a", "", "code", "development", "")
    settings = [SimpleNamespace(sampler=Sampler(temperature)) for temperature in (0.0, 1.0)]
    chances = [Chance(seeds([prompt], 3)[0], setting.sampler) for setting in settings]
    runs = [
        (setting, prompt, decode(target, NoDraft(), PROMPT, chance, max_new_tokens=9))
        for setting, chance in zip(settings, chances, strict=True)
    ]
    draft = TreeDraft(model, widths=(1,))
    assert ranks_by_temperature(runs, draft, seed=3) == {
        t: [taken_ranks(run[2], draft, c)]
        for t, run, c in zip((0.0, 1.0), runs, chances, strict=True)
    }


def test_what_cannot_be_replayed_is_refused(texts):
    _, model, found = texts
    chance, made, taken = found[0]
    drawn = TreeDraft(model, widths=(2,), siblings="iid")
    for draft in (drawn, ChainDraft(model, 2, siblings="iid")):
        with pytest.raises(ValueError, match='only "ranked" or "top" siblings'):
            taken_ranks(made, draft, chance)
    with pytest.raises(ValueError, match="at least 1 position"):
        position_rates([()])
    one, two = {"a": Shape.chain(1)}, {"b": Shape.chain(1)}
    with pytest.raises(ValueError, match="no measurement of a"):
        compare_predictions(
            predictions(one, replayed_guesses(one["a"], [taken]), [taken]),
            replayed_tokens(two, [taken]),
        )


def test_the_stored_predictions_keep_to_5_percent():
    table = pd.read_csv(DATA / "measured" / "predicted.csv")
    assert (
        table.name.nunique() >= 10
        and set(table.predictor) == set(PREDICTORS)
        and set(table.temperature) == {0.0, 1.0}
    )
    table = table.assign(error=table.predicted / table.measured - 1)
    found = errors(table, ["predictor", "temperature"]).set_index("predictor")
    assert (found.median_error["replay"] <= 0.05).all()


def test_the_stored_replays_lie_within_what_decoding_half_of_the_prompts_found():
    folder = DATA / "measured"
    ours = (
        pd.read_csv(folder / "predicted.csv")
        .drop_duplicates(["temperature", "name"])
        .set_index(["name", "temperature"])
    )
    decoded = pd.read_csv(folder / "tokens_per_round.csv").set_index(["draft", "temperature"])
    for name in ("chain of 4", "chain of 8", "tree 4·2·1·1"):
        for temperature in (0.0, 1.0):
            found = decoded.loc[(f"draft, {name}", temperature)]
            assert (
                found.tokens_per_round_low
                <= ours.measured[(name.removeprefix("tree "), temperature)]
                <= found.tokens_per_round_high
            )
