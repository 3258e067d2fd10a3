"""The explorer of acceptance shows its numbers, and refuses a choice without any."""

from itertools import product

import pandas as pd
import pytest
from test_widgets_words import cells

from specdec_lib.core.tree import MatchTable
from specdec_lib.measure import acceptance
from specdec_lib.show.widgets import acceptance_explorer

MATCH = MatchTable((0.7, 0.2), "measured", (0.5, 1.0), ((0.5, 0.4), (0.7, 0.2), (0.9, 0.1)))
REPETITION = {"a": 0.05, "b": 0.2, "c": 0.6}


def texts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two drafts, two temperatures, three prompts; rounds of two guesses at depth 1, and two more
    below an accepted first one.
    """
    guesses, rounds = [], []
    kinds = [("wide", 0.0, "110"), ("wide", 1.0, "010"), ("narrow", 1.0, "001")]
    for (draft, temperature, hits), (prompt, repetition) in product(kinds, REPETITION.items()):
        labels = {"draft": draft, "temperature": temperature, "prompt": prompt}
        labels |= {"domain": "math" if prompt == "c" else "code", "repetition": repetition}
        for hit in hits if prompt != "b" else "111":
            right = int(hit)
            rounds.append(labels | {"tried": 1 + right, "accepted": right, "emitted": 1 + right})
            guesses += [
                labels
                | {"depth": depth, "rank": rank, "parent_rank": depth - 2, "siblings": 2}
                | {"source": ("draft", "n-gram")[rank], "confidence": 0.7 - 0.5 * rank}
                | {"accepted": bool(right) and (rank, depth) == (0, 1)}
                for depth, rank in product(range(1, 2 + right), (0, 1))
            ]
    return pd.DataFrame(guesses), pd.DataFrame(rounds)


GUESSES, ROUNDS = texts()
WIDE = GUESSES[GUESSES.draft == "wide"]
WIDE_ROUNDS = ROUNDS[ROUNDS.draft == "wide"]


@pytest.fixture
def rates(drawn):
    start = {"draft": "wide", "line": "temperature", "least": 1}
    return acceptance_explorer(GUESSES, ROUNDS, start=start)


@pytest.mark.parametrize("by, per", [("depth", "node"), ("depth", "guess"), ("rank", "guess")])
def test_the_rates_are_those_of_acceptance(rates, drawn, by, per):
    rates.turn(by="siblings", per="guess")
    rates.turn(by=by, per=per)
    wanted, table = acceptance.rates(WIDE, ["temperature", by], per=per), drawn.given("acceptance")
    assert table.rate.tolist() == wanted.rate.tolist()
    assert table.series.tolist() == [f"T = {one:g}" for one in wanted.temperature]


def test_per_guess_and_per_node_are_different_rates(rates, drawn):
    """The negative control of the test before: counted the other way, the figure is another."""
    before = drawn.given("acceptance").rate[0]
    rates.knobs["per"].value = "guess"
    assert drawn.given("acceptance").rate[0] == pytest.approx(before / 2)
    rates.turn(by="rank", per="node")
    assert "siblings differ in rank" in rates.words.value


def test_the_yields_are_those_of_acceptance_with_the_bonus_or_without(rates, drawn):
    wanted = acceptance.tokens(WIDE_ROUNDS, ["temperature"])
    assert drawn.given("yields").tokens_per_round.tolist() == wanted.tokens_per_round.tolist()
    rates.knobs["bonus"].value = False
    assert drawn.named("yields", "bonus") is False


def test_the_words_hold_the_glossary_with_its_numbers(rates):
    right, tried, emitted = WIDE_ROUNDS[["accepted", "tried", "emitted"]].sum()
    said = cells(rates.words.value)
    tries = f"{right} accepted ÷ {tried} tried"
    assert ["acceptance rate, per tried token", tries, f"{right / tried:.3f}"] in said
    count = len(WIDE_ROUNDS)
    counted = f"{emitted} ÷ {count} rounds"
    per_round = ["tokens per round, with the bonus", counted, f"{emitted / count:.3f}"]
    assert per_round in said
    rates.knobs["draft"].value = "narrow"
    assert per_round not in cells(rates.words.value), "the control: words that stay the same"


def test_few_at_risk_are_left_out_and_said_and_where_all_are_the_figure_stays(rates, drawn):
    at_risk = acceptance.rates(WIDE, ["temperature", "depth"], per="node").at_risk
    assert at_risk.tolist() == [9, 7, 9, 5]
    rates.turn(line="nothing", least=20)
    assert "no rate rests on 20 at risk or more, the most is 18" in rates.words.value
    assert len(drawn.given("acceptance")) == 4
    rates.turn(draft="narrow", temperature=0.0)
    assert "there is no guess of draft narrow, domain all, temperature 0.0" in rates.words.value
    assert len(drawn.given("acceptance")) == 4
    rates.turn(least=10, line="temperature", draft="all", temperature="all")
    assert "Not shown: 2 with fewer than 10" in rates.words.value


def test_loops_are_told_apart_in_order(rates, drawn):
    rates.turn(by="repetition", line="nothing")
    table = drawn.given("kinds")
    assert table.kind.tolist() == ["0 to 0.1", "0.1 to 0.3", "0.5 to 1"]
    assert set(table.series) == {"all of them"}


def test_an_explorer_that_starts_nowhere_is_refused():
    with pytest.raises(ValueError, match="no knob 'speed', the knobs are draft, domain"):
        acceptance_explorer(GUESSES, ROUNDS, start={"speed": 1})
    with pytest.raises(ValueError, match="there is no guess of any kind"):
        acceptance_explorer(GUESSES[:0], ROUNDS[:0])


def test_a_gap_is_told_from_its_confidence():
    confidence = [0.9, 0.5 * (1 + 1e-12), 0.2, 0.4, 0.33, 0.05]
    rows = pd.DataFrame({"rank": [0, 0, 1, 1, 0, 2], "confidence": confidence, "accepted": True})
    found = acceptance.with_gaps(rows, MATCH)
    # in the order of the bins; .33 is no rate of this table
    assert found.gap.tolist() == ["0–0.5", "0–0.5", "0.5–1", "1 and more", "1 and more"]
    assert found["rank"].tolist() == [0, 1, 1, 0, 2]
    with pytest.raises(ValueError, match="does not look at gaps"):
        acceptance.with_gaps(rows, MatchTable())
    with pytest.raises(ValueError, match="no guess has a confidence of match table 'measured'"):
        acceptance.with_gaps(rows.assign(confidence=0.123), MATCH)
