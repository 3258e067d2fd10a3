"""A draft that reads its target is a function of the context alone, equals its training, is exact
under every rule, and changes no token whatever it reads.
"""

import pytest
import torch
from decoders import DECODERS, decoder
from fakes import SAMPLERS as RULED
from fakes import distance
from test_runtime_fast import SAMPLERS, llama, walk
from transformers import LlamaForCausalLM

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode, read_prompt, rounds
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.probing import difference
from specdec_lib.models.cached.reading import ReadingModel
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.network_passes import head_logits
from specdec_lib.models.reading import ReadingDraft, unrolled
from specdec_lib.models.students import build_student
from specdec_lib.workload import READING, reading_draft

READ = (0, 2)  # layers of a target of four
WINDOW = 7
KINDS = ("reference", "fast", "fast draft of a reference target", "int8")
pytestmark = pytest.mark.usefixtures("unchecked")


def reading(target: LlamaForCausalLM) -> LlamaForCausalLM:
    network = build_student(target, [1])
    draft = ReadingDraft(network, READ)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for projection in (draft.from_target, draft.from_own):
            torch.nn.init.normal_(projection.weight, std=1.0)
    network.add_module("reading", draft)
    return network


def pair(kind: str, *, cut: bool = False, family: str | None = None):
    """A target and the draft that reads it."""
    network = llama(num_hidden_layers=4) if family is None else decoder(family, layers=4)
    part = reading(network)
    if cut:
        cut_head(part, range(1, 61, 3))
    edition = "int8" if kind == "int8" else "exact"
    fast = kind in ("fast", "int8")
    target = (
        FastModel(network, "target", edition=edition) if fast else CachedModel(network, "target")
    )
    if kind == "reference":
        return target, ReadingModel(part, target, "draft", window=WINDOW)
    return target, FastModel(part, "draft", edition=edition, window=WINDOW, target=target)


@torch.no_grad()
def trained(target, draft, text: tuple[int, ...]) -> list[torch.Tensor]:
    """The logits after every token of a text, as its first, second, third guess in a row."""
    network = target.model
    ids = torch.tensor([text])
    states = network(ids, output_hidden_states=True).hidden_states
    hidden = [states[layer + 1] for layer in READ]
    steps = unrolled(draft.model.reading, draft.model, ids, hidden, 3, WINDOW)
    rows = network.get_output_embeddings().weight
    return [head_logits(network, one[0], rows) for one in steps]


FAMILIES = [None, *(kind for kind in DECODERS if not kind.startswith(("gpt2", "llama")))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_chain_of_guesses_has_the_logits_that_it_was_trained_with(kind, family):
    target, draft = pair(kind, family=family)
    text = tuple(torch.randint(61, (30,), generator=torch.Generator().manual_seed(1)).tolist())
    wanted = trained(target, draft, text)
    for end in range(1, len(text)):
        context = Context.of(text[:end])
        tree = TokenTree.rooted(context)
        for step in range(min(3, len(text) - end) - 1):
            tree = tree.grown([text[end + step]], [step], source="test", scores=[1.0])
        for step, row in enumerate(draft.score(context, tree)):
            assert difference(row[None], wanted[step][end - 1 + step][None]) < 1e-3, (end, step)
    assert difference(wanted[0], wanted[1]) > 0.02, "another step has other logits"


@pytest.mark.parametrize("cut", [False, True], ids=["whole head", "cut head"])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_follow_from_the_context_whatever_was_read_before(kind, cut):
    target, draft = pair(kind, cut=cut)
    others = pair(kind, cut=cut)
    for number, (context, tree) in enumerate(walk(40, seed=5)):
        found = draft.score(context, tree)
        if number % 3 == 0:
            target.score(context, tree)  # in its tree as in a round
        for one in others:
            one.forget()
        if number % 5 == 0:
            others[0].score(context, TokenTree.rooted(context))
        wanted = others[1].score(context, tree)
        if "reference" in kind:
            torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        else:
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_no_token_changes_and_stale_states_change_guesses_only(kind, sampler, monkeypatch):
    target, draft = pair(kind)
    prompt = tuple(range(20))
    tree = TreeDraft(draft, budget=6, depth=3)

    def written(guesser):
        target.forget()
        draft.forget()
        return decode(target, guesser, prompt, Chance(1, sampler), max_new_tokens=40)

    plain, found = written(NoDraft()), written(tree)
    assert found.tokens == plain.tokens
    read = target.states
    monkeypatch.setattr(target, "states", lambda *given: torch.zeros_like(read(*given)))
    stale = written(tree)
    assert stale.tokens == plain.tokens
    trees = [[one.tree.tokens for one in made.rounds] for made in (found, stale)]
    assert trees[0] != trees[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_token_reads_nothing_of_a_text_before(kind):
    """A text so long that its window began later has filled the place of the first token."""
    long, short = Context.of(range(1, 30)), Context.of((1, 2, 3))
    _, draft = pair(kind)
    alone = draft.score(short, TokenTree.rooted(short)).clone()
    for context in (long, short):
        found = draft.score(context, TokenTree.rooted(context))
    if "reference" in kind:  # where sums depend on what is computed beside a row
        torch.testing.assert_close(found, alone, atol=1e-4, rtol=1e-4)
    else:
        assert torch.equal(found, alone)


def test_what_the_target_has_not_read_it_reads_once():
    target, draft = pair("fast")
    context = Context.of(range(30))
    draft.score(context, TokenTree.rooted(context))
    assert target.usage.rows == 29 and draft.usage.rows == WINDOW
    target.score(context, TokenTree.rooted(context))
    assert target.usage.rows == 30
    longer = context.extended([4])
    draft.score(longer, TokenTree.rooted(longer))
    assert target.usage.rows == 30 and draft.usage.rows == WINDOW + 1


@pytest.mark.parametrize("kind", ["reference", "fast"])
@pytest.mark.parametrize("siblings", ["iid", "distinct", "top"])
@pytest.mark.parametrize("sampler", RULED.values(), ids=RULED)
def test_reject_is_exact_with_a_draft_that_reads(kind, siblings, sampler):
    network = llama(vocab_size=3, num_hidden_layers=4, initializer_range=0.5)
    part = reading(network)
    target = CachedModel(network, "target")
    if kind == "reference":
        draft = ReadingModel(part, target, "draft", window=2)
    else:
        draft = FastModel(part, "draft", window=2, target=target)
    widths = (2,) if siblings == "distinct" else (1, 1)
    guesser = TreeDraft(draft, widths=widths, siblings=siblings)
    check_reject(target, guesser, sampler, control=siblings == "distinct")


def check_reject(target, guesser: TreeDraft, sampler: Sampler, *, control: bool = True) -> None:
    """Two tokens, enumerated, have the target's distribution under `reject`; and under `always`
    another one.
    """

    def written(draft, rule):
        def run(chance: Chance) -> tuple[int, ...]:
            return decode(target, draft, (1, 0), chance, max_new_tokens=2, rule=rule).tokens

        return every_outcome(run, sampler)

    wanted = written(NoDraft(), reject)
    assert distance(written(guesser, reject), wanted) < 1e-5
    if control and sampler.temperature:
        assert distance(written(guesser, always), wanted) > 0.01


def always(tree: TokenTree, target_logits: torch.Tensor, chance: Chance) -> Verdict:
    """A rule that takes every first guess: no longer the target's distribution."""
    return Verdict((1,), chance.draw("emit", chance.sampler.probs(target_logits[1]), len(tree), ()))


def test_a_draft_without_its_target_and_a_target_with_another_reader_are_refused():
    target, draft = pair("fast")
    with pytest.raises(ValueError, match="this draft reads its target; give it: target="):
        FastModel(draft.model, "draft")
    with pytest.raises(ValueError, match="is a network with the part `reading`"):
        FastModel(llama(), "draft", target=target)
    with pytest.raises(ValueError, match=r"after layers \[0, 2\], which another model reads"):
        target.keep_states([1])
    for wrong in ([], [3], [-1]):
        with pytest.raises(ValueError, match="layers from 0 to 2 of target"):
            FastModel(llama(num_hidden_layers=4), "target").keep_states(wrong)
    with pytest.raises(ValueError, match="a window has 1 token or more, got 0"):
        ReadingModel(draft.model, target, "draft", window=0)


def test_a_chain_costs_a_pass_per_guess():
    _, draft = pair("fast")
    context = Context.of(range(20))
    ChainDraft(draft, 3).propose(context, Chance(0, SAMPLERS[0]))
    assert draft.usage.passes == 3 and draft.usage.rows == WINDOW + 2


def test_a_scout_is_left_out_where_it_cannot_save_a_pass():
    _, draft = pair("fast")
    context = Context.of(range(20))
    tree = TreeDraft(draft, budget=6, depth=4)
    grown = tree.propose(context, Chance(0, SAMPLERS[0]))
    passes = draft.usage.passes
    draft.forget()
    scout = ChainDraft(FastModel(llama(), "scout"), 3)
    staged = StagedTree(tree, scout).propose(context, Chance(0, SAMPLERS[0]))
    assert staged == grown and draft.usage.passes == 2 * passes
    assert scout.model.usage.passes == 0


def test_a_folder_that_lacks_the_tokens_that_its_draft_scores_is_refused(tmp_path):
    target, _ = pair("fast")
    assert reading_draft(tmp_path, target) is None
    (tmp_path / READING).write_bytes(b"weights")
    with pytest.raises(ValueError, match=r"has a draft and lacks head\.json, the tokens that it"):
        reading_draft(tmp_path, target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_was_read_is_not_read_again_and_rounds_are_the_same(kind):
    target, draft = pair(kind)
    tree = TreeDraft(draft, budget=5, depth=3)
    prompt = Context.of([(7 * place) % 61 for place in range(30)])
    other = Context.of((*prompt.tokens[:20], 1, 2, 3, 4, 5, 6))
    chance = Chance(3, SAMPLERS[1])

    def played(context: Context, again: bool):
        read = read_prompt(target, tree, context, again=again)["target"].rows
        found = rounds(target, tree, context, chance, max_new_tokens=12)
        return read, [(one.emitted, one.usage["target"].rows) for one, _ in found]

    for context, kept in ((prompt, len(prompt) - 2), (other, 20)):
        rows, first = played(context, False)
        assert rows == len(context) - 1
        assert played(context, True) == (1, first)  # the last token's logits are computed again
        played(prompt, False)
        assert played(context, True) == (max(1, len(context) - 1 - kept), first)
