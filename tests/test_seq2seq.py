"""The encoder-decoder cache is pure on trees, the encoder runs once per prompt, greedy output is
what `generate` makes, and no draft changes a sample.
"""

import numpy as np
import pytest
import torch
import transformers as hub
from caches import break_once, largest_error
from fakes import assert_refused
from t5s import KINDS, START, STOP, VOCABULARY, generated, network, shaken, sources, started

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models import seq2seq
from specdec_lib.models.seq2seq import Seq2SeqModel


@pytest.mark.parametrize("kind", [*KINDS, "mt5"])
def test_every_row_is_that_of_a_fresh_forward_over_its_path(kind):
    cached = Seq2SeqModel(network(kind), "target")
    cached._memory.chunk_rows = 7
    assert largest_error(cached, 25, words=VOCABULARY, sources=sources(2)) < 1e-11


def by_entry(sees: np.ndarray) -> np.ndarray:
    """The distance that a cache without trees would take: in cache positions."""
    rows, entries = sees.shape
    return np.maximum(np.arange(entries - rows, entries)[:, None] - np.arange(entries), 0)


distances = seq2seq.distances
BUGS = {"a distance in cache positions": by_entry, "no distance": np.zeros_like}
BUGS |= {"one too far": lambda sees: distances(sees) + 1}


@pytest.mark.parametrize("bug", [*BUGS, "mask", "cross-attention of another source"])
def test_a_model_with_a_bug_is_caught(bug, monkeypatch):
    cached = Seq2SeqModel(network("gated tied"), "target")
    begin, read = cached._cache.begin, cached.read_source
    if bug in BUGS:
        wrong = BUGS[bug]
        monkeypatch.setattr(seq2seq, "distances", lambda sees: wrong(sees).astype(np.int64))
    elif bug == "mask":
        cached._cache.begin = lambda *given: begin(*given) | True
    else:
        cached.read_source = lambda context: read(started((2, 3)))
    assert largest_error(cached, 8, words=VOCABULARY, sources=sources(2)) > 1e-4


@pytest.mark.parametrize("where", ["begin", "update", "move", "commit", "plan", "add", "forward"])
def test_a_pass_that_was_interrupted_leaves_no_trace(where):
    """`break_once` asserts that every score after it is that of an uncached model."""
    cached = Seq2SeqModel(network("gated tied"), "target")
    parts = (cached.model.encoder, cached._memory, cached._cache)
    break_once(cached, parts, where, 1, VOCABULARY, sources(2))


def scored(tokens, source) -> torch.Tensor:
    context, model = Context.of(tokens, source), network("relu tied")
    rooted = TokenTree.rooted(context)
    return Seq2SeqModel(model, "target", max_positions=8).score(context, rooted)


GPT2 = {"n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 1}
T5 = {"d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1}
REFUSED = {
    "gpt2": (hub.GPT2LMHeadModel, GPT2),
    "umt5": (hub.UMT5ForConditionalGeneration, {"d_model": 8, "d_kv": 8, "num_layers": 1}),
    "t5": (hub.T5Model, T5),  # which has no head
}


def unfit(kind) -> Seq2SeqModel:
    made, sizes = REFUSED[kind]
    return Seq2SeqModel(made(made.config_class(vocab_size=9, **sizes)), "target")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: scored([START], None), "model: .* a source of tokens in 0…22, got None"),
        (lambda: scored([START], (3, VOCABULARY)), r"a source of tokens in 0…22, got \(3, 23\)"),
        (lambda: scored([START] * 9, (3,)), "below the context length 8, got 8"),
        *(
            (lambda kind=kind: unfit(kind), f"a t5 or mt5 with a head for text, got {kind}")
            for kind in REFUSED
        ),
    ],
)
def test_what_does_not_fit_and_models_whose_distances_would_be_wrong_are_refused(call, said):
    assert_refused(call, said)


GREEDY = Chance(0)


def written(target, draft, source, chance=GREEDY, length: int = 30) -> Generation:
    options = {"max_new_tokens": length, "stop_tokens": (STOP,)}
    return decode(target, draft, started(source), chance, **options)


def models(kind: str = "gated tied") -> tuple[Seq2SeqModel, Seq2SeqModel, Seq2SeqModel]:
    """A target, a smaller draft, and a draft that is like the target."""
    large = network(kind, dtype=torch.float32)
    small = network(kind, width=16, layers=1, seed=5, dtype=torch.float32)
    named = {"target": large, "draft": small, "like": shaken(large)}
    return tuple(Seq2SeqModel(one, name) for name, one in named.items())


DRAFTS = {
    "copies": lambda draft, like: MaxGram(),
    "a chain of a smaller model": lambda draft, like: ChainDraft(draft, length=4),
    "a tree": lambda draft, like: TreeDraft(like, widths=(3, 2, 1)),
    "a tree with a budget": lambda draft, like: TreeDraft(like, budget=12, depth=5),
}


@pytest.mark.parametrize("kind", ["gated tied", "relu untied"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_greedy_output_is_that_of_generate(kind, draft, unchecked):
    target, *drafts = models(kind)
    guesser = DRAFTS[draft](*drafts)
    found = [written(target, guesser, source) for source in sources(4)]
    wanted = [generated(target.model, source, 30) for source in sources(4)]
    assert [made.tokens for made in found] == wanted and len(set(wanted)) > 1
    if "tree" in draft:
        assert sum(played.accepted for made in found for played in made.rounds) > 20
    for seed, source in enumerate(sources(3)):  # and a sampled one is the same with every draft
        given = source, Chance(seed, Sampler(1.0)), 25
        drafted = written(target, guesser, *given)
        assert drafted.tokens == written(target, NoDraft(), *given).tokens


def test_the_encoder_runs_once_per_prompt_and_again_after_forgetting():
    target, draft, _ = models()
    runs = []
    for model in (target, draft):
        model.model.encoder.register_forward_hook(lambda *_, name=model.name: runs.append(name))
    for number, source in enumerate(sources(3), 1):
        made = written(target, TreeDraft(draft, widths=(2, 2)), source, length=12)
        assert (runs.count("target"), runs.count("draft")) == (number, number)
        for used in made.prefill.values():
            assert used.seconds > 0 and (used.passes, used.rows) == (0, 0)
        assert made.rounds[0].usage["target"].passes == 1
    target.read_source(started(sources(3)[-1]))
    target.forget()
    target.read_source(started(sources(3)[-1]))
    assert runs.count("target") == 4
