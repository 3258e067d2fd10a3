"""What the page of results says about the draft that nobody tuned is measured."""

import pandas as pd

from specdec_lib.measure.defaults import EARLIER, page_table, places_of, stored_defaults
from specdec_lib.measure.pages import RESULTS
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import summarise_speeds
from specdec_lib.measure.settings.usual import DEFAULT


def of_default(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    table = tables["published prompts"]
    return table[table.draft == DEFAULT]


def test_what_is_said_about_the_draft_that_nobody_tuned_is_so():
    """It pays on every kind of prompt, but in int8, sampled, within the error on one."""
    tables = stored_defaults(RACED)
    page = RESULTS.read_text("utf-8")
    assert list(tables) == ["published prompts"]
    assert f"<!-- defaults: begin -->\n{page_table(tables)}\n<!--" in page
    measured = pd.read_csv(places_of(RACED)["published prompts"])
    assert set(measured.machine) == {RACED} and measured.load.max() < 1.2
    ours = of_default(tables)
    assert (ours.speed_up > 1).all()
    unclear = ours[ours.speed_up_low < 1]
    assert {(one.edition, one.sampling, one.domain) for one in unclear.itertuples()} == {
        ("int8", "T = 1, top-k 50", "translation")
    }
    both = tables["published prompts"].query("domain == 'all'")
    without = both[both.draft == "copies, else a tree"].speed_up.to_numpy()
    kept = ours[ours.domain == "all"].speed_up.to_numpy() / without
    said = " ".join(page.split())
    assert f"the switch costs {100 * (1 - kept.min()):.1f} % at most over all kinds" in said
    counts = ours[ours.domain == "all"].groupby("edition").prompts.first()
    assert counts["int8"] == 2 * counts["exact"]  # as the page says
    both = measured[measured.draft.isin(["copies, else a tree", DEFAULT])]
    paired = summarise_speeds(both, ["edition", "sampling"], plain="copies, else a tree")
    paired = paired[paired.draft == DEFAULT]
    assert f"up to {100 * (1 - paired.speed_up.min()):.0f} % on one" in said
    assert not (paired[paired.domain == "all"].speed_up_low > 1).any()  # it saves nothing


def test_what_is_said_about_both_defaults_is_so():
    """Today's is mostly of the middle model; the earlier one gained less, on another machine."""
    tables = stored_defaults(EARLIER)
    page = RESULTS.read_text("utf-8")
    assert f"<!-- defaults_earlier: begin -->\n{page_table(tables)}\n<!--" in page
    for place in places_of(EARLIER).values():
        table = pd.read_csv(place)
        assert set(table.machine) == {EARLIER} and table.load.max() < 1.2
    measured = pd.read_csv(places_of(RACED)["published prompts"])
    chosen = measured.groupby(["edition", "sampling"]).model.unique().map(list)
    assert chosen.pop(("int8", "T = 1, top-k 50")) == ["reading"]
    assert chosen.map(lambda its: its == ["middle"]).all()
    now, then = (
        of_default(stored_defaults(one)).query("domain == 'all'") for one in (RACED, EARLIER)
    )
    assert (now.speed_up.to_numpy() > then.speed_up.to_numpy()).all()
