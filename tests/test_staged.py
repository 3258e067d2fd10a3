"""Staged drafts: the draft's very tree in fewer passes, and chains that are its own."""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest
import torch
from cases import BY_GAP
from fakes import PROMPT, T1, Table, table_model
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts import staged
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.table import TableModel
from specdec_lib.show import figures, tables

SHAPES = {
    "chain": partial(ChainDraft, length=5),
    "widths": partial(TreeDraft, widths=(3, 2, 1, 1)),
    "best of 8": partial(TreeDraft, budget=8, depth=5),
    "best of 16 with a floor": partial(TreeDraft, budget=16, depth=6, floor=0.02),
    "best of 16 by gap": partial(TreeDraft, budget=16, depth=6, match=BY_GAP),
}
SAMPLERS = {"T=0": Sampler(0), "T=1": T1, "top-k": Sampler(1.0, top_k=3)}
CONTEXTS = 2  # per shape, sampler and kind of sibling


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


def contexts(count: int) -> list[Context]:
    dice = random.Random(0)
    return [Context.of(dice.choices(range(6), k=3 + number % 7)) for number in range(count)]


def nodes(tree: TokenTree) -> tuple:
    rows = [None if row is None else row.tolist() for row in tree.rows]
    return tree.root_position, tree.tokens, tree.parents, tree.scores, rows


@pytest.mark.parametrize("siblings", ["ranked", "top", "iid", "distinct"])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_tree_is_the_drafts_own_in_no_more_passes(shape, sampler, siblings, unchecked):
    model, other = Counting(table_model(6, 1, name="draft")), table_model(6, 2, name="scout")
    plain, passes = shape(model, siblings=siblings), Counter()
    same = TreeDraft(table_model(6, 1, name="same"), widths=(3, 1, 1))
    drafts = {
        "alone": plain,
        "with itself": StagedTree(plain, same),
        "with another": StagedTree(plain, TreeDraft(other, widths=(2, 1), siblings="top")),
        "with nothing": StagedTree(plain, NoDraft()),
    }
    for number, context in enumerate(contexts(CONTEXTS)):
        trees, calls = {}, {}
        for name, draft in drafts.items():
            model.calls.clear()
            trees[name] = nodes(draft.propose(context, Chance(number, sampler)))
            calls[name] = len(model.calls)
        assert all(tree == trees["alone"] for tree in trees.values())
        assert calls["with nothing"] == calls["alone"] == max(calls.values())
        passes.update(calls)
    if siblings == "ranked":
        assert passes["with itself"] < 0.75 * passes["alone"]


def test_a_scout_that_is_always_right_leaves_one_pass():
    model = Counting(table_model(6, 1, name="draft"))
    same = ChainDraft(table_model(6, 1, name="same"), 5)
    tree = StagedTree(ChainDraft(model, 5), same).propose(Context.of(PROMPT), Chance(0, T1))
    # the root and four guesses: nothing below the fifth is wanted
    assert [len(part) for part in model.calls] == [5]
    assert tree.sources == ("context", "same", "same", "same", "same", "draft")


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_rows_of_a_pass_are_those_that_the_draft_reads_first(shape, sampler):
    """What it takes is in its own tree, what is wasted is not; and the picture counts them."""
    model, other = Counting(table_model(6, 1, name="draft")), table_model(6, 2, name="scout")
    same = TreeDraft(table_model(6, 1, name="same"), widths=(2, 1))
    for scout in (same, TreeDraft(other, widths=(2, 1), siblings="top")):
        draft = StagedTree(shape(model), scout)
        for context in contexts(CONTEXTS):
            model.calls.clear()
            tree = draft.propose(context, Chance(0, sampler))
            first = set(map(model.calls[0].path_tokens, range(len(model.calls[0]))))
            rows = tables.scout_rows(draft, context, Chance(0, sampler), text=str)
            paths: list[tuple[int, ...]] = [()]
            for row in rows[1:].itertuples():
                paths.append((*paths[row.parent], int(row.token)))
            read = {path for path, role in zip(paths, rows.role, strict=True) if role != "chosen"}
            assert read == first
            own = set(map(tree.path_tokens, range(len(tree))))
            assert [path in own for path in paths] == list(rows.role != "wasted")
            headline = figures.scout_pass(rows, context="a").layout.title.text
            assert headline.endswith(f"{(rows.role == 'taken').sum()} of them taken")


def test_passes_with_a_scout_that_is_always_right_are_fewer_and_the_tree_is_the_same():
    ladder, context = tiny_ladder("float64"), Context.of(list(range(3, 20)))
    draft, same = (ChainDraft(CachedModel(ladder.draft.model, name), 5) for name in ("a", "b"))
    counted = tables.scout_passes(StagedTree(draft, same), context, Chance(0, Sampler(0)))
    assert list(counted.passes) == [5, 1]
    assert counted["the same tree"].all() and set(counted.guesses) == {5}


@pytest.mark.parametrize("siblings", ["ranked", "top", "iid", "distinct"])
def test_networks_with_caches_and_n_grams_grow_the_drafts_own_tree(siblings, unchecked):
    ladder, context = tiny_ladder("float64"), Context.of(range(3, 20))
    models = [CachedModel(ladder.draft.model, "draft") for _ in range(2)]
    alone, staged = (TreeDraft(one, budget=16, depth=6, siblings=siblings) for one in models)
    scout = NgramDraft(ladder.katz, budget=8, siblings="ranked" if siblings == "ranked" else "top")
    for seed in range(4):
        drafts, chance = (alone, StagedTree(staged, scout)), Chance(seed, T1)
        trees = [one.propose(context, chance) for one in drafts]
        one, other = map(nodes, trees)
        assert one[:3] == other[:3] and one[3] == pytest.approx(other[3])
        rows = zip(one[4], other[4], strict=True)
        assert all(a is b or a == pytest.approx(b, abs=1e-9) for a, b in rows)
        context = context.extended(trees[0].path_tokens(len(trees[0]) - 1))
    assert models[1].usage.passes < models[0].usage.passes


def test_rows_of_the_wrong_path_are_caught(monkeypatch):
    """Negative control: were rows kept by a node's last two tokens, the trees would differ."""
    plain = TreeDraft(table_model(6, 1, name="draft"), widths=(3, 2, 2, 1))
    staged_tree = StagedTree(plain, TreeDraft(table_model(6, 2, name="scout"), widths=(3, 3, 3)))
    real = staged._Reading.children

    def confused(self, tree, widths):
        for node, path in product(widths, list(self.known)):
            if path[-2:] == tree.path_tokens(node)[-2:]:
                self.known[tree.path_tokens(node)] = self.known[path]
        return real(self, tree, widths)

    monkeypatch.setattr(staged._Reading, "children", confused)
    trees = (
        [nodes(one.propose(context, Chance(0, T1))) for one in (plain, staged_tree)]
        for context in contexts(20)
    )
    assert any(one != other for one, other in trees)


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
