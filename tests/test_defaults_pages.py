"""What README and guide say about the draft that nobody tuned is measured."""

import pandas as pd

from specdec_lib.measure.defaults import SHOWN, page_table, places_of, stored_defaults
from specdec_lib.measure.pages import README
from specdec_lib.measure.race_table import AVX2, GUIDE, RACED
from specdec_lib.measure.ratios import with_interval
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.usual import DEFAULT


def of_default(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    table = tables["published prompts"]
    return table[table.draft == DEFAULT]


def test_what_is_said_about_the_draft_that_nobody_tuned_is_so():
    """It pays on every kind of prompt, but in int8, sampled, within the error on some."""
    tables = stored_defaults()
    assert f"<!-- defaults: begin -->\n{page_table(tables)}\n<!--" in README.read_text("utf-8")
    for machine in (SHOWN, AVX2):
        for place in places_of(machine).values():
            table = pd.read_csv(place)
            assert set(table.machine) == {machine} and table.load.max() < 1.2
    both = pd.concat(tables.values())
    ours = both[both.draft == DEFAULT]
    assert (ours.speed_up > 1).all()
    unclear = ours[ours.speed_up_low < 1]
    assert set(unclear.edition) == {"int8"} and set(unclear.sampling) == {"T = 1, top-k 50"}
    assert set(unclear.domain) == {"translation", "qa", "rag"}
    without = both[(both.draft == "copies, else a tree") & (both.domain == "all")]
    switched = ours[ours.domain == "all"]
    kept = (switched.speed_up.to_numpy() / without.speed_up).to_numpy()
    costly = switched[kept < 0.98]
    assert costly[["edition", "sampling", "prompts"]].values.tolist() == [["int8", "greedy", 8]]
    assert f"the switch costs {100 * (1 - kept.min()):.1f} % at most" in README.read_text("utf-8")
    int8 = "edition == 'int8' and domain == 'all'"
    here, there = (of_default(one).query(int8) for one in (tables, stored_defaults(AVX2)))
    assert (there.speed_up_high.to_numpy() < here.speed_up_low).all()


def test_what_the_guide_says_about_the_draft_that_nobody_tuned_is_so():
    """Without AVX-512: in float32 it pays everywhere, in int8 it does not."""
    tables = stored_defaults(AVX2)
    assert f"<!-- defaults_avx2: begin -->\n{page_table(tables)}\n<!--" in GUIDE.read_text("utf-8")
    both = pd.concat(tables.values())
    ours = both[both.draft == DEFAULT]
    exact = ours[ours.edition == "exact"]
    assert (exact.speed_up > 1).all() and not (exact.speed_up_low < 1).any()
    slower = ours[ours.speed_up_high < 1]
    assert set(slower.edition) == {"int8"} and set(slower.sampling) == {"T = 1, top-k 50"}
    assert set(slower.domain) == {"translation", "qa"}
    gains = of_default(tables).query("edition == 'int8' and domain == 'all'").set_index("sampling")
    assert 1.05 < gains.speed_up["greedy"] < 1.15
    assert gains.speed_up_low["T = 1, top-k 50"] < 1 < gains.speed_up_high["T = 1, top-k 50"]
    int8 = pd.read_csv(places_of(AVX2)["published prompts"]).query("edition == 'int8'")
    assert int8.copying.between(2.4, 2.6).all()
    by_draft = int8[int8.sampling == "T = 1, top-k 50"].groupby("draft")
    round_seconds = by_draft.seconds.sum() / by_draft.rounds.sum()
    assert (
        round_seconds["tree"] > 1.05 * by_draft.needed.max()["tree"] * round_seconds[AUTOREGRESSIVE]
    )


def test_what_the_guide_says_about_the_default_of_today_is_so():
    """It is slower than plain decoding on no kind of prompt, and mostly of the middle model."""
    tables = stored_defaults(RACED)
    assert list(tables) == ["published prompts"]
    assert f"<!-- defaults_raced: begin -->\n{page_table(tables)}\n<!--" in GUIDE.read_text("utf-8")
    measured = pd.read_csv(places_of(RACED)["published prompts"])
    assert set(measured.machine) == {RACED} and measured.load.max() < 1.2
    chosen = measured.groupby(["edition", "sampling"]).model.unique().map(list)
    assert chosen.pop(("int8", "T = 1, top-k 50")) == ["reading"]
    assert chosen.map(lambda its: its == ["middle"]).all()
    ours = of_default(tables)
    assert (ours.speed_up > 1).all()
    unclear = ours[ours.speed_up_low < 1]
    assert {(one.edition, one.sampling, one.domain) for one in unclear.itertuples()} == {
        ("int8", "T = 1, top-k 50", "translation")
    }
    page = " ".join(README.read_text("utf-8").split())
    for one in ours[ours.domain == "all"].itertuples():
        gain = with_interval(one.speed_up, one.speed_up_low, one.speed_up_high)
        assert gain in page
