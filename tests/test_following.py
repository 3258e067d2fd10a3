"""Rounds followed along the target's own text are those of the real loop."""

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.replay import OwnText, own_text, replay_draft

SAMPLERS = (Sampler(0.0), Sampler(0.8), Sampler(1.0, top_k=20))


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


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["greedy", "T=0.8", "top-k"])
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


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["greedy", "T=0.8", "top-k"])
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
