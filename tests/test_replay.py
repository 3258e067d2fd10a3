"""Replays have the rounds of real runs: of cascades, and of any draft along a text; the tuner."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from fakes import assert_refused, recording

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, Choices, Recording, record
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.studies import CHECKED, survival
from specdec_lib.measure.cascade.tune import replayed_swi, tune
from specdec_lib.measure.recorded_target import RecordedTarget, record_target, replay_draft
from specdec_lib.workload import load_pair, load_prompts, seeds

SAMPLERS = (Sampler(0), Sampler(1.0))
TOKENS = 24
PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
THREE = ("middle", "draft", MAX_GRAM)


@pytest.fixture(scope="module")
def recordings(ladder, prompts) -> dict[Sampler, list[Recording]]:
    how = {"max_new_tokens": TOKENS, "progress": False}
    return {sampler: record(prompts[:2], ladder, sampler, **how) for sampler in SAMPLERS}


@pytest.mark.usefixtures("unchecked")
def test_a_replay_has_the_real_rounds_and_nearly_the_calls(ladder, prompts, recordings):
    """Each setting on a text: tokens of every round are equal; calls of drafters, all together,
    within a tenth on texts as short as these.
    """
    calls, limits = np.zeros(2), {"max_new_tokens": TOKENS, "stop_tokens": ladder.stop_tokens}
    for number, setting in enumerate(CHECKED):
        sampler, place = SAMPLERS[number % 2], number // 2 % 2
        given, chance = ladder.encode(prompts[place]), Chance(seeds(prompts[:2], 0)[place], sampler)
        real = decode(ladder.target, setting.draft(ladder), given, chance, **limits).rounds
        played = replay_cascade(recordings[sampler][place], setting)
        assert played.emitted == tuple(len(one.emitted) for one in real), setting
        for name in {"middle", "draft"} & set(setting.drafters):
            used = (one.usage[name].passes for one in real if name in one.usage)
            calls += (played.passes[name], sum(used))
    assert calls[0] == pytest.approx(calls[1], rel=0.1)


@pytest.mark.usefixtures("unchecked")
def test_a_cascade_on_a_pair_replays_as_it_decodes():
    """Max-Gram copies from the source there, and there is no middle model."""
    pair, prompts = load_pair(device="cpu"), load_prompts("docstring", "held-out", 2)
    limits = {"max_new_tokens": 16, "stop_tokens": pair.stop_tokens}
    made = record(prompts, pair, max_new_tokens=16, progress=False)
    both = CascadeSetting(("draft", MAX_GRAM), ((2, 4), (0, 3)))
    for setting in (both, CascadeSetting((MAX_GRAM,), ((5,),))):
        found = []
        for prompt, own, recorded in zip(prompts, seeds(prompts, 0), made, strict=True):
            chance = Chance(own, Sampler())
            real = decode(pair.target, setting.draft(pair), pair.encode(prompt), chance, **limits)
            assert recorded.tokens == real.tokens
            found.append(tuple(len(one.emitted) for one in real.rounds))
        assert [replay_cascade(one, setting).emitted for one in made] == found
        assert setting is not both or max(map(max, found)) > 1  # guesses are accepted
    with pytest.raises(ValueError, match="drafters here are draft, Max-Gram, got 'middle'"):
        CascadeSetting(("middle",), ((1,),)).draft(pair)


def test_choices_of_another_seed_give_other_rounds(ladder, prompts, recordings):
    """The negative control: what the drafters said elsewhere does not replay this text."""
    mine, other = recordings[SAMPLERS[1]]
    confused = replace(mine, choices=other.choices)
    setting = CascadeSetting(("middle", "draft"), ((2, 2), (0, 2)))
    assert replay_cascade(confused, setting).emitted != replay_cascade(mine, setting).emitted


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


def test_survival_counts_drafts_that_the_text_is_long_enough_for():
    """Rounds: 1 2 3 and 4 for the wrong 0; 5 6 and the text's end."""
    said = Choices((1, 2, 3, 0, 5, 6, 7), tuple({token: 0.9} for token in (1, 2, 3, 0, 5, 6, 7)))
    text = Recording("made up", Sampler(0), (1, 2, 3, 4, 5, 6, 7), {"draft": said}, ((),) * 7)
    table = survival([text], "draft", length=4)
    assert list(table.at_risk) == [2, 2, 1, 1]
    assert list(table.rate) == [1.0, 1.0, 1.0, 0.0]


MADE_UP, ONE = recording("made up", 0), CascadeSetting(("draft",), ((1,),))
REFUSED = [
    ((("target",), ((1,),)), "a row per drafter of middle, draft, Max-Gram"),
    ((THREE[1:], ((1,),)), "got 1 rows and draft, Max-Gram"),
    (((MAX_GRAM, "draft"), ((1, 1), (0, 1))), r"\(last\); got 2 rows"),
    ((("draft",), ((0,),)), "an empty cascade proposes nothing"),
    ((THREE[1:], ((1, 2), (1, 2))), "upper triangular"),
    ((THREE[1:], ((1, 2), (0, 2)), 0.5), "a number from 1 to"),
    (((MAX_GRAM,), ((65,),)), r"for 64 tokens at most; K is \(\(65,\),\)"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        *(
            (lambda setting=setting: replay_cascade(MADE_UP, CascadeSetting(*setting)), said)
            for setting, said in REFUSED
        ),
        (lambda: replayed_swi([MADE_UP], ONE, {"target": 1.0}), "draft has none in"),
        (lambda: replayed_swi([MADE_UP], ONE, PRICES | {"draft": -0.1}), "draft has none in {'t"),
        (lambda: replayed_swi([], ONE, PRICES), "at least one recording"),
        (
            lambda: tune([MADE_UP], ("middle",), PRICES, starts=[ONE]),
            "are middle, a start has draft",
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused(call, said):
    assert_refused(call, said)


def test_a_drafter_that_the_ladder_lacks_is_refused(ladder):
    with pytest.raises(ValueError, match="middle, draft, Max-Gram, got 'large'"):
        CascadeSetting(("large",), ((1,),)).draft(ladder)


FOLLOWED = (Sampler(0.0), Sampler(0.8), Sampler(1.0, top_k=20))


def kept(generation) -> list[tuple]:
    """What is compared of each round."""
    return [(one.tree, one.path, one.emitted, one.tried) for one in generation.rounds]


@pytest.mark.parametrize("sampler", FOLLOWED, ids=str)
def test_followed_rounds_are_the_loops_own(ladder, prompts, sampler, unchecked):
    """To a limit, and to a stop token after which nothing is known; a limit that ends with such a
    text would forbid the last guesses, which is the control.
    """
    context, chance = Context.of(ladder.encode(prompts[1])), Chance(5, sampler)
    whole = record_target(ladder.target, context, chance, max_new_tokens=24)
    written = whole.tokens[: whole.tokens.index(whole.tokens[9]) + 1]
    ended, short = (
        RecordedTarget.of(ladder.target, context, written, limit) for limit in (24, len(written))
    )
    match, stopped, differ = ladder.match("draft", sampler), {"stop_tokens": written[-1:]}, 0
    for draft in (
        TreeDraft(ladder.draft, budget=8, depth=4, match=match),
        TreeDraft(ladder.draft, widths=(3, 1)),
        *(ChainDraft(ladder.draft, 3), ladder.max_gram, NoDraft()),
    ):
        for text, stops in ((whole, {"stop_tokens": ladder.stop_tokens}), (ended, stopped)):
            real = decode(ladder.target, draft, context, chance, max_new_tokens=24, **stops)
            found = replay_draft(text, draft, chance, **stops)
            assert kept(found) == kept(real) and found.stop == real.stop
            assert "target" not in found.rounds[0].usage
        differ += kept(replay_draft(short, draft, chance, **stopped)) != kept(real)
    assert differ and real.stop == "stop token"
    with pytest.raises(ValueError, match="not a stop token"):
        replay_draft(ended, draft, chance)


def test_another_seeds_text_gives_other_rounds(ladder, prompts):
    context, sampler = Context.of(ladder.encode(prompts[1])), Sampler(1.0)
    text = record_target(ladder.target, context, Chance(5, sampler), max_new_tokens=24)
    draft = TreeDraft(ladder.draft, budget=8, depth=4)
    right, wrong = (replay_draft(text, draft, Chance(seed, sampler)) for seed in (5, 6))
    assert len(wrong.rounds) > len(right.rounds) and wrong.tokens == right.tokens
