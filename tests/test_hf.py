"""`generate` with `custom_generate=Speculative(draft)` writes and asks what `generate` does."""

import re

import pytest
import torch
from hfs import KINDS, PROMPT, TREE, VOCABULARY, asked, both, drafts, network, written
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    TextIteratorStreamer,
)
from transformers.generation.streamers import BaseStreamer

import specdec_lib.suite.hf.speaking as speaking
from specdec_lib.core.protocols import Verdict
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.hf import Speculative


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", drafts("gpt2"))
def test_greedy_text_is_that_of_generate_with_every_draft(kind, name, unchecked):
    rounds = []
    door = Speculative(drafts(kind)[name], on_round=rounds.append)
    wanted, made = both(network(kind), asked(kind), door)
    assert made == wanted
    said = [token for played in rounds for token in played.emitted]
    assert made[0][-30:] == said and len(set(said)) > 2
    if name not in ("nothing", "copies"):
        assert len(rounds) < 26


STOPS = {"eos_token_id": list(range(2, 9))}
OPTIONS = {
    "a longest text": {"max_new_tokens": None, "max_length": 25},
    "a penalty on repetition": {"repetition_penalty": 1.8},
    "no repeated pair": {"no_repeat_ngram_size": 2},
    "forbidden words": {"bad_words_ids": [[5], [9, 2]]},
    "suppressed tokens": {"suppress_tokens": [1, 4, 9], "begin_suppress_tokens": [2]},
    "a bias": {"sequence_bias": {(4,): 1.5, (8, 3): 3.0}},
    "a stop token, and not too early": STOPS | {"min_new_tokens": 12},
    "a stop token at a least length": STOPS | {"min_length": 14},
    "a forced end": {"forced_eos_token_id": 4, "eos_token_id": 4},
    "an end that becomes likelier": {"eos_token_id": 6}
    | {"exponential_decay_length_penalty": (4, 1.3)},
    "allowed tokens that depend on the text": {
        "prefix_allowed_tokens_fn": lambda batch, text: [
            (int(text[-1]) * k + 1) % 20 for k in range(1, 5)
        ]
    },
    "logits without NaN, normalised": {"remove_invalid_values": True, "renormalize_logits": True},
    "a prompt read in pieces": {"prefill_chunk_size": 2},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_that_changes_the_text_changes_it_as_in_generate(kind, name, unchecked):
    options = OPTIONS[name]
    if kind == "t5" and "prefill_chunk_size" in options:
        pytest.skip("generate reads no decoder prompt in pieces")
    wanted = written(kind, **options)
    assert written(kind, drafts(kind)[TREE], **options) == wanted
    assert written(kind, drafts(kind)["a cascade"], **options) == wanted
    if kind == "gpt2" and not {"remove_invalid_values", "prefill_chunk_size"} & {*options}:
        assert wanted != written(kind)


def test_a_rule_that_believes_the_draft_is_caught(monkeypatch):
    """Negative control of every comparison above."""

    def believing(tree, logits, chance):
        path, node = [], 0
        while tree.children(node):
            node = tree.children(node)[0]
            sure = torch.nn.functional.one_hot(torch.tensor(tree.tokens[node]), VOCABULARY)
            chance.choose(sure.float(), tree.position(node))
            path.append(node)
        return Verdict(tuple(path), bonus=chance.choose(logits[node], tree.position(node) + 1))

    wanted = written("gpt2")
    monkeypatch.setattr(speaking, "look_up", believing)
    assert written("gpt2", drafts("gpt2")[TREE]) != wanted


def test_processors_that_are_applied_to_one_text_for_all_nodes_are_caught(monkeypatch):
    """Negative control: the context's own text in place of each node's path."""
    wanted = written("gpt2", no_repeat_ngram_size=2)
    right = speaking.Speech.processed

    def stale(speech, logits):
        speech.tokens, now = speech.tokens[:, : speech.tokens.shape[1] - speech.said], speech.tokens
        scores = right(speech, logits)
        speech.tokens = now
        return scores

    monkeypatch.setattr(speaking.Speech, "processed", stale)
    assert written("gpt2", drafts("gpt2")[TREE], no_repeat_ngram_size=2) != wanted


class Counting(LogitsProcessor, StoppingCriteria):
    """A processor or criterion that notes what it is asked, and answers by how often it was."""

    def __init__(self) -> None:
        self.calls = []

    def __call__(self, input_ids, scores):
        shape = None if scores is None else tuple(scores.shape)
        self.calls.append((tuple(input_ids[0].tolist()), shape))
        if isinstance(scores, torch.Tensor):
            return scores.roll(len(self.calls) % 3, dims=-1)
        return torch.tensor([len(self.calls) >= 17])


class Heard(BaseStreamer):
    def __init__(self) -> None:
        self.parts, self.ends = [], 0

    def put(self, tokens) -> None:
        self.parts.append(tokens.tolist())

    def end(self) -> None:
        self.ends += 1


@pytest.mark.parametrize("kind", KINDS)
def test_processors_criteria_and_streamers_are_asked_what_generate_asks_them(kind):
    found = []
    for draft in (None, drafts(kind)[TREE]):
        processor, criterion, heard = Counting(), Counting(), Heard()
        asking = {
            "logits_processor": LogitsProcessorList([processor]),
            "stopping_criteria": StoppingCriteriaList([criterion]),
        }
        text = written(kind, draft, streamer=heard, **asking)
        found.append((text, processor.calls, criterion.calls, heard.parts, heard.ends))
    assert found[0] == found[1]
    assert len(found[0][2]) == 17 == len(found[0][3]) - 1


def test_a_stopping_string_a_text_streamer_and_the_ladder(ladder, prompts):
    given = torch.tensor([ladder.encode(prompts[3])])
    options = {"max_new_tokens": 48, "tokenizer": ladder.tokenizer}
    plain = ladder.target.model.generate(given, do_sample=False, **options)[0]
    words = re.findall("[a-zA-Z]{3,}", ladder.tokenizer.decode(plain[given.shape[1] :]))
    options["stop_strings"] = [words[len(words) // 2], "no such word"]
    tree = TreeDraft(ladder.draft, budget=12)
    wanted, made = both(ladder.target.model, given, tree, **options)
    assert made == wanted and len(wanted[0]) < given.shape[1] + 48
    streamer = TextIteratorStreamer(ladder.tokenizer, skip_prompt=True)
    options |= {"streamer": streamer, "do_sample": False}
    ladder.target.model.generate(given, custom_generate=Speculative(tree), **options)
    assert "".join(streamer) == ladder.tokenizer.decode(made[0][given.shape[1] :])


def test_time_runs_out():
    length = len(written("gpt2", drafts("gpt2")[TREE], length=60, max_time=1e-9)) - len(PROMPT)
    assert length == 1  # as in generate, which looks at the clock after each token


@pytest.mark.parametrize("more", [{}, {"repetition_penalty": 1.8}, {"bad_words_ids": [[0]]}])
def test_padding_of_a_single_prompt_is_left_out_but_processors_see_it(more):
    padded = torch.tensor([[0, 0, *PROMPT]])
    mask = torch.tensor([[0, 0, *[1] * len(PROMPT)]])
    wanted, made = both(network("gpt2"), padded, drafts("gpt2")[TREE], attention_mask=mask, **more)
    assert made == wanted
    source = asked("t5")
    right = torch.cat([source, torch.zeros(1, 3, dtype=torch.long)], 1)
    mask = (torch.arange(right.shape[1]) < source.shape[1]).long()[None]
    wanted, made = both(network("t5"), right, drafts("t5")[TREE], attention_mask=mask, **more)
    assert made == wanted


def test_scores_and_logits_come_back_as_from_generate():
    options = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    options |= {"max_new_tokens": 12, "repetition_penalty": 1.5}
    wanted, made = both(network("llama"), asked("llama"), drafts("llama")[TREE], **options)
    assert type(made) is type(wanted) and made.sequences.tolist() == wanted.sequences.tolist()
    for one, other in ((made.scores, wanted.scores), (made.logits, wanted.logits)):
        assert len(one) == len(other) == 12
        assert torch.allclose(torch.stack(one), torch.stack(other), atol=1e-4)


def test_a_prepared_target_is_used():
    target = CachedModel(network("gpt2"), "target")
    door = Speculative(drafts("gpt2")[TREE], target=target)
    wanted, made = both(target.model, asked("gpt2"), door)
    assert made == wanted and 0 < target.usage.passes < 30
    with pytest.raises(ValueError, match="'target' holds another model than the one"):
        both(network("llama"), asked("llama"), Speculative(NoDraft(), target=target))
