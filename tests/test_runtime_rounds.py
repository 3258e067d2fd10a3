"""Whole rounds on the device give, round for round, what the loop gives with the same tree, seed and sampler; nothing in them depends on data."""

import pytest
import torch
from test_lm import VOCABULARY, network
from transformers import GPT2LMHeadModel

from specdec_lib.chance import Chance, Sampler, gumbel_noise
from specdec_lib.decode import decode
from specdec_lib.draft import NoDraft, TreeDraft
from specdec_lib.lm import CachedModel
from specdec_lib.runtime import rounds as module
from specdec_lib.runtime.choosing import Choices, log_probs, noise_of, noise_starts
from specdec_lib.runtime.rounds import ROOT_ALONE, GraphRounds
from specdec_lib.theory import Shape

SAMPLERS = {
    "greedy": Sampler(0),
    "top-k 50": Sampler(1.0, top_k=50),
    "top-k 3": Sampler(0.8, top_k=3),
    "top-p": Sampler(1.2, top_p=0.7),
}
SHAPES = {
    "chain": Shape.chain(4),
    "tree": Shape.of_widths((3, 2, 1)),
    "wider than the law": Shape.of_widths((4, 4)),
    "uneven": Shape((-1, 0, 0, 0, 1, 1, 4, 2, 6, 8)),
}
PROMPTS = ((1, 2, 3), (5,), tuple(range(VOCABULARY)))


def pair() -> tuple[torch.nn.Module, torch.nn.Module]:
    """A target, and a draft that is often right: the target with noisy weights."""
    target, draft = network("gpt2"), network("gpt2")
    torch.manual_seed(3)
    with torch.no_grad():
        for weight in target.parameters():
            weight.mul_(4.0 if weight.ndim == 2 else 1.0)
        for weight, own in zip(draft.parameters(), target.parameters(), strict=True):
            weight.copy_(own + 0.15 * own.abs().mean() * torch.randn_like(own))
    return target, draft


def emitted(rounds: GraphRounds, prompt: tuple[int, ...], seed: int = 11, **limits) -> list[tuple[int, ...]]:
    return list(rounds.rounds(prompt, seed, **{"max_new_tokens": 40} | limits))


def decoded(target, draft, prompt: tuple[int, ...], sampler: Sampler, seed: int = 11, **limits) -> list[tuple[int, ...]]:
    made = decode(CachedModel(target, "target"), draft, prompt, Chance(seed, sampler), **{"max_new_tokens": 40} | limits)
    return [played.emitted for played in made.rounds]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_round_emits_what_the_loop_emits(sampler, shape, unchecked):
    target, draft = pair()
    rounds = GraphRounds(target, draft, SHAPES[shape], SAMPLERS[sampler])
    tree = TreeDraft(CachedModel(draft, "draft"), shape=SHAPES[shape])
    for prompt in PROMPTS:  # one after the other: what an earlier prompt left changes nothing
        made = emitted(rounds, prompt)
        assert made == decoded(target, tree, prompt, SAMPLERS[sampler])
        assert max(map(len, made)) > 1


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_llamas_play_the_same_rounds(sampler):
    target, draft = network("grouped-query llama"), network("llama")
    shape = Shape.of_widths((3, 2))
    made = emitted(GraphRounds(target, draft, shape, SAMPLERS[sampler]), (1, 2, 3))
    assert made == decoded(target, TreeDraft(CachedModel(draft, "draft"), shape=shape), (1, 2, 3), SAMPLERS[sampler])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_root_alone_is_plain_decoding(sampler):
    target, _ = pair()
    made = emitted(GraphRounds(target, None, ROOT_ALONE, SAMPLERS[sampler]), (1, 2, 3))
    assert made == decoded(target, NoDraft(), (1, 2, 3), SAMPLERS[sampler])


@pytest.mark.parametrize("prompt", [(1, 2, 3), (1,) * 60, (1,) * 64])
def test_the_end_of_the_context_and_a_draft_of_fewer_positions(prompt, unchecked):
    target, _ = pair()
    _, draft = pair()
    short = network("gpt2", positions=40)
    short.load_state_dict({name: weight[:40] if "wpe" in name else weight for name, weight in draft.state_dict().items()})
    for guesser in (draft, short):
        shape = Shape.of_widths((2, 2, 1, 1))
        made = emitted(GraphRounds(target, guesser, shape, Sampler(1.0)), prompt, max_new_tokens=500)
        assert made == decoded(target, TreeDraft(CachedModel(guesser, "draft"), shape=shape), prompt, Sampler(1.0), max_new_tokens=500)


def test_stop_tokens_and_limits_cut_as_in_the_loop(unchecked):
    target, draft = pair()
    shape = Shape.of_widths((3, 2, 1))
    rounds, tree = GraphRounds(target, draft, shape, Sampler(1.0)), TreeDraft(CachedModel(draft, "draft"), shape=shape)
    for seed, limits in enumerate([{"stop_tokens": (2, 7)}, {"stop_tokens": (3,)}, {"max_new_tokens": 1}, {"max_new_tokens": 7}] * 2):
        assert emitted(rounds, (1, 2, 3), seed, **limits) == decoded(target, tree, (1, 2, 3), Sampler(1.0), seed, **limits)


def test_the_embedded_pair_writes_the_same_rounds(ladder, prompts, unchecked):
    shape, models = Shape.of_widths((3, 2, 1, 1)), (ladder.target.model, ladder.draft.model)
    for sampler in (Sampler(0), Sampler(1.0, top_k=50)):
        rounds = GraphRounds(*models, shape, sampler)
        for number, prompt in enumerate(prompts[:2]):
            given = (ladder.encode(prompt), sampler, number)
            made = emitted(rounds, given[0], number, max_new_tokens=16)
            assert made == decoded(ladder.target.model, TreeDraft(ladder.draft, shape=shape), *given, max_new_tokens=16)


def test_each_part_is_seen_by_a_watch_and_changes_nothing():
    target, draft = pair()
    seen = []
    rounds = GraphRounds(target, draft, Shape.chain(3), Sampler(0), watch=seen.append)
    made = emitted(rounds, (1, 2, 3))
    assert made == emitted(GraphRounds(target, draft, Shape.chain(3), Sampler(0)), (1, 2, 3))
    assert seen == list(module.PARTS) * len(made)


def not_moved(round_) -> None:
    round_.path = torch.zeros_like(round_.path) + round_.steps
    module_move(round_)


module_move = module._Round.move


def differing(sampler: Sampler) -> bool:
    """Whether any round differs from the loop's."""
    target, draft = pair()
    shape = Shape.of_widths((3, 2, 1))
    tree = TreeDraft(CachedModel(draft, "draft"), shape=shape)
    return any(
        emitted(GraphRounds(target, draft, shape, sampler), prompt, seed) != decoded(target, tree, prompt, sampler, seed)
        for seed, prompt in enumerate(PROMPTS)
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_path_that_is_not_moved_is_caught(monkeypatch, sampler, unchecked):
    monkeypatch.setattr(module._Round, "move", not_moved)
    assert differing(SAMPLERS[sampler])


def test_noise_that_is_one_position_off_is_caught(monkeypatch, unchecked):
    monkeypatch.setattr(module, "noise_starts", lambda seed, positions: noise_starts(seed, [position + 1 for position in positions]))
    assert differing(Sampler(1.0, top_k=50))


def test_a_draft_whose_noise_is_one_position_off_is_caught_though_the_tokens_are_right(monkeypatch, unchecked):
    guess = Choices.guess
    monkeypatch.setattr(Choices, "guess", lambda self, logits, noise, k: guess(self, logits, noise if noise is None else noise.roll(1, -1), k))
    assert differing(Sampler(1.0, top_k=50))
    target, draft = pair()
    made = emitted(GraphRounds(target, draft, Shape.chain(3), Sampler(1.0)), (1, 2, 3))
    assert sum(made, ()) == sum(decoded(target, NoDraft(), (1, 2, 3), Sampler(1.0)), ())


def test_a_draft_that_never_reads_the_deepest_guess_again_is_caught(monkeypatch, unchecked):
    read = module._Round._read_draft

    def forgetful(self, readers, tokens, depth):
        if depth == 0:
            self.caches[-1][:, 1:].index_fill_(1, (self.whole.length - 2).clamp(min=0), 1.0)
            keep = self.caches[-1].clone()
            logits = read(self, readers, tokens, depth)
            self.caches[-1].copy_(keep)
            return logits
        return read(self, readers, tokens, depth)

    monkeypatch.setattr(module._Round, "_read_draft", forgetful)
    assert differing(Sampler(0))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_nothing_in_a_round_depends_on_data_or_leaves_the_device(sampler):
    assert faked(SAMPLERS[sampler], lambda one: [part() for part in (one.draft, one.verify, one.choose, one.move)])


def test_looking_at_a_number_in_a_round_is_caught():
    with pytest.raises(RuntimeError, match="item"):
        faked(Sampler(0), lambda one: [one.draft(), int(one.tokens[0])])


def test_a_tensor_from_the_host_in_a_round_is_caught():
    with pytest.raises(RuntimeError, match="device cpu"):
        faked(Sampler(0), lambda one: [one.draft(), one.tokens + torch.ones(len(one.tokens))])


@torch.no_grad()
def faked(sampler: Sampler, run) -> bool:
    """Parts of a round on a device that has shapes and no numbers: whoever looks at one, or brings one from the host, fails."""
    models = [network(kind).to("meta") for kind in ("gpt2", "grouped-query llama")]
    rounds = GraphRounds(*models, Shape.of_widths((3, 2, 1)), sampler)
    run(module._Round(rounds, 256))
    return True


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_choices_are_those_of_chance(sampler):
    chance, choices = Chance(5, SAMPLERS[sampler]), Choices(SAMPLERS[sampler])
    logits = 2 * torch.randn(6, 300, generator=torch.Generator().manual_seed(0))
    logits[2:4] = logits[2:4].round()  # ties
    noise = noise_of(noise_starts(5, range(30, 36)), 300) if choices.needs_noise else None
    assert choices.choose(logits, noise).tolist() == [chance.choose(row, 30 + at) for at, row in enumerate(logits)]
    tokens, possible = choices.guess(logits, noise, 5)
    for at, row in enumerate(logits):
        ranked = chance.rank(row, 30 + at, 5)[0]
        found = tokens[at][possible[at]].tolist()
        assert found == ranked or (noise is None and sorted(row[found].tolist()) == sorted(row[ranked].tolist()))
        if noise is not None:
            torch.testing.assert_close(log_probs(logits, SAMPLERS[sampler])[at], SAMPLERS[sampler].log_probs(row), rtol=1e-6, atol=1e-6)


def test_the_noise_is_that_of_chance_bit_for_bit():
    made = noise_of(noise_starts(123456789, range(900, 904)), 50257)
    for row, position in zip(made, range(900, 904), strict=True):
        assert torch.equal(row, gumbel_noise(123456789, position, 50257))


def test_what_cannot_play_together_is_refused():
    target, draft = pair()
    with pytest.raises(ValueError, match="a tree of 3 guesses needs a draft"):
        GraphRounds(target, None, Shape.chain(3), Sampler(0))
    with pytest.raises(ValueError, match="a tree of 0 guesses needs no draft"):
        GraphRounds(target, draft, ROOT_ALONE, Sampler(0))
    other = GPT2LMHeadModel(type(target.config)(**target.config.to_dict() | {"vocab_size": 18})).double()
    with pytest.raises(ValueError, match="it has 18 tokens, the target 17"):
        GraphRounds(target, other, Shape.chain(3), Sampler(0))
    rounds = GraphRounds(target, None, ROOT_ALONE, Sampler(0))
    for prompt, limit in (((1,) * 65, 1), ((17,), 1), ((1,), 0)):
        with pytest.raises(ValueError, match="at most 64 tokens below 17 are continued by at least 1 token"):
            rounds.rounds(prompt, 0, max_new_tokens=limit)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("watch", [None, lambda part: None])
def test_replayed_rounds_emit_what_the_loop_emits(sampler, watch):
    target, draft = (model.cuda() for model in pair())
    shape = Shape.of_widths((3, 2, 1))
    rounds = GraphRounds(target, draft, shape, SAMPLERS[sampler], watch=watch)
    for prompt in PROMPTS:
        assert emitted(rounds, prompt) == decoded(target, TreeDraft(CachedModel(draft, "draft"), shape=shape), prompt, SAMPLERS[sampler])
