"""The loop: what it emits, where it stops, what it records, and what it refuses before any work."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fakes import table_model
from test_lm import network

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode, models_in, rounds
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.table import TableModel

PROMPT = (1, 2, 0)


@dataclass(frozen=True)
class Both:
    """A composite draft that keeps its parts in a list."""

    parts: list

    def propose(self, context, chance):
        return self.parts[0].propose(context, chance)


DRAFTS = {
    "chain": lambda model: ChainDraft(model, 4),
    "tree": lambda model: TreeDraft(model, widths=(3, 2, 1)),
    "budget": lambda model: TreeDraft(model, budget=8, depth=4),
    "top": lambda model: TreeDraft(model, widths=(2, 2), siblings="top"),
    "drawn": lambda model: TreeDraft(model, widths=(2, 2), siblings="iid"),
}


@pytest.mark.parametrize(
    "sampler", [Sampler(0), Sampler(1.0), Sampler(0.8, top_k=3, top_p=0.9)], ids=str
)
@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
def test_the_output_is_the_targets_own_for_the_seed(draft, sampler):
    target, model = table_model(5, 1), table_model(5, 2, name="draft")
    for seed in range(5):
        plain = decode(target, NoDraft(), PROMPT, Chance(seed, sampler), max_new_tokens=30).tokens
        assert (
            decode(target, draft(model), PROMPT, Chance(seed, sampler), max_new_tokens=30).tokens
            == plain
        )


@pytest.mark.parametrize(
    "kinds", [("gpt2", "gpt2"), ("llama", "gpt2"), ("grouped-query llama", "llama")]
)
def test_cached_networks_give_the_targets_own_output(kinds):
    target, model = (
        CachedModel(network(kind), name)
        for kind, name in zip(kinds, ("target", "draft"), strict=True)
    )
    for make in DRAFTS.values():
        plain = decode(target, NoDraft(), PROMPT, Chance(3, Sampler(1.0)), max_new_tokens=24).tokens
        assert (
            decode(target, make(model), PROMPT, Chance(3, Sampler(1.0)), max_new_tokens=24).tokens
            == plain
        )


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_greedy_output_equals_generate(kind):
    model = network(kind)
    with torch.no_grad():
        prompt = torch.tensor([PROMPT])
        mask = torch.ones_like(prompt)
        wanted = model.generate(
            prompt,
            attention_mask=mask,
            max_new_tokens=20,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(PROMPT) :]
    found = decode(
        CachedModel(model, "target"),
        ChainDraft(CachedModel(network("gpt2"), "draft"), 3),
        PROMPT,
        Chance(0),
        max_new_tokens=20,
    )
    assert list(found.tokens) == wanted.tolist()


def test_a_round_says_who_guessed_what():
    target, model = CachedModel(network("gpt2"), "target"), CachedModel(network("llama"), "draft")
    generation = decode(
        target, TreeDraft(model, widths=(2, 2)), PROMPT, Chance(1), max_new_tokens=16
    )
    for played in generation.rounds:
        whole = len(played.emitted) == played.accepted + 1
        assert (
            played.sources == ("draft",) * played.accepted + ("target",)
            if whole
            else played is generation.rounds[-1]
        )
        assert played.tried in (played.accepted, played.accepted + 1)
        assert (
            played.usage["target"].passes == 1
            and played.usage["target"].rows == played.proposed + 1
        )
        assert played.seconds >= played.overhead_seconds >= 0
    assert sum(len(played.emitted) for played in generation.rounds) == 16


def test_reading_the_prompt_is_counted_apart():
    target, model = CachedModel(network("gpt2"), "target"), CachedModel(network("llama"), "draft")
    generation = decode(target, ChainDraft(model, 2), (1,) * 20, Chance(1), max_new_tokens=4)
    assert {name: used.rows for name, used in generation.prefill.items()} == {
        "target": 19,
        "draft": 19,
    }
    assert generation.rounds[0].usage["target"].rows == 3


@pytest.mark.parametrize("draft", [NoDraft(), ChainDraft(table_model(5, 2, name="draft"), 4)])
def test_the_context_end_is_a_stop(draft):
    generation = decode(
        table_model(5, 1, max_positions=12), draft, PROMPT, Chance(0), max_new_tokens=99
    )
    assert generation.stop == "context" and len(generation.context) == 13


def test_a_stop_token_ends_the_generation_and_is_emitted():
    plain = decode(
        table_model(5, 1), NoDraft(), PROMPT, Chance(2, Sampler(1.0)), max_new_tokens=20
    ).tokens
    stop = plain[6]
    for draft in (NoDraft(), ChainDraft(table_model(5, 1, name="draft"), 6)):
        generation = decode(
            table_model(5, 1),
            draft,
            PROMPT,
            Chance(2, Sampler(1.0)),
            max_new_tokens=20,
            stop_tokens=[stop],
        )
        assert (
            generation.tokens == plain[: plain.index(stop) + 1] and generation.stop == "stop token"
        )


def test_a_generation_can_go_on_from_a_context():
    whole = decode(table_model(5, 1), NoDraft(), PROMPT, Chance(0, Sampler(1.0)), max_new_tokens=8)
    part = decode(table_model(5, 1), NoDraft(), PROMPT, Chance(0, Sampler(1.0)), max_new_tokens=3)
    rest = decode(
        table_model(5, 1), NoDraft(), part.context, Chance(0, Sampler(1.0)), max_new_tokens=5
    )
    assert rest.context == whole.context and rest.context.prompt_tokens == len(PROMPT)
    assert len(rest.tokens) == 5 and rest.tokens_per_round == 1


T, SHORT = table_model(5, 1), table_model(5, 1, max_positions=2)
SMALL = ChainDraft(table_model(4, 1, name="draft"), 2)


@pytest.mark.parametrize(
    "target,draft,prompt,length,message",
    [
        (T, SMALL, PROMPT, 5, "vocabulary: draft has 4 tokens, table 5"),
        (T, MaxGram(np.arange(4)), PROMPT, 5, "vocabulary: MaxGram has 4 tokens, table 5"),
        (T, Both([SMALL]), PROMPT, 5, "vocabulary: draft has 4"),
        (T, NoDraft(), (), 5, "prompt is empty"),
        (T, NoDraft(), (5,), 5, "token 5, the target's vocabulary ends at 4"),
        (SHORT, NoDraft(), PROMPT, 5, "3 tokens, the target reads at most 2"),
        (T, NoDraft(), PROMPT, 0, "max_new_tokens must be at least 1, got 0"),
        (T, ChainDraft(table_model(5, 2), 2), PROMPT, 5, "two models are called 'table'"),
    ],
)
def test_bad_input_is_refused_before_any_work(target, draft, prompt, length, message, monkeypatch):
    monkeypatch.setattr(TableModel, "score", lambda *_: pytest.fail("a model was asked"))
    for run in (decode, rounds):
        with pytest.raises(ValueError, match=message):
            run(target, draft, prompt, Chance(0), max_new_tokens=length, rule=reject)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A composite draft that keeps its parts in a dictionary, and that in a slot."""

    parts: dict

    def propose(self, context, chance):
        return self.parts["first"].propose(context, chance)


def test_models_in_dictionaries_and_slots_are_found():
    target, model = table_model(5, 1), table_model(5, 2, name="draft")
    assert set(models_in(target, Keyed({"first": ChainDraft(model, 2)}))) == {"table", "draft"}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "asked, complaint",
    [
        ({"prompt": "def f():"}, "a prompt is tokens, got text"),
        ({"prompt": torch.zeros(1, 3, dtype=torch.long)}, r"an array of shape \(1, 3\)"),
        ({"prompt": (1, 2.5)}, "tokens are whole numbers, got 2.5"),
        ({"target": "gpt2"}, "the target is a language model .* got 'gpt2' without forget"),
        ({"draft": table_model(5, 2, name="draft")}, "got a TableModel; a model guesses inside"),
        ({"draft": None}, r"a draft has propose\(context, chance\), got None$"),
        ({"chance": 7}, "chance is Chance.*, got 7"),
        ({"rule": "reject"}, "a rule is look_up or reject .* got 'reject'"),
    ],
)
def test_another_kind_of_thing_is_refused_by_name(asked, complaint):
    given = {
        "target": table_model(5, 1),
        "draft": NoDraft(),
        "prompt": PROMPT,
        "chance": Chance(0),
        "rule": reject,
    } | asked
    with pytest.raises(ValueError, match=complaint):
        decode(**given, max_new_tokens=2)


@dataclass(frozen=True)
class Listing:
    """Proposes a list where a tree is meant."""

    def propose(self, context, chance):
        return [1, 2]


@pytest.mark.usefixtures("unchecked")
def test_a_proposal_that_is_no_tree_is_refused_by_name():
    with pytest.raises(ValueError, match=r"a draft proposes a TokenTree, .* got a list"):
        decode(table_model(5, 1), Listing(), PROMPT, Chance(0), max_new_tokens=4)
