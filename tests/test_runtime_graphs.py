"""Passes of static shapes give what `CachedModel` gives, whatever was read before; where there is no GPU, nobody pretends."""

import random

import pytest
import torch
from test_lm import grown, largest_error, network, uncached

from specdec_lib.chance import Chance, Sampler
from specdec_lib.context import Context
from specdec_lib.decode import decode
from specdec_lib.draft import TreeDraft
from specdec_lib.lm import CachedModel, LanguageModel
from specdec_lib.runtime.graphs import GraphModel
from specdec_lib.runtime.static import BUCKETS, SCRATCH, StaticNetwork, StaticPass, length_for
from specdec_lib.tree import TokenTree

KINDS = ("gpt2", "llama", "grouped-query llama")
TOLERANCE = {"gpt2": 1e-12, "llama": 1e-6, "grouped-query llama": 1e-6}  # the stock Llama computes its norms in float32


@pytest.mark.parametrize("attention", ["fused", "products"])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_prompts_and_going_back_give_what_an_uncached_forward_gives(kind, attention, unchecked):
    model = network(kind)
    assert largest_error(model, GraphModel(model, "target", attention=attention), 30) < TOLERANCE[kind]


def test_a_graph_model_is_a_language_model():
    model = GraphModel(network("gpt2"), "target")
    assert isinstance(model, LanguageModel)
    assert model.runtime == "static shapes without graphs, float64"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_it_decodes_what_the_reference_decodes_in_as_many_passes(temperature):
    target, draft = network("gpt2"), network("llama")
    made = []
    for kind in (CachedModel, GraphModel):
        tree = TreeDraft(kind(draft, "draft"), budget=6, depth=3)
        made.append(decode(kind(target, "target"), tree, (1, 2, 3), Chance(7, Sampler(temperature)), max_new_tokens=30))
    assert made[0].tokens == made[1].tokens
    for one, other in zip(made[0].rounds, made[1].rounds, strict=True):
        assert one.emitted == other.emitted
        assert {name: (used.passes, used.rows) for name, used in one.usage.items()} == {
            name: (used.passes, used.rows) for name, used in other.usage.items()
        }


def test_padding_writes_to_the_scratch_slot_alone():
    network_ = StaticNetwork(network("gpt2"), 20)
    network_.cache.fill_(7.0)
    sees = torch.ones(3, 4).tril(1).bool()
    sees[:, SCRATCH] = False
    network_.read((1, 2, 3), (0, 1, 2), (1, 2, 3), sees)
    assert (network_.cache[:, 4:] == 7.0).all()
    assert (network_.cache[:, 1:4] != 7.0).any()


def test_padding_changes_nothing():
    model = network("gpt2")
    context = Context.of([1, 2, 3])
    for rows in (2, 3, 4, 5, 8, 9):  # some fill their bucket, some do not
        tree = TokenTree.rooted(context).grown(range(rows), range(rows), source="draft", scores=[1.0] * rows)
        assert (GraphModel(model, "target").score(context, tree) - uncached(model, context, tree)).abs().max() < 1e-12


def test_padding_that_is_seen_is_caught():
    model = network("gpt2")
    static = GraphModel(model, "target")
    read = static._network.read

    def seen(tokens, positions, slots, sees):
        return read(tokens, positions, slots, torch.cat([torch.ones_like(sees[:, :1]), sees[:, 1:]], 1))

    static._network.read = seen
    assert largest_error(model, static, 5) > 1e-6


def test_a_slot_that_is_one_off_is_caught():
    model = network("gpt2")
    static = GraphModel(model, "target")
    read = static._network.read
    static._network.read = lambda tokens, positions, slots, sees: read(tokens, positions, [slot + 1 for slot in slots], sees)
    assert largest_error(model, static, 5) > 1e-6


def test_a_tree_of_more_rows_than_the_largest_bucket_is_read_in_several_passes():
    model = network("gpt2", positions=300)
    static, context = GraphModel(model, "target"), Context.of([1, 2, 3])
    tree = grown(context, 300, random.Random(0))
    assert (static.score(context, tree) - uncached(model, context, tree)).abs().max() < 1e-12
    assert static.usage.passes == 3 and static.usage.rows <= 303


def test_a_full_cache_grows_and_what_was_read_stays(monkeypatch):
    model = network("gpt2", positions=300)
    monkeypatch.setattr("specdec_lib.runtime.graphs.ROOM", -290)
    monkeypatch.setattr("specdec_lib.runtime.static.LENGTHS", (8,))
    static = GraphModel(model, "target")
    before, context = static._network.cache.shape[1], Context.of([1, 2, 3])
    for guesses in (3, 30, 60):
        tree = grown(context, guesses, random.Random(guesses))
        assert (static.score(context, tree) - uncached(model, context, tree)).abs().max() < 1e-12
    assert static._network.cache.shape[1] > before
    assert static.usage.rows <= 3 + 93  # the prompt was read once


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attention", ["fused", "products"])
def test_nothing_in_a_pass_depends_on_data_or_leaves_the_device(kind, attention):
    """On a device that has shapes and no numbers, whoever looks at one, or brings one from the host, fails."""
    static = StaticNetwork(network(kind).to("meta"), 20, attention=attention)
    with torch.no_grad():
        StaticPass(static, 4, 64).run()
        with pytest.raises(RuntimeError, match="item"):
            int(StaticPass(static, 4, 64)._sees.sum())


def test_lengths_double_beyond_the_longest():
    assert [length_for(slots) for slots in (1, 256, 257, 1024, 1025, 5000)] == [256, 256, 512, 1024, 2048, 8192]
    assert BUCKETS == tuple(sorted(BUCKETS))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_graphs_without_a_gpu_are_refused_in_words():
    with pytest.raises(ValueError, match="CUDA graphs need a model on a GPU, this one is on cpu, and this machine has none that torch can use"):
        GraphModel(network("gpt2"), "target", graphs=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", KINDS)
def test_replayed_graphs_give_what_an_uncached_forward_gives(kind):
    model = network(kind).cuda()
    static, context = GraphModel(model, "target"), Context.of([1, 2, 3])
    tree = grown(context, 20, random.Random(0))
    plain = CachedModel(model, "target").score(context, tree)
    assert (static.score(context, tree) - plain).abs().max() < 1e-6
