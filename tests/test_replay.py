"""Replays have the rounds of real runs: of cascades, and of any draft along a text; the tuner."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.cascades.variants import survival
from specdec_lib.measure.replay import (
    MAX_GRAM,
    CascadeSetting,
    OwnText,
    Recording,
    own_text,
    record,
    replay_cascade,
    replay_draft,
    tune,
)
from specdec_lib.measure.replay.recording import Choices
from specdec_lib.measure.replay.tuning import replayed_swi
from specdec_lib.workload import seeds

SAMPLERS = (Sampler(0), Sampler(1.0))
TOKENS = 24
PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
THREE = ("middle", "draft", MAX_GRAM)


def settings(count: int, seed: int = 0) -> list[CascadeSetting]:
    """So many K matrices and leniences, of one drafter to three."""
    dice, found = random.Random(seed), []
    stacks = [THREE, THREE[:2], THREE[1:], (THREE[0], MAX_GRAM), ("draft",), (MAX_GRAM,)]
    while len(found) < count:
        drafters = dice.choice(stacks)
        size = len(drafters)
        drawn = [[dice.choice((0, 1, 2, 3, 6)) for _ in range(size - row)] for row in range(size)]
        matrix = tuple((0,) * row + tuple(entries) for row, entries in enumerate(drawn))
        if any(matrix[0]):
            more = dice.choice((1.0, 2.0, 5.0)), dice.random() < 0.5
            found.append(CascadeSetting(drafters, matrix, *more))
    return found


@pytest.fixture(scope="module")
def recordings(ladder, prompts) -> dict[Sampler, list[Recording]]:
    how = {"max_new_tokens": TOKENS, "progress": False}
    return {sampler: record(prompts[:2], ladder, sampler, **how) for sampler in SAMPLERS}


def real(ladder, prompt, setting: CascadeSetting, sampler: Sampler):
    chance = Chance(seeds([prompt], 0)[0], sampler)
    run = (ladder.target, setting.draft(ladder), ladder.encode(prompt), chance)
    return decode(*run, max_new_tokens=TOKENS, stop_tokens=ladder.stop_tokens)


@pytest.mark.usefixtures("unchecked")
def test_a_replay_has_the_real_rounds_and_nearly_the_calls(ladder, prompts, recordings):
    """36 settings, each on a text: tokens of every round are equal; calls of drafters, all
    together, within a tenth on texts as short as these.
    """
    calls = np.zeros(2)
    for number, setting in enumerate(settings(36)):
        sampler, place = SAMPLERS[number % 2], number // 2 % 2
        generation = real(ladder, prompts[place], setting, sampler)
        played = replay_cascade(recordings[sampler][place], setting)
        assert played.emitted == tuple(len(one.emitted) for one in generation.rounds), setting
        for name, count in played.passes.items():
            used = (one.usage[name] for one in generation.rounds if name in one.usage)
            calls += (count, sum(one.passes for one in used))
    assert calls[0] == pytest.approx(calls[1], rel=0.1)


def test_choices_of_another_seed_give_other_rounds(ladder, prompts, recordings):
    """The negative control: what the drafters said elsewhere does not replay this text."""
    mine, other = recordings[SAMPLERS[1]]
    confused = replace(mine, choices=other.choices, memory={})
    setting = CascadeSetting(("middle", "draft"), ((2, 2), (0, 2)))
    assert replay_cascade(confused, setting).emitted != replay_cascade(mine, setting).emitted


def test_remembering_changes_no_replay(recordings):
    for recording in recordings[SAMPLERS[0]]:
        for setting in settings(12, seed=1):
            before, fresh = replay_cascade(recording, setting), replace(recording, memory={})
            assert before == replay_cascade(recording, setting) == replay_cascade(fresh, setting)


def test_an_swi_charges_every_pass(recordings):
    texts, setting = recordings[SAMPLERS[0]], CascadeSetting(("draft",), ((3,),))
    rounds = sum(len(replay_cascade(one, setting).emitted) for one in texts)
    found = replayed_swi(texts, setting, PRICES)
    assert found == pytest.approx(2 * TOKENS / (rounds + 3 * rounds * 0.2))


def test_the_tuner_finds_the_best_of_one_drafter_and_a_maximum_of_more(recordings):
    texts, lengths = recordings[SAMPLERS[0]], (0, 1, 2, 4)
    options = {"lengths": lengths, "progress": False}
    alone = tune(texts, ("draft",), PRICES, **options)
    others = (CascadeSetting(("draft",), ((length,),)) for length in lengths[1:])
    assert alone.swi == max(replayed_swi(texts, one, PRICES) for one in others)
    both = tune(texts, ("draft", MAX_GRAM), PRICES, leniences=(1.0, 3.0), **options)
    assert both.swi == replayed_swi(texts, both.setting, PRICES)
    for row, column, length in itertools.product(range(2), range(2), lengths):
        entries = [list(entries) for entries in both.setting.matrix]
        entries[row][column] = length if column >= row else 0
        if entries[0][0]:
            changed = replace(both.setting, matrix=tuple(map(tuple, entries)))
            assert replayed_swi(texts, changed, PRICES) <= both.swi


def test_the_tuner_leaves_no_drafter_out(recordings):
    """Where a drafter is dear, its share is small and not 0: a cascade of three is one of three."""
    dear, few = PRICES | {"middle": 50.0}, {"lengths": (0, 1, 4), "leniences": (1.0,)}
    found = tune(recordings[SAMPLERS[0]], THREE, dear, **few, progress=False)
    first, second, _ = found.setting.matrix
    assert first[0] == 1 and first[1] + second[1] > 0


def made_up(target: tuple[int, ...], said: tuple[int, ...]) -> Recording:
    """A text, and a model that says so at each place."""
    choices = Choices(said, tuple({token: 0.9} for token in said))
    return Recording("made up", Sampler(0), target, {"draft": choices}, ((),) * len(target))


def test_survival_counts_drafts_that_the_text_is_long_enough_for():
    """Rounds: 1 2 3 and 4 for the wrong 0; 5 6 and the text's end."""
    table = survival([made_up((1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 0, 5, 6, 7))], "draft", length=4)
    assert list(table.at_risk) == [2, 2, 1, 1]
    assert list(table.rate) == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "drafters, matrix, lenience, said",
    [
        (("target",), ((1,),), 1.0, "a row per drafter of middle, draft, Max-Gram"),
        (THREE[1:], ((1,),), 1.0, "got 1 rows and draft, Max-Gram"),
        ((MAX_GRAM, "draft"), ((1, 1), (0, 1)), 1.0, r"\(the last\); got 2 rows"),
        (("draft",), ((0,),), 1.0, "an empty cascade proposes nothing"),
        (THREE[1:], ((1, 2), (1, 2)), 1.0, "upper triangular"),
        (THREE[1:], ((1, 2), (0, 2)), 0.5, "a finite number of at least 1"),
        (THREE[1:], ((1, 2), (0, 2)), math.inf, "a finite number of at least 1"),
        ((MAX_GRAM,), ((65,),), 1.0, "recorded for up to 64 tokens, a K matrix wants 65"),
    ],
)
def test_a_setting_that_cannot_be_replayed_is_refused(recordings, drafters, matrix, lenience, said):
    with pytest.raises(ValueError, match=said):
        replay_cascade(recordings[SAMPLERS[0]][0], CascadeSetting(drafters, matrix, lenience))


def test_bad_recordings_prices_and_starts_are_refused(ladder, recordings):
    texts, one = recordings[SAMPLERS[0]], CascadeSetting(("draft",), ((1,),))
    with pytest.raises(ValueError, match="needs prompts, got none"):
        record([], ladder)
    with pytest.raises(ValueError, match="middle, draft, Max-Gram, got 'large'"):
        CascadeSetting(("large",), ((1,),)).draft(ladder)
    with pytest.raises(ValueError, match="draft has none"):
        replayed_swi(texts, one, {"target": 1.0})
    with pytest.raises(ValueError, match="the drafters tuned are middle, a start has draft"):
        tune(texts, ("middle",), PRICES, starts=[one], progress=False)
    with pytest.raises(ValueError, match="at least one recording"):
        replayed_swi([], one, PRICES)


FOLLOWED = (Sampler(0.0), Sampler(0.8), Sampler(1.0, top_k=20))


def drafts(ladder, sampler):
    match = ladder.match("draft", sampler)
    return [
        TreeDraft(ladder.draft, budget=8, depth=4, match=match),
        TreeDraft(ladder.draft, widths=(3, 1)),
        ChainDraft(ladder.draft, 3),
        ladder.max_gram,
    ]


def kept(generation) -> list[tuple]:
    """What is compared of each round."""
    return [(one.tree, one.path, one.emitted, one.tried) for one in generation.rounds]


@pytest.mark.parametrize("sampler", FOLLOWED, ids=str)
def test_followed_rounds_are_the_loops_own(ladder, prompts, sampler, unchecked):
    context, chance = Context.of(ladder.encode(prompts[1])), Chance(5, sampler)
    text, stops = own_text(ladder.target, context, chance, max_new_tokens=24), ladder.stop_tokens
    for draft in (*drafts(ladder, sampler), NoDraft()):
        limits = {"max_new_tokens": 24, "stop_tokens": stops}
        real = decode(ladder.target, draft, context, chance, **limits)
        found = replay_draft(text, draft, chance, stop_tokens=stops)
        assert kept(found) == kept(real)
        assert found.stop == real.stop and "target" not in found.rounds[0].usage


def test_another_seeds_text_gives_other_rounds(ladder, prompts):
    context, sampler = Context.of(ladder.encode(prompts[1])), Sampler(1.0)
    text = own_text(ladder.target, context, Chance(5, sampler), max_new_tokens=24)
    draft = TreeDraft(ladder.draft, budget=8, depth=4)
    right, wrong = (replay_draft(text, draft, Chance(seed, sampler)) for seed in (5, 6))
    assert len(wrong.rounds) > len(right.rounds) and wrong.tokens == right.tokens


@pytest.mark.parametrize("sampler", FOLLOWED, ids=str)
def test_a_text_that_ends_with_a_stop_token_has_the_rounds_of_decoding(ladder, prompts, sampler):
    """Nothing is known of what would follow; a limit that ends with the text would forbid the last
    guesses, which is the control.
    """
    context, chance = Context.of(ladder.encode(prompts[1])), Chance(5, sampler)
    whole = own_text(ladder.target, context, chance, max_new_tokens=24).tokens
    stop = whole[9]
    written, differ = whole[: whole.index(stop) + 1], 0
    texts = [OwnText.of(ladder.target, context, written, limit) for limit in (24, len(written))]
    for draft in drafts(ladder, sampler):
        limits = {"max_new_tokens": 24, "stop_tokens": (stop,)}
        real = decode(ladder.target, draft, context, chance, **limits)
        found, short = (replay_draft(text, draft, chance, stop_tokens=(stop,)) for text in texts)
        assert kept(found) == kept(real) and found.stop == real.stop == "stop token"
        differ += short.rounds[-1].tree != real.rounds[-1].tree
    assert differ
    with pytest.raises(ValueError, match="not a stop token"):
        replay_draft(texts[0], draft, chance)
