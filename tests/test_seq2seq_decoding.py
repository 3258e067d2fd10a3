"""Greedy output is what `generate` makes, no draft changes a sample, and the encoder runs once per
prompt.
"""

import pytest
import torch
from t5s import START, STOP, generated, network, shaken, sources, started

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.seq2seq import Seq2SeqModel

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
    "nothing": lambda draft, like: NoDraft(),
    "copies": lambda draft, like: MaxGram(),
    "a chain of a smaller model": lambda draft, like: ChainDraft(draft, length=4),
    "a chain of a model that is like it": lambda draft, like: ChainDraft(like, length=5),
    "a tree": lambda draft, like: TreeDraft(like, widths=(3, 2, 1)),
    "a tree with a budget": lambda draft, like: TreeDraft(like, budget=12, depth=5),
}


@pytest.mark.parametrize("kind", ["gated tied", "relu untied"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_greedy_output_is_that_of_generate(kind, draft):
    target, *drafts = models(kind)
    guesser = DRAFTS[draft](*drafts)
    found = [written(target, guesser, source) for source in sources(4)]
    wanted = [generated(target.model, source, 30) for source in sources(4)]
    assert [made.tokens for made in found] == wanted and len(set(wanted)) > 1
    if "like" in draft or "tree" in draft:
        assert sum(played.accepted for made in found for played in made.rounds) > 20


@pytest.mark.parametrize("draft", DRAFTS)
def test_sampled_output_is_the_same_with_every_draft(draft):
    target, *drafts = models()
    guesser = DRAFTS[draft](*drafts)
    for seed, source in enumerate(sources(3)):
        plain, drafted = (
            written(target, one, source, Chance(seed, Sampler(1.0)), 25)
            for one in (NoDraft(), guesser)
        )
        assert plain.tokens == drafted.tokens


def test_the_encoder_runs_once_per_prompt_and_before_the_first_round():
    target, draft, _ = models()
    runs = {"target": 0, "draft": 0}

    def count(name: str) -> None:
        runs[name] += 1

    for model in (target, draft):
        model.model.encoder.register_forward_hook(lambda *_, name=model.name: count(name))
    for number, source in enumerate(sources(3), 1):
        made = written(target, TreeDraft(draft, widths=(2, 2)), source, length=12)
        assert runs == {"target": number, "draft": number}
        assert target.encoder_passes == draft.encoder_passes == number
        for used in made.prefill.values():
            assert used.seconds > 0 and (used.passes, used.rows) == (0, 0)
        assert made.rounds[0].usage["target"].passes == 1


def test_a_decoder_that_is_full_ends_the_generation_and_a_prompt_without_a_source_is_refused():
    target = Seq2SeqModel(network("gated tied", dtype=torch.float32), "target", max_positions=8)
    made = decode(target, NoDraft(), started((3, 4)), Chance(0), max_new_tokens=30)
    assert made.stop == "context" and len(made.tokens) == 8
    with pytest.raises(ValueError, match="needs a source of at least one token, got None"):
        decode(target, NoDraft(), [START], Chance(0), max_new_tokens=3)
