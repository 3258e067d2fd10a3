"""`generate` with `custom_generate=Speculative(draft)` writes, asks and draws as without it."""

import copy
import re

import pytest
import torch
from hfs import KINDS, PROMPT, TREE, VOCABULARY, asked, both, drafts, network, written
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    StopStringCriteria,
    TextIteratorStreamer,
)
from transformers.generation.streamers import BaseStreamer

import specdec_lib.suite.hf.generating as generating
from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Verdict
from specdec_lib.drafts.trees.growing import TreeDraft
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
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_that_changes_the_text_changes_it_as_in_generate(kind, name, unchecked):
    options = OPTIONS[name]
    wanted = written(kind, **options)
    assert written(kind, drafts(kind)[TREE], **options) == wanted
    assert written(kind, drafts(kind)["a cascade"], **options) == wanted
    if kind == "gpt2" and "remove_invalid_values" not in options:
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
    monkeypatch.setattr(generating, "look_up", believing)
    assert written("gpt2", drafts("gpt2")[TREE]) != wanted


def test_processors_that_are_applied_to_one_text_for_all_nodes_are_caught(monkeypatch):
    """Negative control: the context's own text in place of each node's path."""
    wanted = written("gpt2", no_repeat_ngram_size=2)
    right = generating.GenerationState.processed_logits

    def stale(state, logits):
        now = state.tokens
        state.tokens = now[:, : now.shape[1] - state.round_tokens]
        scores = right(state, logits)
        state.tokens = now
        return scores

    monkeypatch.setattr(generating.GenerationState, "processed_logits", stale)
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
    """A streamer that notes what it is given."""

    def __init__(self) -> None:
        self.parts = []

    def put(self, tokens) -> None:
        self.parts.append(tokens.tolist())

    def end(self) -> None:
        self.parts.append("end")


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
        found.append((text, processor.calls, criterion.calls, heard.parts))
    assert found[0] == found[1]
    assert len(found[0][2]) == 17 == len(found[0][3]) - 2


def test_a_stopping_string_a_text_streamer_and_the_ladder(ladder, prompts):
    given = torch.tensor([ladder.encode(prompts[3])])
    options = {"max_new_tokens": 48, "tokenizer": ladder.tokenizer}
    plain = ladder.target.model.generate(given, do_sample=False, **options)[0]
    words = re.findall("[a-zA-Z]{3,}", ladder.tokenizer.decode(plain[given.shape[1] :]))
    options["stop_strings"] = [words[len(words) // 2], "no such word"]
    door, options["do_sample"] = Speculative(TreeDraft(ladder.draft, budget=12)), False
    wanted = ladder.target.model.generate(given, **options)[0].tolist()
    streamer = TextIteratorStreamer(ladder.tokenizer, skip_prompt=True)
    made = door.generate(ladder.target.model, given, streamer=streamer, **options)[0].tolist()
    assert made == wanted and len(wanted) < given.shape[1] + 48
    assert "".join(streamer) == ladder.tokenizer.decode(made[given.shape[1] :])
    config = copy.deepcopy(ladder.target.model.generation_config)
    config.update(max_new_tokens=48, do_sample=False, stop_strings=options["stop_strings"])
    tokenizer = {"tokenizer": ladder.tokenizer, "generation_config": config}
    assert door.generate(ladder.target.model, given, **tokenizer)[0].tolist() == wanted
    criterion = StopStringCriteria(ladder.tokenizer, options.pop("stop_strings"))
    options["stopping_criteria"] = StoppingCriteriaList([criterion])
    assert both(ladder.target.model, given, door, **options)[1][0] == wanted


def test_time_runs_out():
    length = len(written("gpt2", drafts("gpt2")[TREE], length=60, max_time=1e-9)) - len(PROMPT)
    assert length == 1  # as in generate, which looks at the clock after each token


def plainly_sampled(seed: int, length: int, **options) -> tuple[int, ...]:
    """The largest of log-probability and noise, by `generate`'s own processors."""
    model, text = network("gpt2"), torch.tensor([PROMPT])
    config = model._prepare_generation_config(None, do_sample=True, **options)[0]
    config._eos_token_tensor = None
    processors = model._get_logits_processor(config, input_ids_seq_length=len(PROMPT))
    torch.manual_seed(seed)
    noise_seed = int(torch.randint(2**62, (1,)))
    with torch.no_grad():
        for _ in range(length):
            scores = processors(text, model(text).logits[:, -1].float())[0]
            noisy = scores.double().log_softmax(-1) + torch.tensor(
                Chance(noise_seed, Sampler(1.0)).noise(text.shape[1], range(VOCABULARY))
            )
            text = torch.cat([text, noisy.argmax()[None, None]], 1)
    return tuple(text[0].tolist())


WARPERS = {
    "temperature": {"temperature": 0.7, "top_k": 0},
    "top-k": {"temperature": 1.3, "top_k": 5},
    "top-p": {"top_p": 0.6, "top_k": 0},
    "all three": {"temperature": 0.8, "top_k": 9, "top_p": 0.8},
    "min-p": {"min_p": 0.1, "top_k": 0},
    "typical": {"typical_p": 0.5, "top_k": 0},
    "cutoffs": {"epsilon_cutoff": 0.02, "eta_cutoff": 0.05, "top_k": 0},
    "top-h": {"top_h": 0.5, "top_k": 0},
    "with a processor": {"temperature": 0.8, "top_k": 9, "repetition_penalty": 1.7},
}


@pytest.mark.parametrize("options", WARPERS.values(), ids=WARPERS)
def test_a_sample_is_what_the_noise_chooses_from_generates_own_distribution(options, unchecked):
    texts = set()
    for seed, name in enumerate((TREE, "a cascade", "drawn siblings")):
        for length in (3, 20):
            wanted, draft = plainly_sampled(seed, length, **options), drafts("gpt2")[name]
            torch.manual_seed(seed)
            assert written("gpt2", draft, length=length, do_sample=True, **options) == wanted
            texts.add(wanted)
    assert len(texts) >= 4  # the control: another seed, another text
