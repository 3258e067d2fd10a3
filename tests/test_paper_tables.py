"""The race and counted SWI beside what the papers print."""

import pandas as pd
import pytest

from specdec_lib.measure import machine
from specdec_lib.measure.idea_tables import EMBEDDED, PUBLISHED
from specdec_lib.measure.machine import clocked_here, stored_clocked
from specdec_lib.measure.paper_tables import (
    BEST_ALONE,
    BY_SWI,
    cascade_parts,
    clocked_cascades,
    clocked_speed_ups,
    gains_by_prompt,
    swi_of_sets,
)
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, CHAIN, TREE

NAMED = {"a chain": CHAIN, "a tree": TREE}
PASSES = {AUTOREGRESSIVE: "target 1:40", CHAIN: "target 5:20; middle 1:80"}
PASSES |= {TREE: "target 9:16; middle 2:80"}
SECONDS = {AUTOREGRESSIVE: 4.0, CHAIN: 2.5, TREE: 2.0}


def raced(family: str, count: int = 12) -> pd.DataFrame:
    """A race in which a chain is 1.6 and a tree 2 times as fast as plain decoding."""
    rows = [
        {"prompt": f"chat/{number}", "domain": "chat", "method": method, "setting": method}
        | {"tokens": 40, "rounds": 16, "passes": PASSES[method], "context": 99}
        | {"seconds": SECONDS[method] * (1 + number / 10), "repetition": number / 20}
        for number in range(count)
        for method in PASSES
    ]
    where = {"edition": "exact", "temperature": 0.0, "top_k": 0, "family": family, "machine": "m"}
    return pd.DataFrame(rows).assign(**where)


BOTH = pd.concat([raced(EMBEDDED), raced(PUBLISHED).assign(domain="qa")])


@pytest.fixture
def every_pair(monkeypatch):
    """The race above has three of the methods."""
    pairs = {"all together": [(CHAIN, AUTOREGRESSIVE), (TREE, AUTOREGRESSIVE)]}
    pairs["tree"] = [(TREE, CHAIN)]
    monkeypatch.setattr("specdec_lib.measure.idea_tables.PAIRS", pairs)


@pytest.mark.usefixtures("every_pair")
def test_speed_ups_by_the_clock_stand_under_the_papers_names():
    found = clocked_speed_ups(BOTH, NAMED)
    assert set(found.whose) == {"float32, embedded prompts", "float32, published prompts"}
    speeds = found.groupby("method").speed_up.agg(list).to_dict()
    assert speeds == {"a chain": pytest.approx([1.6] * 2), "a tree": pytest.approx([2.0] * 2)}
    assert (found.low <= found.speed_up).all() and (found.prompts == 12).all()
    beside = clocked_speed_ups(BOTH, {"a tree": TREE}, CHAIN)
    assert beside.speed_up.tolist() == pytest.approx([1.25] * 2)


def test_a_prompts_gain_is_from_one_method_to_the_other():
    found = gains_by_prompt(BOTH, CHAIN, TREE)
    assert (found.before.round(6) == 1.6).all() and (found.after.round(6) == 2).all()
    assert found.groupby("family").kind.unique().map(list).to_dict() == {
        EMBEDDED: ["chat"],
        PUBLISHED: ["published"],
    }
    assert gains_by_prompt(BOTH, TREE, CHAIN).after.max() == pytest.approx(1.6)  # the other way


@pytest.mark.usefixtures("every_pair")
def test_swi_charges_the_passes_that_were_counted_and_not_their_rows():
    prices = {"target": 1.0, "middle": 0.1}
    found = cascade_parts(BOTH, NAMED, prices, AUTOREGRESSIVE).set_index(["way", "pair", "family"])
    for name, passes in {"a chain": 20 + 8, "a tree": 16 + 8}.items():
        counted = found.ratio[BY_SWI, name, EMBEDDED]
        assert counted == pytest.approx((40 / passes) / (40 / 40))
        assert found.ratio["speed, float32", name, EMBEDDED] != pytest.approx(counted)
    dear = prices | {"middle": 1.0}
    found = cascade_parts(BOTH, NAMED, dear, AUTOREGRESSIVE).set_index(["way", "pair"])
    assert (found.ratio[BY_SWI, "a chain"] < 1).all()  # 100 passes for 40 tokens
    beside = cascade_parts(BOTH, {"a tree": TREE}, prices, CHAIN).set_index(["way", "family"])
    assert beside.ratio[BY_SWI, EMBEDDED] == pytest.approx(28 / 24)


def test_the_best_drafter_alone_is_that_of_each_list_and_data_set():
    rows = [
        ("chat", "MS", "middle", 2.0, None),
        ("chat", "MS", "draft", 3.0, None),
        ("chat", "PW", "middle", 2.5, None),
        ("chat", "MS", "middle + Max-Gram", 2.7, None),
        ("GSM8K", "MS", "middle", None, 3.4),
    ]
    table = pd.DataFrame(rows, columns=["data", "prices", "drafters", "ours", "paper"])
    table = table.assign(ours_low=table.ours - 0.1, ours_high=table.ours + 0.1, prompts=10)
    found = swi_of_sets(table, {"a pair": "middle + Max-Gram"}, ("middle", "draft"))
    alone = found[found.drafters == BEST_ALONE].set_index(["data", "prices"]).swi
    assert alone.to_dict() == {
        ("chat", "MS"): 3.0,
        ("chat", "PW"): 2.5,
        ("paper, GSM8K", "MS"): 3.4,
    }
    assert found[found.printed].data.tolist() == ["paper, GSM8K"]
    assert found[found.drafters == "a pair"].swi.tolist() == [2.7]


def test_the_papers_table_3_stands_beside_the_clock():
    rows = [
        {"domain": "math", "prompt": f"math/{number}", "draft": draft, "tokens": 40}
        | {"seconds": seconds * (1 + number / 10)}
        for number in range(10)
        for draft, seconds in ((AUTOREGRESSIVE, 4.0), ("ours", 2.0), ("another", 8.0))
    ]
    methods = {"a cascade": ("ours", "cascade"), "no paper's": ("another", "")}
    found = clocked_cascades(pd.DataFrame(rows), methods).set_index(["method", "data"])
    assert found.ratio["a cascade", "math"] == pytest.approx(2)
    assert found.ratio["no paper's", "math"] == pytest.approx(0.5)
    assert found.ratio["a cascade", "paper, GSM8K"] > 1 and found.printed.sum() == 2
    few = clocked_cascades(pd.DataFrame(rows)[:27], methods)
    assert few[few.data == "math"].low.isna().all()  # nine prompts


def test_a_stored_table_is_the_readmes_or_this_machines(tmp_path, monkeypatch):
    for name in ("mine-1-threads", RACED):
        place = tmp_path / f"learning_{name}.csv"
        pd.DataFrame({"machine": [name]}).to_csv(place, index=False)
    assert stored_clocked("learning", folder=tmp_path).machine[0] == RACED
    monkeypatch.setattr(machine, "machine_name", lambda: "mine-1-threads")
    assert stored_clocked("learning", machine.HERE, folder=tmp_path).machine[0] == "mine-1-threads"
    monkeypatch.setattr(machine, "machine_name", lambda: "elsewhere-1-threads")
    with pytest.raises(ValueError, match=r"of this machine \(elsewhere-1-threads\) is stored"):
        stored_clocked("learning", machine.HERE, folder=tmp_path)
    with pytest.raises(ValueError, match=f"no table learning of nobody .* those of .*{RACED}"):
        stored_clocked("learning", "nobody", folder=tmp_path)
    with pytest.raises(ValueError, match=rf"no table walltime of {RACED} .* no machine"):
        stored_clocked("walltime", folder=tmp_path)


def test_what_stands_beside_a_time_says_machine_and_state():
    assert set(clocked_here()) == {"threads", "machine", "state"}
