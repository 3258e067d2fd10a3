"""The records of `generate` with a draft are those of `decode`, wherever the text ends."""

from dataclasses import dataclass

import pytest
import torch
from hfs import KINDS, PROMPT, TREE, asked, drafts, network, written
from transformers import StoppingCriteria, StoppingCriteriaList, StopStringCriteria

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, decode
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.suite.hf import Speculative
from specdec_lib.suite.hf.generating import GenerationState

NEW = 30


class Token(StoppingCriteria):
    """Ends a text at one of some tokens."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def __call__(self, input_ids: torch.Tensor, scores: object) -> torch.Tensor:
        return torch.tensor([int(input_ids[0, -1]) in self.tokens])


@dataclass(frozen=True)
class Record:
    """What a round's record says, but for seconds."""

    tree: TokenTree
    path: tuple[int, ...]
    emitted: tuple[int, ...]
    sources: tuple[str, ...]
    tried: int
    work: dict[str, tuple[int, int]]


def records(rounds: list[Round]) -> list[Record]:
    return [
        Record(
            one.tree,
            one.path,
            one.emitted,
            one.sources,
            one.tried,
            {name: (used.passes, used.rows) for name, used in one.usage.items()},
        )
        for one in rounds
    ]


def recorded(kind: str, draft: Draft, **options: object) -> list[Record]:
    """Of `generate`."""
    given, found = asked(kind), []
    door = Speculative(draft, on_round=found.append)
    options = {"eos_token_id": None, "max_new_tokens": NEW, "pad_token_id": 0} | options
    model, mask = network(kind), torch.ones_like(given)
    model.generate(given, custom_generate=door, do_sample=False, attention_mask=mask, **options)
    return records(found)


def wanted(kind: str, draft: Draft, tokens: int, stop: list[int]) -> list[Record]:
    """Of `decode`."""
    prompt, wrap = Context.of(PROMPT), CachedModel
    if kind == "t5":
        prompt, wrap = Context.of((0,), tuple(asked(kind)[0].tolist())), Seq2SeqModel
    options = {"max_new_tokens": tokens, "stop_tokens": stop}
    target = wrap(network(kind), "target")
    return records(decode(target, draft, prompt, Chance(0, Sampler(0)), **options).rounds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [TREE, "a chain", "a cascade", "copies and a tree"])
def test_a_round_that_ends_early_has_the_record_of_decode(kind, name, unchecked):
    """At any token of the text: as an end token, and as a criterion of one's own."""
    draft, cut = drafts(kind)[name], 0
    for token in dict.fromkeys(written(kind)[-NEW:]):
        found = wanted(kind, draft, NEW, [token])
        assert recorded(kind, draft, eos_token_id=token) == found
        own = StoppingCriteriaList([Token([token])])
        assert recorded(kind, draft, stopping_criteria=own) == found
        last = found[-1]
        assert len(last.emitted) >= len(last.path) and last.tried <= len(last.emitted)
        cut += last.emitted[-1] == token and len(last.emitted) == len(last.path)
    assert cut  # the control: some texts ended at a guess, and what was accepted behind it is gone


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_that_ends_at_the_longest_text_has_the_record_of_decode(kind, unchecked):
    for tokens in range(1, 9):
        found = wanted(kind, drafts(kind)[TREE], tokens, [])
        assert recorded(kind, drafts(kind)[TREE], max_new_tokens=tokens) == found


def test_a_round_that_ends_at_a_stop_string_has_the_record_of_decode(ladder, prompts, unchecked):
    """At every string of a text that is its token's alone, and so ends it as the token does."""
    tree, prompt = TreeDraft(ladder.draft, budget=12), ladder.encode(prompts[3])
    asking = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    given = torch.tensor([prompt])
    text = ladder.target.model.generate(given, **asking)[0, given.shape[1] :].tolist()
    ended = 0
    for token in dict.fromkeys(text):
        string, rounds = ladder.tokenizer.decode([token]), []
        door = Speculative(tree, on_round=rounds.append)
        criteria = StoppingCriteriaList([StopStringCriteria(ladder.tokenizer, [string])])
        made = door.generate(ladder.target.model, given, stopping_criteria=criteria, **asking)
        if made[0, given.shape[1] :].tolist() != text[: text.index(token) + 1]:
            continue  # the string stood before, in other tokens
        options = {"max_new_tokens": 24, "stop_tokens": [token]}
        right = decode(ladder.target, tree, prompt, Chance(0, Sampler(0)), **options)
        assert records(rounds) == records(right.rounds)
        ended += len(rounds[-1].emitted) == len(rounds[-1].path)
    assert ended  # within a round, at a guess


def test_a_record_that_keeps_what_was_accepted_beyond_the_end_is_caught(monkeypatch):
    """Negative control of the comparisons above."""

    def whole(state: GenerationState, played: Round) -> Round:
        return played

    monkeypatch.setattr(GenerationState, "truncated_round", whole)
    draft = drafts("gpt2")[TREE]
    text = written("gpt2")[-NEW:]
    differ = [
        recorded("gpt2", draft, eos_token_id=token) != wanted("gpt2", draft, NEW, [token])
        for token in dict.fromkeys(text)
    ]
    assert any(differ)
