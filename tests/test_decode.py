"""The loop: what it emits and records, where it stops, that rounds stream, what it refuses."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fakes import assert_refused, table_model
from test_lm import network

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode, loop, models_in, rounds
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.table import TableModel

PROMPT, T1 = (1, 2, 0), Sampler(1.0)
NOTHING = NoDraft()
TARGET, DRAFT = table_model(5, 1), table_model(5, 2, name="draft")
PERFECT = table_model(5, 1, name="draft")


def run(target, draft, length=20, *, prompt=PROMPT, seed=0, sampler=T1, **options) -> Generation:
    return decode(target, draft, prompt, Chance(seed, sampler), max_new_tokens=length, **options)


def networks(*kinds) -> tuple[CachedModel, CachedModel]:
    names = ("target", "draft")
    return tuple(CachedModel(network(kind), name) for kind, name in zip(kinds, names, strict=True))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_greedy_output_equals_generate(kind):
    target, model = networks(kind, "gpt2")
    given = torch.tensor([PROMPT])
    options = {"attention_mask": torch.ones_like(given), "max_new_tokens": 20, "pad_token_id": 0}
    wanted = target.model.generate(given, do_sample=False, eos_token_id=None, **options)[0]
    found = run(target, ChainDraft(model, 3), sampler=Sampler(0))
    assert [*PROMPT, *found.tokens] == wanted.tolist()


def test_a_round_says_who_guessed_what():
    target, model = networks("gpt2", "llama")
    tree = TreeDraft(model, widths=(2, 2))
    generation = run(target, tree, 16, seed=1, sampler=Sampler(0))
    for played in generation.rounds:
        if len(played.emitted) == played.accepted + 1:
            assert played.sources == ("draft",) * played.accepted + ("target",)
        else:
            assert played is generation.rounds[-1]
        assert played.tried in (played.accepted, played.accepted + 1)
        used = played.usage["target"]
        assert (used.passes, used.rows) == (1, played.proposed + 1)
        assert played.seconds >= played.overhead_seconds >= 0
    assert sum(len(played.emitted) for played in generation.rounds) == 16
    read = {name: used.rows for name, used in generation.prefill.items()}
    assert read == dict.fromkeys(("target", "draft"), len(PROMPT) - 1)


def test_the_context_end_is_a_stop():
    for draft in (NOTHING, ChainDraft(DRAFT, 4)):
        generation = run(table_model(5, 1, max_positions=12), draft, 99)
        assert generation.stop == "context" and len(generation.context) == 13


@pytest.mark.parametrize("draft", [NOTHING, ChainDraft(PERFECT, 4), ChainDraft(PERFECT, 6)])
def test_a_stop_token_in_the_path_and_the_length_limit_are_kept_exactly(draft, unchecked):
    plain = run(TARGET, NOTHING, 8, seed=2).tokens
    for stop in plain:
        stopped = run(TARGET, draft, 8, seed=2, stop_tokens=torch.tensor([stop]))
        assert stopped.tokens == plain[: plain.index(stop) + 1] and stopped.stop == "stop token"
    for length in range(1, 8):
        assert run(TARGET, draft, length, seed=2).tokens == plain[:length]


@pytest.mark.parametrize("length, proposed, emitted", [(20, [4] * 4, [5] * 4), (7, [4, 1], [5, 2])])
def test_a_perfect_draft_emits_its_length_and_a_bonus_and_no_more(length, proposed, emitted):
    """The target verifies no guess beyond the tokens that were asked for."""
    found = run(TARGET, ChainDraft(PERFECT, 4), length)
    assert [played.proposed for played in found.rounds] == proposed
    assert [len(played.emitted) for played in found.rounds] == emitted
    assert found.stop == "length" and found.tokens_per_round == length / len(emitted)


def test_a_generation_can_go_on_from_a_context_and_an_array_is_a_prompt(unchecked):
    whole, part = run(TARGET, NOTHING, 8), run(TARGET, NOTHING, 3)
    rest = run(TARGET, NOTHING, 5, prompt=part.context)
    assert run(TARGET, NOTHING, 8, prompt=np.array(PROMPT)).tokens == whole.tokens
    assert rest.context == whole.context and rest.context.prompt_tokens == len(PROMPT)
    assert len(rest.tokens) == 5 and rest.tokens_per_round == 1


def test_rounds_stream_while_the_loop_runs():
    passes, known = [], TARGET.logits
    spied = TableModel(lambda tokens: passes.append(tokens) or known(tokens), 5, "table")
    limits, seen = {"max_new_tokens": 3}, []
    for played, stop in rounds(spied, NOTHING, PROMPT, Chance(0), **limits):
        seen.append((len(played.emitted), stop, len(passes)))
    assert seen == [(1, None, 1), (1, None, 2), (1, "length", 3)]


@dataclass(frozen=True, slots=True)
class Composite:
    """A draft that keeps its parts, in a list or a dictionary, in a slot."""

    parts: list | dict

    def propose(self, context, chance): ...


def test_models_are_found_in_every_place_and_one_used_twice_is_counted_once():
    chain = ChainDraft(DRAFT, 2)
    for parts in ([chain], {"first": chain}):
        assert set(models_in(TARGET, Composite(parts))) == {"table", "draft"}
    assert models_in(TARGET, ChainDraft(TARGET, 2)) == {"table": TARGET}


SHORT, SMALL = table_model(5, 1, max_positions=2), ChainDraft(table_model(4, 1, name="draft"), 2)
BAD = [
    ({"draft": SMALL}, "vocabulary: draft has 4 tokens, table 5"),
    ({"draft": MaxGram(np.arange(4))}, "vocabulary: MaxGram has 4 tokens, table 5"),
    ({"prompt": ()}, "prompt is empty"),
    ({"prompt": (5,)}, "token 5, the target's vocabulary ends at 4"),
    ({"target": SHORT}, "3 tokens, the target reads at most 2"),
    ({"max_new_tokens": 0}, "max_new_tokens of .* number from 1 to 1,048,576, got 0"),
    ({"draft": ChainDraft(table_model(5, 2), 2)}, "two models are called 'table'"),
]


@pytest.mark.parametrize("given, message", BAD)
def test_bad_input_is_refused_before_any_work(given, message, monkeypatch):
    monkeypatch.setattr(TableModel, "score", lambda *_: pytest.fail("a model was asked"))
    usual = {"target": TARGET, "draft": NOTHING, "prompt": PROMPT, "max_new_tokens": 5}
    for start in (decode, rounds):
        with pytest.raises(ValueError, match=message):
            start(chance=Chance(0), **usual | given)


class Listing:
    """Proposes a list where a tree is meant."""

    def propose(self, context, chance):
        return [1, 2]


def ask(draft=NOTHING, prompt=PROMPT, **more) -> Generation:
    return run(TARGET, draft, 2, prompt=prompt, **more)


TOKENS = "prompt of decode must be a Context or a sequence of whole numbers"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        *(
            (lambda wrong=wrong: ask(prompt=wrong), TOKENS)
            for wrong in ("def f():", torch.zeros(1, 3))
        ),
        (lambda: ask(DRAFT), "draft of decode must be a Draft, got TableModel"),
        (lambda: ask(Listing()), r"a draft proposes a TokenTree, got \[1, 2\]"),
        (lambda: ask(rule="reject"), "rule of decode must be a Rule, got 'reject'"),
        (lambda: ask(stop_tokens="56"), "stop_tokens of decode must"),
        (
            lambda: ask(stop_tokens=(0, 5)),
            "a stop token is 0 to 4 in the target's vocabulary, got 5",
        ),
    ],
)
def test_another_kind_of_thing_is_refused_by_name(call, said):
    assert_refused(call, said)


def test_the_arguments_of_a_generation_are_checked_once(monkeypatch):
    checks = []
    check = loop.check_arguments

    def counted(*given):
        checks.append(given)
        return check(*given)

    monkeypatch.setattr(loop, "check_arguments", counted)
    decode(TARGET, NOTHING, PROMPT, Chance(0), max_new_tokens=3)
    assert len(checks) == 1
    rounds(TARGET, NOTHING, PROMPT, Chance(0), max_new_tokens=3)
    assert len(checks) == 2
