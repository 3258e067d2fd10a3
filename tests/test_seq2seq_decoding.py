"""Greedy output is what `generate` makes, no draft changes a sample, and the encoder runs once per
prompt.
"""

import pytest
import torch
from t5s import START, STOP, network, shaken, sources, started

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.seq2seq import Seq2SeqModel


@torch.no_grad()
def generated(model, source: tuple[int, ...], length: int) -> tuple[int, ...]:
    given = torch.tensor([source])
    made = model.generate(
        given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=length
    )
    return tuple(made[0, 1:].tolist())


DRAFTS = {
    "nothing": lambda target, draft, like: NoDraft(),
    "a chain of a smaller model": lambda target, draft, like: ChainDraft(draft, length=4),
    "a chain of a model that is like it": lambda target, draft, like: ChainDraft(like, length=5),
    "a tree": lambda target, draft, like: TreeDraft(like, widths=(3, 2, 1)),
    "a tree with a budget": lambda target, draft, like: TreeDraft(like, budget=12, depth=5),
}


@pytest.mark.parametrize("kind", ["gated tied", "relu untied"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_greedy_output_is_that_of_generate(kind, draft):
    network_ = network(kind, dtype=torch.float32)
    target, small = (
        Seq2SeqModel(network_, "target"),
        Seq2SeqModel(network(kind, width=16, layers=1, seed=5, dtype=torch.float32), "draft"),
    )
    guesser = DRAFTS[draft](target, small, Seq2SeqModel(shaken(network_), "like"))
    found = [
        decode(target, guesser, started(source), Chance(0), max_new_tokens=30, stop_tokens=(STOP,))
        for source in sources(4)
    ]
    assert [made.tokens for made in found] == [
        generated(network_, source, 30) for source in sources(4)
    ]
    assert len({made.tokens for made in found}) > 1
    if "like" in draft or "tree" in draft:
        assert sum(played.accepted for made in found for played in made.rounds) > 20


@pytest.mark.parametrize("draft", DRAFTS)
def test_sampled_output_is_the_same_with_every_draft(draft):
    model = network("gated tied", dtype=torch.float32)
    target, small = (
        Seq2SeqModel(model, "target"),
        Seq2SeqModel(
            network("gated tied", width=16, layers=1, seed=5, dtype=torch.float32), "draft"
        ),
    )
    guesser = DRAFTS[draft](target, small, Seq2SeqModel(shaken(model), "like"))
    for seed, source in enumerate(sources(3)):
        plain, drafted = (
            decode(
                target,
                one,
                started(source),
                Chance(seed, Sampler(1.0)),
                max_new_tokens=25,
                stop_tokens=(STOP,),
            )
            for one in (NoDraft(), guesser)
        )
        assert plain.tokens == drafted.tokens


def test_the_encoder_runs_once_per_prompt_and_before_the_first_round():
    networks = [
        network("gated tied", dtype=torch.float32),
        network("gated tied", width=16, layers=1, dtype=torch.float32),
    ]
    target, draft = Seq2SeqModel(networks[0], "target"), Seq2SeqModel(networks[1], "draft")
    runs = [0, 0]

    def count(which: int) -> None:
        runs[which] += 1

    for which, model in enumerate(networks):
        model.encoder.register_forward_hook(lambda *_, which=which: count(which))
    for number, source in enumerate(sources(3), 1):
        made = decode(
            target, TreeDraft(draft, widths=(2, 2)), started(source), Chance(0), max_new_tokens=12
        )
        assert runs == [number, number] == [target.encoder_passes, draft.encoder_passes]
        assert all(
            used.seconds > 0 and (used.passes, used.rows) == (0, 0)
            for used in made.prefill.values()
        )
        assert made.rounds[0].usage["target"].passes == 1


def test_max_gram_copies_from_the_source():
    source = (9, 8, START, 5, 6, 7, 3)
    made = MaxGram(length=3).propose(started(source), Chance(0))
    assert made.tokens == (START, 5, 6, 7) and set(made.sources[1:]) == {"prompt"}
    model = network("gated tied", dtype=torch.float32)
    for given in sources(3):
        found = decode(
            Seq2SeqModel(model, "target"),
            MaxGram(),
            started(given),
            Chance(0),
            max_new_tokens=20,
            stop_tokens=(STOP,),
        )
        assert found.tokens == generated(model, given, 20)


def test_a_decoder_that_is_full_ends_the_generation_and_a_prompt_without_a_source_is_refused():
    target = Seq2SeqModel(network("gated tied", dtype=torch.float32), "target", max_positions=8)
    made = decode(target, NoDraft(), started((3, 4)), Chance(0), max_new_tokens=30)
    assert made.stop == "context" and len(made.tokens) == 8
    with pytest.raises(ValueError, match="needs a source of at least one token, got None"):
        decode(target, NoDraft(), [START], Chance(0), max_new_tokens=3)
