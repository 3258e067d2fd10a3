"""The selections of drafts: stored tables hold their names, so every name stands for the draft that
it stood for when they were measured. `settings.json` has them as they were then.
"""

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_ladder

from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable
from specdec_lib.measure.settings import cascade, explorers, latency, learning, staged, table
from specdec_lib.measure.settings.bench import OURS, bench_settings
from specdec_lib.measure.settings.compare import USUAL
from specdec_lib.measure.settings.explorers import GUESSERS, TreeSize
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.names import AUTOREGRESSIVE, HF
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, Setting
from specdec_lib.measure.target_text import SAMPLERS as TEXT_SAMPLERS
from specdec_lib.workload import Ladder, Measured

PINNED = json.loads((Path(__file__).parent / "settings.json").read_text(encoding="utf-8"))
SAMPLERS = {"greedy": GREEDY, "top-k 50": TOP_50}
PAIRS = ("draft target", "middle target", "n-gram target", "draft middle", "n-gram draft")
PAIRS += ("reading target",)
BUILT_ON = (
    "draft, budget 8, depth 4",
    "middle, budget 4, depth 4, floor 0.15",
    "reading, budget 8, depth 4",
)
OF_ALL_SAMPLERS = ("n-gram", "tree", "staged chain")  # methods; the others build on the same parts
SIZES = {"budget": TreeSize(6, 3), "deep": TreeSize(4, 9), "widths": TreeSize(15, 3, (3, 2, 1))}
OBEYING = {"middle": ("draft", "Max-Gram"), "draft": ("n-gram", "Max-Gram")}
Described = dict[str, str]


@pytest.fixture(scope="module")
def named() -> Ladder:
    """A tiny ladder with a match table per pair and sampler, each called after its own."""
    ladder = tiny_ladder(reads=True)
    tables = [
        Measured(*pair.split(), "ranked", sampler, 0, MatchTable((0.5, 0.2), f"{pair}, {name}"))
        for pair in PAIRS
        for name, sampler in SAMPLERS.items()
    ]
    card = ladder.card | {"katz": {"temperature": 1.5}}
    return replace(ladder, measured=tuple(tables), card=card)


def described(value: object) -> str:
    """A draft with all of its fields but those that are None; models and tables by name."""
    if isinstance(value, LanguageModel | MatchTable):
        return value.name
    if isinstance(value, np.ndarray):
        return f"{len(value)} bigrams"
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    if not is_dataclass(value):
        return str(value)
    shown = {one.name: getattr(value, one.name) for one in fields(value) if one.repr}
    given = [f"{name} {described(one)}" for name, one in shown.items() if one is not None]
    return f"{type(value).__name__}({', '.join(given)})"


def by_name(drafts: dict[str, Draft]) -> Described:
    return {name: described(draft) for name, draft in drafts.items()}


def by_method(settings: Iterable[Setting]) -> Described:
    return {f"{one.method}: {one.name}": described(one.draft) for one in settings}


def selections(ladder: Ladder) -> dict[str, Described]:
    found = {}
    for name, sampler in SAMPLERS.items():
        for method in (AUTOREGRESSIVE, *OURS):
            if sampler == GREEDY or method in OF_ALL_SAMPLERS:
                grid = bench_settings(ladder, sampler, method, BUILT_ON)
                found[f"bench, {method}, {name}"] = by_method(grid)
        chosen = staged.staged_settings(ladder, [sampler])
        found[f"staged, {name}"] = by_name({one.name: one.draft for one in chosen})
        found[f"levels, {name}"] = by_name(staged.levels(ladder, sampler))
        found[f"table, {name}"] = by_name(table.table_drafts(ladder, sampler))
        found[f"learning, {name}"] = by_method(learning.learning_settings(ladder, sampler))
        found[f"latency, {name}"] = by_method(latency.latency_settings(ladder, sampler))
    found["few"] = by_method(latency.few_settings(ladder, GREEDY))
    found["cascade"] = by_method(cascade.paper_settings(ladder))
    found["without network"] = {"": described(learning.without_network())}
    found["compare"] = {name: ": ".join(setting) for name, setting in USUAL.items()}
    guess = partial(explorers.guesser, ladder, GREEDY)
    for name, size in SIZES.items():
        found[f"explorers, {name}"] = by_name({one: guess(one, size) for one in GUESSERS})
    for model, names in OBEYING.items():
        obeying = {one: guess(one, SIZES["budget"], model) for one in names}
        found[f"explorers, obeying {model}"] = by_name(obeying)
    return found


def test_every_name_stands_for_the_draft_it_was_measured_with_in_the_same_order(named, unchecked):
    found = selections(named)
    assert found.keys() == PINNED.keys()
    for selection, drafts in PINNED.items():
        assert list(found[selection].items()) == list(drafts.items()), selection


def test_the_description_tells_drafts_apart(named):
    """The control: another size, table, order or sampler of the same draft reads differently."""
    drafts = LadderDrafts(named, GREEDY)
    one = drafts.tree(16, 6)
    others = [
        drafts.tree(16, 7),
        drafts.tree(16, 6, floor=0.02),
        drafts.tree(16, 6, model="middle"),
        drafts.tree(16, 6, obeyed="middle"),
        LadderDrafts(named, TOP_50).tree(16, 6),
        LadderDrafts(named, GREEDY, matched=False).tree(16, 6),
    ]
    assert len({described(draft) for draft in (one, *others)}) == 7
    assert described(drafts.tree(16, 6)) == described(one)


@pytest.mark.parametrize("method", OURS)
def test_without_named_trees_a_grid_is_built_on_all_of_them(named, method, unchecked):
    """So that a grid of three trees grows by the number of trees, and any other stays as it is. A
    staged tree of the draft that reads its target is one of the plain draft.
    """
    trees = len(bench_settings(named, GREEDY, "tree"))
    every = len(bench_settings(named, GREEDY, method))
    three = len(bench_settings(named, GREEDY, method, BUILT_ON))
    times = {"staged": 32 / 2, "copies first": 56 / 3}.get(method, 1)
    assert trees == 56 and every == three * times


def test_what_is_compared_is_in_the_benchs_grid(named, unchecked):
    grids = {method: bench_settings(named, GREEDY, method) for method in (AUTOREGRESSIVE, *OURS)}
    names = {method: {one.name for one in grid} for method, grid in grids.items()}
    assert all(name in names[method] for method, name in USUAL.values() if method not in HF)


def test_the_table_has_the_samplers_of_the_stored_texts():
    assert table.SAMPLERS == TEXT_SAMPLERS


def test_a_ladder_without_a_part_says_which(named):
    bare = LadderDrafts(replace(named, middle=None, katz=None, reading=None), GREEDY)
    with pytest.raises(ValueError, match="models that draft in this ladder: draft; got 'middle'"):
        bare.chain(4, model="middle")
    with pytest.raises(ValueError, match="need an n-gram table, and this ladder has none"):
        bare.scout(4)
    assert bare.chain(4).length == LadderDrafts(named, GREEDY).chain(4).length, "the control"


def test_the_method_of_a_setting_is_a_label(named):
    draft = LadderDrafts(named, GREEDY).chain(2)
    one, same, other = Setting("a", draft), Setting("a", draft, method="chain"), Setting("b", draft)
    assert one == same != other
