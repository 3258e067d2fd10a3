"""Pairs of methods of the race of ideas: one idea apart, and compared on the same prompts."""

from itertools import product

import pandas as pd

from specdec_lib.measure.idea_tables import PAIRS, compare_ideas, scouts_table, stored_ideas
from specdec_lib.measure.settings.ideas import (
    CHAIN,
    COPIED,
    FACTORIAL,
    METHODS,
    SCOUT,
    SPECULATIVE,
    TREE,
)


def test_pairs_differ_by_one_idea():
    for idea, pairs in PAIRS.items():
        for method, base in pairs:
            assert method in METHODS and base in METHODS and method != base
            if idea == "tree":
                assert base in (method.replace(TREE, CHAIN), SPECULATIVE)
            elif idea == "second stage":
                assert method.replace(SCOUT, "") == base and SCOUT in method
            elif idea == "copies":
                assert method.removesuffix(COPIED) == base
    assert len(FACTORIAL) == 8 and len(METHODS) == 14


def test_ratios_are_paired_and_of_parts():
    rows = []
    for number, method in product(range(12), METHODS):
        seconds = (1 + number) * (0.5 if TREE in method else 1.0)  # trees are twice as fast
        repeats = 0.0 if number < 10 else 0.5
        names = {"edition": "exact", "temperature": 0.0, "top_k": 0, "domain": f"kind {number % 2}"}
        names |= {"prompt": f"p{number}", "method": method, "repetition": repeats}
        rows.append({**names, "tokens": 10, "seconds": seconds})
    found = compare_ideas(pd.DataFrame(rows)).set_index(["part", "method", "base"])
    whole = found.loc["all"]
    assert whole.loc[(TREE, CHAIN), ["ratio", "ratio_low", "ratio_high"]].tolist() == [2, 2, 2]
    assert whole.loc[(CHAIN + SCOUT, CHAIN), "ratio"] == 1
    assert set(found.index.unique("part")) == {
        "all",
        "kind 0",
        "kind 1",
        "repetition below .1",
        "repetition .1 to .3",
        "repetition above .3",
    }
    assert found.loc["repetition below .1"].prompts.max() == 10
    assert found.loc["repetition above .3"].ratio_low.isna().all()  # two prompts: no interval


def test_what_a_scout_saves_is_weighted_by_passes():
    """By hand, of two prompts: a pass of many rows counts once, a round of no pass counts too."""
    stored = stored_ideas()
    asked = "edition == 'exact' and temperature == 0 and family == 'embedded prompts'"
    some = stored.query(asked)
    some = some[some.prompt.isin(some.prompt.unique()[:2])]
    row = scouts_table(some).loc[("float32", "greedy", "tree")]
    for name, method in {"without": "tree", "with": "tree, scout"}.items():
        own = some[some.method == method]
        drafted = [said.split("; middle ")[1].split() for said in own.passes]
        pairs = [tuple(map(float, one.split(":"))) for said in drafted for one in said]
        passes = sum(count for _, count in pairs)
        assert row["passes per round", name] == passes / own["rounds"].sum()
        assert row["rows per pass", name] == sum(size * count for size, count in pairs) / passes
