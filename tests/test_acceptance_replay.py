"""Shapes replayed along a text against the real loop, and predictions against what was drawn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fakes import PROMPT, table_model
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.acceptance import (
    by_temperature,
    collect,
    compare_predictions,
    errors,
    first_guess_rates,
    position_rates,
    predict_tokens,
    predicted_shapes,
    ranks_by_temperature,
    ranks_of_models,
    replayed_tokens,
)
from specdec_lib.measure.acceptance.by_temperature import measure_temperatures
from specdec_lib.measure.acceptance.prediction import (
    PREDICTORS,
    replay_shape,
    replayed_guesses,
    taken_ranks,
)
from specdec_lib.measure.replaying import generations
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import chosen_prompts
from specdec_lib.workload import Prompt, load_prompts

HERE, PLAIN = Prompt("a", "", "code", "development", ""), Setting("plain", NoDraft())


@pytest.fixture(scope="module")
def texts():
    """Real generations, and the ranks a draft would give their tokens, at T = 0 and T = 1."""
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
    return [min(len(nodes), len(taken) - start) for start, nodes in replay_shape(shape, taken)]


SHAPES = {
    "chain": Shape.chain(3),
    "wide": Shape.of_widths((4,)),
    "tree": Shape.of_widths((3, 2, 1)),
    "uneven": Shape((-1, 0, 0, 1, 1, 3, 0, 2)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_replayed_shape_has_the_rounds_and_guesses_of_the_decoded_one(texts, shape):
    target, model, found = texts
    columns = ["depth", "rank", "parent_rank", "accepted"]
    for chance, made, taken in found:
        run = decode(target, TreeDraft(model, shape=shape), PROMPT, chance, max_new_tokens=30)
        assert run.tokens == made.tokens
        assert emitted(shape, taken) == [len(one.emitted) for one in run.rounds]
        real = collect([(PLAIN, HERE, run)])[0]
        replayed = replayed_guesses(shape, [taken])
        assert replayed[columns].values.tolist() == real[columns].values.tolist()


def test_a_stop_token_ends_the_replayed_text_where_the_decoded_one_ends(texts):
    target, model, found = texts
    shape, draft = SHAPES["tree"], TreeDraft(model, widths=(1,))
    for chance, made, _ in found:
        limits = {"max_new_tokens": 30, "stop_tokens": (made.tokens[9],)}
        run = decode(target, TreeDraft(model, shape=shape), PROMPT, chance, **limits)
        taken = taken_ranks(run, draft, chance)
        assert emitted(shape, taken) == [len(one.emitted) for one in run.rounds]


def test_another_draft_is_asked_at_each_position(texts):
    _, model, found = texts
    for chance, made, taken in found:
        wide = MergedDraft((TreeDraft(model, widths=(6,)),))
        assert taken_ranks(made, wide, chance) == taken


def test_a_walk_by_hand():
    tree, text = Shape.of_widths((2, 1)), (0, 0, 0, 1, None, 0, 1, 1, 0)
    assert emitted(tree, text) == [3, 2, 2, 2]
    assert emitted(Shape.chain(2), (None, 0, 0, 0)) == [1, 3] and emitted(Shape.chain(2), ()) == []
    assert replayed_tokens({"t": tree}, [text, (1,)]).tokens_per_round[0] == 10 / 5
    assert position_rates([(0, 1, None, 0), (0,)], ranks=2).rate.tolist() == [0.6, 0.2]


def test_models_of_a_ladder_guess_along_the_targets_texts(ladder):
    prompts, samplers = load_prompts("chat", "development", 2), [Sampler(0.0), Sampler(1.0)]
    limits = {"max_new_tokens": 8}
    ranks = ranks_of_models(prompts, ladder, ["draft"], samplers, **limits)
    plain = [Setting("plain", NoDraft(), one) for one in samplers]
    made = list(generations(plain, prompts, ladder, progress=False, **limits))
    assert ranks["draft"] == ranks_by_temperature(made, TreeDraft(ladder.draft, widths=(1,)))
    found = first_guess_rates(ranks)
    assert found.model.tolist() == ["draft"] * 2 and found.sampling.tolist() == ["greedy", "T = 1"]
    for rate, taken in zip(found.rate, ranks["draft"].values(), strict=True):
        every = [rank for one in taken for rank in one]
        assert rate == pytest.approx(every.count(0) / len(every))


def compared(trees, widths, known, unseen):
    wide = replayed_guesses(Shape.of_widths(widths), known)
    return compare_predictions(predict_tokens(trees, wide, known), replayed_tokens(trees, unseen))


def test_predictors_agree_where_positions_are_independent():
    """Ranks drawn independently: all five predict what other draws then give, within 4 %."""
    dice = np.random.default_rng(0)
    drawn = dice.choice(4, (2, 60, 200), p=(0.6, 0.2, 0.1, 0.1)).tolist()
    known, unseen = ([tuple(text) for text in texts] for texts in drawn)
    trees = {"chain": Shape.chain(3), "tree": Shape.of_widths((2, 2, 1))}
    trees["best"] = predicted_shapes(known)["best of 8"]
    table = compared(trees, (4, 3, 2, 1), known, unseen)
    assert len(table) == len(trees) * len(PREDICTORS) and (abs(table.error) < 0.04).all()


def test_only_replay_sees_that_hits_come_in_runs():
    """A rate per rank averages easy and hard halves; a long chain lives on the easy ones."""
    known = [(0,) * 100 + (None,) * 100] * 3
    table = compared({"chain of 8": Shape.chain(8)}, (2, 1, 1), known, known)
    found = table.set_index("predictor").error
    assert found["replay"] == 0 and abs(found["every position"]) > 0.1


def test_what_cannot_be_replayed_is_refused(texts):
    _, model, found = texts
    chance, made, _ = found[0]
    for draft in (TreeDraft(model, widths=(2,)), ChainDraft(model, 2)):
        drawn = replace(draft, siblings="iid")
        with pytest.raises(ValueError, match='only "ranked" or "top" siblings'):
            taken_ranks(made, drawn, chance)


def test_stored_predictions_by_replay_err_as_prompts_differ_and_the_roots_by_more():
    """Two sets of as many prompts differ by √2 times what an interval says of one, at 95 %."""
    table = pd.read_csv(DATA / "measured" / "predicted.csv")
    assert table.name.nunique() >= 10 and set(table.predictor) == set(PREDICTORS)
    table = table.assign(error=table.predicted / table.measured - 1)
    table["spread"] = 2**0.5 * (table.high - table.low) / 2 / table.measured
    found = errors(table, ["predictor", "temperature"]).set_index(["predictor", "temperature"])
    for temperature, group in table.groupby("temperature"):
        allowed = group.spread.median()
        assert found.median_error["replay", temperature] <= allowed < 0.1
        assert found.median_error["root", temperature] > allowed


def test_every_guesser_is_counted_at_every_temperature(tmp_path, monkeypatch, unchecked):
    """The control guesses with the target itself, and is always right."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    monkeypatch.setattr(by_temperature, "TEXT", 6)
    ladder = replace(tiny_ladder(reads=True), katz=None)
    prompts = chosen_prompts("chat", "held-out", 2)
    counted = {"prompts": prompts, "temperatures": (0.3, 0.7), "progress": False}
    found = measure_temperatures(ladder=ladder, **counted).set_index(["guesser", "temperature"])
    assert set(found.index) == {
        (name, heat) for name in ("middle", "draft", "reading") for heat in (0.3, 0.7)
    }
    assert found.rate.between(0, 0.9).all() and (found.at_risk == 12).all()
    monkeypatch.setattr(by_temperature, "drafting_models", lambda one: {"itself": one.target})
    assert (measure_temperatures(ladder=ladder, **counted).rate == 1).all()


def test_ranks_beyond_a_trees_width_are_known_of_models_that_read_nothing_but_tokens(unchecked):
    """Control: the ranks of a draft that reads the target's states end with its width."""
    ladder = tiny_ladder(runtime="fast", reads=True)
    prompt = ladder.encode(chosen_prompts("chat", "held-out", 1)[0])
    chance = Chance(0, Sampler(1.0))
    text = decode(ladder.target, NoDraft(), prompt, chance, max_new_tokens=40)
    ranks = {
        model.name: {rank for rank in taken_ranks(text, TreeDraft(model, widths=(1,)), chance)}
        for model in ladder.models[1:]
    }
    assert max(ranks["draft"] - {None}) > 0 and max(ranks["middle"] - {None}) > 0
    assert ranks["reading"] <= {0, None}
