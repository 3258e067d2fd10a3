"""Counted rounds under prices: as the clock has it here, and as theory has it elsewhere."""

import pandas as pd
import pytest

from specdec_lib.measure.idea_tables import claims_beside_clock
from specdec_lib.measure.price_map import (
    CLAIMS,
    DRAFTS,
    SIXTEENS,
    Priced,
    PricePoint,
    claim_gains,
    gains_over_plain,
    modelled_place,
    place_of,
    predicted_beside_clock,
    raced_work,
)
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, CHAIN, METHODS, SCOUT, TREE
from specdec_lib.theory import Machine, ModelShape

pytestmark = pytest.mark.usefixtures("unchecked")
PLAIN, DRAFT, MORE = 0.010, 0.001, 0.02  # seconds of a pass, and what 16 rows cost, times one


@pytest.fixture
def passes() -> pd.DataFrame:
    rows = [
        {"model": model, "rows": rows, "seconds": seconds * (1 + MORE * (rows - 1))}
        for model, seconds in (("target", PLAIN), ("middle", DRAFT))
        for rows in range(1, 18)
    ]
    free = {"greedy_choice": 0.0, "drawn_choice": 0.0}
    return pd.DataFrame(rows).assign(edition="exact", context_tokens=256, **free)


def race(outside: float = 0.0) -> pd.DataFrame:
    """Two prompts of every method: all but plain decoding take two thirds of the rounds."""
    rows = []
    for method in METHODS:
        plain = method == AUTOREGRESSIVE
        said = "target 1:30" if plain else "target 5:20; middle 1:80"
        said = "target 5:20; middle 1:40 4:20" if SCOUT in method else said
        drafted = (40 + 20 * (1 + 3 * MORE) if SCOUT in method else 80) * DRAFT
        seconds = 30 * PLAIN if plain else 20 * PLAIN * (1 + 4 * MORE) + drafted
        row = {
            "context": 256,
            "method": method,
            "tokens": 30,
            "rounds": 30 if plain else 20,
            "passes": said,
        }
        row |= {"seconds": seconds + outside, "outside": outside, "edition": "exact"}
        rows += [row | {"temperature": 0.0, "top_k": 0, "prompt": name} for name in ("a", "b")]
    return pd.DataFrame(rows)


def test_the_passes_that_a_race_has_written_are_read_back():
    work = raced_work(race().query("method == 'chain'"))
    assert work.passes == {("target", 5, 256): 40, ("middle", 1, 256): 160}
    assert (work.tokens, work.rounds, work.guesses) == (60, 40, 160)


def test_counted_passes_at_their_seconds_are_the_clock(passes):
    table = predicted_beside_clock(race(0.002), passes).set_index("method")
    assert table.loc[[AUTOREGRESSIVE, CHAIN, TREE], "ratio"].tolist() == pytest.approx([1, 1, 1])
    assert table.clocked[AUTOREGRESSIVE] == pytest.approx(1000 * (PLAIN + 0.002 / 30))
    choosing = passes.assign(greedy_choice=0.001 * (passes.model == "middle"))
    more = predicted_beside_clock(race(), choosing).set_index("method").ratio
    assert more[AUTOREGRESSIVE] == 1 and more[CHAIN] > 1.2
    dearer = passes.assign(seconds=1.2 * passes.seconds)  # the control
    assert predicted_beside_clock(race(), dearer).ratio.min() > 1.1


def test_a_measured_machine_in_three_numbers_gives_its_own_gains(passes):
    place = place_of(passes, "exact", "middle")
    assert place == PricePoint(pytest.approx(1 + 15 * MORE), pytest.approx(DRAFT / PLAIN), 1.0)
    priced = Priced.of(race(0.002), passes)
    clocked = race(0.002).groupby("method").seconds.sum()
    for method in (CHAIN, TREE, TREE + SCOUT):
        assert priced.gain(method, AUTOREGRESSIVE, place) == pytest.approx(
            clocked[AUTOREGRESSIVE] / clocked[method]
        )
    assert priced.gain(CHAIN, CHAIN, place) == 1


def test_claims_of_a_race_that_its_prices_explain_are_the_clocks(passes):
    about = {"model": "middle", "domain": "chat", "repetition": 0.0}
    found = claims_beside_clock(race(0.002).assign(**about), passes)
    assert found.index.tolist() == list(CLAIMS) and found.ratio["tree"] == 1
    assert found.predicted.tolist() == pytest.approx(found.ratio.tolist())
    assert found.ratio["second stage, of a chain"] > 1 and found.ratio_low.isna().all()


def test_a_scout_gains_where_drafts_are_dear_and_loses_where_rows_are(passes):
    priced = Priced.of(race(), passes)
    pair = (CHAIN + SCOUT, CHAIN)
    assert priced.gain(*pair, PricePoint(1.0, 0.3)) > priced.gain(*pair, PricePoint(1.0, 0.01)) > 1
    assert priced.gain(*pair, PricePoint(4.0, 0.3)) < priced.gain(*pair, PricePoint(1.0, 0.3))
    dear = Priced.of(race(0.05), passes)  # the host counts in every round alike
    assert dear.gain(CHAIN, AUTOREGRESSIVE, PricePoint(1.0, 0.1, 4.0)) < dear.gain(
        CHAIN, AUTOREGRESSIVE, PricePoint(1.0, 0.1, 0.0)
    )


def test_a_map_has_every_claim_at_every_place(passes):
    priced = Priced.of(race(), passes)
    table = claim_gains(priced, host=0.0)
    assert len(table) == len(CLAIMS) * len(SIXTEENS) * len(DRAFTS) and (table.gain > 0).all()
    first = table[table.claim == "tree"]
    assert (first.gain == 1).all()  # here both did the same
    assert set(gains_over_plain(priced, PricePoint(1.0, 0.1)).index) == set(METHODS) - {
        AUTOREGRESSIVE
    }


def test_a_data_sheet_gives_flat_rows_where_launches_rule():
    shapes = ModelShape(36, 1280, 50257), ModelShape(4, 512, 50257)
    gpu = Machine("GPU", 1e12, 1e14)
    launched = modelled_place(*shapes, gpu, 1e-4)
    bare = modelled_place(*shapes, gpu, 0.0)
    assert 1 <= launched.sixteen < 1.05 and launched.host == 1
    assert launched.draft == pytest.approx(4 / 36, rel=0.4) and bare.draft < launched.draft
