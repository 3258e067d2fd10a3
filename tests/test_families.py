"""Every family that the fast runtime knows, against transformers: its logits, and its tokens."""

from functools import partial
from re import findall

import pytest
import torch
from decoders import DECODERS, POSITIONS, WINDOW, WORDS, decoder, rounded
from kinds import shaken
from test_reading_model import check_reject

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.pages import GUIDE
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.probing import difference
from specdec_lib.models.fast.families import FAMILIES
from specdec_lib.models.fast.model import FastModel

LENGTHS = (1, 64, 65, 300, 2000)
RUNTIMES = {
    "reference": CachedModel,
    "fast": FastModel,
    "int8": partial(FastModel, edition="int8"),
}
WINDOWED = ("qwen2", "mistral", "ministral", "olmo3", "phi3", "gemma3")

pytestmark = pytest.mark.usefixtures("unchecked")


def test_every_family_is_tried():
    kinds = {made.config_class.model_type for made, _ in DECODERS.values()}
    assert kinds == FAMILIES.keys() - {"gemma3"}, "gemma3 is a gemma3_text with other parts"


def text(length: int, seed: int = 0) -> tuple[int, ...]:
    torch.manual_seed(seed)
    return tuple(torch.randint(0, WORDS, (length,)).tolist())


@torch.no_grad()
def plain(network: torch.nn.Module, tokens: tuple[int, ...]) -> torch.Tensor:
    return network(torch.tensor([tokens]), use_cache=False).logits[0, -1:]


@pytest.mark.parametrize("runtime", ["reference", "fast"])
@pytest.mark.parametrize("kind", DECODERS)
def test_logits_are_those_of_transformers(kind, runtime):
    network = decoder(kind)
    model = RUNTIMES[runtime](network, "target")
    for length in LENGTHS:
        context = Context.of(text(length))
        found = model.score(context, TokenTree.rooted(context))
        wanted = plain(network, context.tokens)
        assert (found - wanted).abs().max() < 1e-4 * wanted.std()


@pytest.mark.parametrize("kind", DECODERS)
def test_logits_of_the_int8_edition_are_those_of_the_same_rounded_weights_and_rows(kind):
    """Of one of a few texts, for where a number lies between two steps its last bit decides;
    through more layers it decides somewhere in every long text.
    """
    for layers, most in ((1, 1e-4), (3, 0.03)):
        network = decoder(kind, layers=layers)
        same = rounded(network)
        model = RUNTIMES["int8"](network, "target")
        for length in LENGTHS:
            apart = []
            for seed in range(5):
                context = Context.of(text(length, seed))
                found = model.score(context, TokenTree.rooted(context))
                apart.append(difference(found, plain(same, context.tokens)))
                assert difference(found, plain(network, context.tokens)) > 4e-3, "rounding shows"
            assert min(apart) < (1e-4 if length == 1 else most) and max(apart) < 0.03


@pytest.mark.parametrize("kind", WINDOWED)
def test_local_layers_see_their_window_and_a_window_of_all_positions_is_none(kind):
    network = decoder(kind)
    tokens = text(300)
    for window, same in ((WINDOW, True), (WINDOW + 1, False), (POSITIONS, False)):
        network.config.sliding_window = window
        for runtime in ("reference", "fast"):
            model = RUNTIMES[runtime](network, "target")
            context = Context.of(tokens)
            found = model.score(context, TokenTree.rooted(context))
            wanted = plain(decoder(kind), tokens)
            assert (difference(found, wanted) < 1e-4) == same
            assert difference(found, plain(network, tokens)) < 1e-4


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", DECODERS)
def test_a_tree_changes_no_token_and_greedily_they_are_those_of_generate(kind, runtime):
    network = decoder(kind)
    target = RUNTIMES[runtime](network, "target")
    draft = TreeDraft(RUNTIMES[runtime](shaken(network), "draft"), budget=8, depth=4)
    prompt = text(12)
    for temperature in (0.0, 1.0):
        chance = Chance(1, Sampler(temperature))
        wanted = decode(target, NoDraft(), prompt, chance, max_new_tokens=100)
        found = decode(target, draft, prompt, chance, max_new_tokens=100)
        assert found.tokens == wanted.tokens
        assert len(found.rounds) < 0.9 * len(wanted.rounds)
        if not temperature and runtime != "int8":
            given = torch.tensor([prompt])
            options = {"attention_mask": torch.ones_like(given), "pad_token_id": 0}
            made = network.generate(given, max_new_tokens=100, do_sample=False, **options)
            assert wanted.tokens == tuple(made[0, len(prompt) :].tolist())


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(3.0)], ids=str)
@pytest.mark.parametrize("kind", DECODERS)
def test_reject_is_exact_by_enumeration(kind, sampler):
    target, draft = (
        FastModel(decoder(kind, vocab_size=3, initializer_range=spread), name)
        for name, spread in (("target", 0.3), ("draft", 0.2))
    )
    check_reject(target, TreeDraft(draft, widths=(2,), siblings="distinct"), sampler)


def test_the_guide_names_every_family():
    table = (GUIDE / "runtimes.md").read_text("utf-8").split("| `model_type` |")[1].split("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {*findall(r"`(\w+)`", " ".join(first))} == {*FAMILIES}
