"""Staged drafts: the draft's very tree in fewer passes, and chains that are its own."""

from dataclasses import dataclass, field
from functools import partial

import pytest
import torch
from fakes import PROMPT, Table, deviation, fixed_model, table_model

from specdec_lib.core.chance import Chance, EveryBranch, Sampler, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode, models_in
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts import staged
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import TableModel

T1 = Sampler(1.0)
BY_GAP = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))
SHAPES = {
    "chain": lambda model, siblings: ChainDraft(model, 5, siblings=siblings),
    "widths": lambda model, siblings: TreeDraft(model, widths=(3, 2, 1, 1), siblings=siblings),
    "best of 8": lambda model, siblings: TreeDraft(model, budget=8, depth=5, siblings=siblings),
    "best of 16 with a floor": lambda model, siblings: TreeDraft(
        model, budget=16, depth=6, floor=0.02, siblings=siblings
    ),
    "best of 16 by gap": lambda model, siblings: TreeDraft(
        model, budget=16, depth=6, siblings=siblings, match=BY_GAP
    ),
}
SAMPLERS = {"T=0": Sampler(0), "T=1": T1, "top-k": Sampler(1.0, top_k=3)}
CONTEXTS = 2  # per shape, sampler and kind of sibling: 120 here, thousands in `make lossless`


@dataclass
class Counting(Table):
    """A model that keeps the trees that it is asked to score."""

    model: TableModel
    name: str = "draft"
    max_positions: int = 1000
    calls: list[TokenTree] = field(default_factory=list)

    @property
    def vocabulary(self) -> int:
        return self.model.vocabulary

    def score(self, context: Context, tree: TokenTree) -> torch.Tensor:
        self.calls.append(tree)
        return self.model.score(context, tree)


def nodes(tree: TokenTree) -> tuple:
    return tree.root_position, tree.tokens, tree.parents, tree.scores


def contexts(count: int = CONTEXTS, vocabulary: int = 6) -> list[Context]:
    generator = torch.Generator().manual_seed(0)
    return [
        Context.of(torch.randint(vocabulary, (3 + number % 7,), generator=generator).tolist())
        for number in range(count)
    ]


@pytest.mark.parametrize("siblings", ["ranked", "top", "iid", "distinct"])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_tree_is_the_drafts_own_in_no_more_passes(shape, sampler, siblings, unchecked):
    model, other = Counting(table_model(6, 1, name="draft")), table_model(6, 2, name="scout")
    plain = shape(model, siblings)
    passes = {"alone": 0, "with itself": 0, "with another": 0, "with nothing": 0}
    scouts = {
        "with itself": TreeDraft(table_model(6, 1, name="same"), widths=(3, 1, 1)),
        "with another": TreeDraft(other, widths=(2, 1), siblings="top"),
        "with nothing": NoDraft(),
    }
    for number, context in enumerate(contexts()):
        chance = Chance(number, sampler)
        model.calls.clear()
        wanted = plain.propose(context, chance)
        alone = len(model.calls)
        passes["alone"] += alone
        for name, scout in scouts.items():
            model.calls.clear()
            tree = StagedTree(plain, scout).propose(context, chance)
            assert nodes(tree) == nodes(wanted)
            assert all(
                (a is None) == (b is None) and (a is None or torch.equal(a, b))
                for a, b in zip(tree.rows, wanted.rows, strict=True)
            )
            assert len(model.calls) <= alone
            passes[name] += len(model.calls)
    assert passes["with nothing"] == passes["alone"]
    if siblings == "ranked":
        assert passes["with itself"] < 0.75 * passes["alone"]


def test_a_scout_that_is_always_right_leaves_one_pass():
    model = Counting(table_model(6, 1, name="draft"))
    same = ChainDraft(table_model(6, 1, name="same"), 5)
    tree = StagedTree(ChainDraft(model, 5), same).propose(Context.of(PROMPT), Chance(0, T1))
    # the root and four guesses: nothing below the fifth is wanted
    assert [len(part) for part in model.calls] == [5]
    assert tree.sources == ("context", "same", "same", "same", "same", "draft")


def test_rows_of_the_wrong_path_are_caught(monkeypatch):
    """Negative control: were rows kept by a node's last two tokens, the trees would differ."""
    model = table_model(6, 1, name="draft")
    plain = TreeDraft(model, widths=(3, 2, 2, 1))
    real = staged._Reading.children

    def confused(self, tree, widths):
        self.known |= {
            tree.path_tokens(node): self.known[path]
            for node in widths
            for path in list(self.known)
            if path[-2:] == tree.path_tokens(node)[-2:]
        }
        return real(self, tree, widths)

    monkeypatch.setattr(staged._Reading, "children", confused)
    scout = TreeDraft(table_model(6, 2, name="scout"), widths=(3, 3, 3))
    staged_tree = StagedTree(plain, scout)
    assert any(
        nodes(plain.propose(context, Chance(0, T1)))
        != nodes(staged_tree.propose(context, Chance(0, T1)))
        for context in contexts(20)
    )


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_a_staged_chain_under_noise_is_the_chain_itself(sampler):
    model, other = Counting(table_model(6, 1, name="draft")), table_model(6, 1, name="scout")
    for number, context in enumerate(contexts(10)):
        for length in (1, 2, 5):
            wanted = ChainDraft(model, length).propose(context, Chance(number, sampler))
            model.calls.clear()
            draft = StagedChain(model, ChainDraft(other, 3), length)
            assert nodes(draft.propose(context, Chance(number, sampler))) == nodes(wanted)
            # the scout is always right: three guesses and a bonus per pass
            assert len(model.calls) == -(-length // 4)


def test_inner_rounds_that_share_their_keys_are_caught(monkeypatch):
    """The bug of an inner round keyed without its place: an earlier draw would decide again."""
    real = Chance.inner
    monkeypatch.setattr(EveryBranch, "inner", lambda self, part, slots=(): real(self, part))
    target, draft = table_model(3, 3), table_model(3, 4, name="draft")
    scout = ChainDraft(table_model(3, 5, name="scout"), 1, siblings="iid")
    run = partial(decode, target, StagedChain(draft, scout, 3, siblings="iid"), PROMPT)
    with pytest.raises(ValueError, match="asked twice"):
        every_outcome(lambda one: run(one, max_new_tokens=4, rule=reject).tokens, T1)


@pytest.mark.parametrize("bug", ["scout's distribution as row", "no correction"])
def test_a_wrong_inner_rule_is_caught(bug, monkeypatch, unchecked):
    target, draft = fixed_model((0.5, 0.3, 0.2)), fixed_model((0.2, 0.5, 0.3), "draft")
    scout = fixed_model((0.6, 0.2, 0.2), "scout")
    if bug == "no correction":

        def accept_all(tree, logits, chance):
            return staged.look_up(tree, logits, Chance(0, Sampler(0)))

        monkeypatch.setattr(staged, "reject", accept_all)
    else:
        monkeypatch.setattr(staged.StagedChain, "_longer", _with_row_of(scout))
    chain = StagedChain(draft, ChainDraft(scout, 1, siblings="iid"), 2, siblings="iid")
    assert deviation(target, chain, T1, length=2) > 1e-3


def _with_row_of(scout: TableModel):
    real = StagedChain._longer

    def longer(self, chain, token, source, logits, sampler):
        return real(self, chain, token, source, scout.logits(()), sampler)

    return longer


def test_any_number_of_stages_writes_the_targets_own_tokens(unchecked):
    target = table_model(6, 1, name="target")
    models = {f"stage {seed}": table_model(6, seed, name=f"stage {seed}") for seed in (2, 3, 4)}
    for sampler in SAMPLERS.values():
        given = {"prompt": PROMPT, "chance": Chance(5, sampler), "max_new_tokens": 6}
        tree: Draft = MaxGram(None, 3)
        chain: Draft = MaxGram(None, 3)
        for model in reversed(models.values()):
            tree = StagedTree(TreeDraft(model, budget=4, depth=3), tree)
            chain = StagedChain(model, chain, 3)
            drafts = (tree, chain, NoDraft())
            assert len({decode(target, draft, **given).tokens for draft in drafts}) == 1
        assert {*models, "target"} == {*models_in(target, tree)} == {*models_in(target, chain)}


def test_bad_values_are_refused():
    model = table_model(3, 1)
    with pytest.raises(ValueError, match=r"guided of StagedTree must be .*, got 0"):
        StagedTree(ChainDraft(model), NoDraft(), guided=0)
    with pytest.raises(ValueError, match=r"length of StagedChain must be .*, got 0"):
        StagedChain(model, NoDraft(), 0)
    with pytest.raises(ValueError, match="'ranked' or 'iid', got 'top'"):
        StagedChain(model, NoDraft(), siblings="top")
