"""The acceptance explorer: rates, counts and the bonus are those of `acceptance`, and a choice
without guesses is refused in words.
"""

import pandas as pd
import pytest

from specdec_lib.core.tree import MatchTable
from specdec_lib.measure import acceptance
from specdec_lib.show import figures
from specdec_lib.show.widgets import acceptance_explorer

MATCH = MatchTable(
    (0.7, 0.2), "measured", edges=(0.5, 1.0), binned=((0.5, 0.4), (0.7, 0.2), (0.9, 0.1))
)


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two drafts, two temperatures, three prompts; rounds of two guesses at depth 1, and two more
    below an accepted first one.
    """
    looked, played = [], []
    for draft, temperature, hits in (
        ("wide", 0.0, "110"),
        ("wide", 1.0, "010"),
        ("narrow", 1.0, "001"),
    ):
        for prompt in "abc":
            labels = {
                "draft": draft,
                "temperature": temperature,
                "domain": "code" if prompt < "c" else "math",
                "prompt": prompt,
            }
            labels["repetition"] = {"a": 0.05, "b": 0.2, "c": 0.6}[prompt]
            for number, hit in enumerate(hits if prompt != "b" else "111"):
                right = hit == "1"
                for depth in (1, 2) if right else (1,):
                    for rank in (0, 1):
                        accepted = right and rank == 0 and depth == 1
                        guess = {
                            "round": number,
                            "depth": depth,
                            "rank": rank,
                            "parent_rank": depth - 2,
                            "siblings": 2,
                        }
                        guess |= {
                            "source": "n-gram" if rank else "draft",
                            "confidence": 0.7 - 0.5 * rank,
                        }
                        looked.append(labels | guess | {"accepted": accepted, "tried": True})
                counts = {
                    "proposed": 4,
                    "tried": 1 + right,
                    "accepted": int(right),
                    "emitted": 1 + right,
                    "source": "draft",
                }
                played.append(
                    labels
                    | {"round": number, "root_position": 5, "deepest": 2, "stop": ""}
                    | counts
                )
    return pd.DataFrame(looked), pd.DataFrame(played)


GUESSES, ROUNDS = tables()


@pytest.fixture
def panel():
    return acceptance_explorer(
        GUESSES, ROUNDS, start={"draft": "wide", "line": "temperature", "least": 1}
    )


def drawn(panel) -> dict[str, list[float]]:
    return {trace.name: list(trace.y) for trace in panel.figures[0].data}


def test_the_rates_are_those_of_acceptance(panel):
    wide = GUESSES[GUESSES.draft == "wide"]
    wanted = acceptance.rates(wide, ["temperature", "depth"], per="node")
    assert drawn(panel) == {
        "T = 0": wanted[wanted.temperature == 0].rate.tolist(),
        "T = 1": wanted[wanted.temperature == 1].rate.tolist(),
    }
    panel.turn(per="guess", by="rank")
    wanted = acceptance.rates(wide, ["temperature", "rank"])
    assert drawn(panel)["T = 0"] == wanted[wanted.temperature == 0].rate.tolist()


def test_per_guess_and_per_node_are_different_rates(panel):
    """The negative control of the test before: counted the other way, the figure would be another."""
    before = drawn(panel)
    panel.knobs["per"].value = "guess"
    assert drawn(panel)["T = 0"][0] == pytest.approx(before["T = 0"][0] / 2)


def test_the_bonus_is_the_difference_between_the_two_yields(panel):
    accepted, bonus = (trace for trace in panel.figures[1].data if trace.type == "bar")
    wide = ROUNDS[(ROUNDS.draft == "wide") & (ROUNDS.temperature == 0)]
    assert accepted.x[0] == pytest.approx(wide.accepted.mean()) and accepted.x[0] + bonus.x[
        0
    ] == pytest.approx(wide.emitted.mean())
    panel.knobs["bonus"].value = False
    [alone] = (trace for trace in panel.figures[1].data if trace.type == "bar")
    assert (
        alone.x[0] == pytest.approx(wide.accepted.mean())
        and "accepted guesses per round" in panel.figures[1].layout.xaxis.title.text
    )


def test_the_words_hold_the_glossary_with_its_numbers(panel):
    wide = ROUNDS[ROUNDS.draft == "wide"]
    right, tried, count = wide.accepted.sum(), wide.tried.sum(), len(wide)
    assert f"{right} accepted ÷ {tried} tried = {right / tried:.3f}" in panel.words.value
    assert (
        f"{wide.emitted.sum()} emitted ÷ {count} rounds = {wide.emitted.mean():.2f}"
        in panel.words.value
    )
    panel.knobs["draft"].value = "narrow"
    assert f"÷ {count} rounds" not in panel.words.value, (
        "the negative control: words that stay the same"
    )


def test_few_at_risk_are_left_out_and_said(panel):
    at_risk = acceptance.rates(
        GUESSES[GUESSES.draft == "wide"], ["temperature", "depth"], per="node"
    ).at_risk.tolist()
    assert at_risk == [9, 7, 9, 5]
    panel.knobs["least"].value = 5
    assert len(drawn(panel)["T = 1"]) == 2 and "not shown" not in panel.words.value
    panel.turn(least=5, by="rank", per="guess", draft="narrow")
    assert "alert" not in panel.words.value
    panel.turn(by="depth", per="node", draft="wide", line="nothing", least=20)
    assert "no rate rests on 20 at risk or more, the most is 18" in panel.words.value and len(
        panel.figures[0].data
    ), "the figure stays"
    panel.turn(least=10, line="temperature", draft="all")
    assert "not shown: 2 with fewer than 10" in panel.words.value


def test_a_choice_without_guesses_is_refused_and_the_figure_stays(panel):
    before = drawn(panel)
    panel.turn(draft="narrow", temperature=0.0)
    assert (
        "there is no guess of draft narrow, temperature 0.0" in panel.words.value
        and drawn(panel) == before
    )
    panel.turn(draft="wide", temperature="all", by="rank")
    assert "siblings differ in rank" in panel.words.value, "per node"


def test_loops_are_told_apart_in_order(panel):
    panel.turn(by="repetition", line="nothing")
    assert list(panel.figures[0].layout.xaxis.ticktext) == ["0 to 0.1", "0.1 to 0.3", "0.5 to 1"]
    assert list(drawn(panel)) == ["all of them"]


def test_reset_goes_back(panel):
    before, words = drawn(panel), panel.words.value
    panel.turn(per="guess", by="source", draft="narrow")
    assert drawn(panel) != before
    next(button for button in panel.children[1].children if button.description == "reset").click()
    assert drawn(panel) == before and panel.words.value == words


def test_only_what_the_tables_tell_apart_has_a_knob():
    one = acceptance_explorer(
        GUESSES[GUESSES.draft == "narrow"], ROUNDS[ROUNDS.draft == "narrow"], start={"least": 1}
    )
    assert list(one.knobs) == ["domain", "by", "per", "line", "least", "bonus"]
    assert [value for _, value in one.knobs["line"].options] == ["domain", "nothing"]


@pytest.mark.parametrize(
    "start, rows, message",
    [
        ({"speed": 1}, 9, "there is no knob 'speed', the knobs are draft, domain"),
        ({"draft": "other"}, 9, "'draft' is turned to one of .*, got 'other'"),
        ({}, 0, "got 0 and 0 rows"),
    ],
)
def test_an_explorer_that_starts_nowhere_is_refused(start, rows, message):
    with pytest.raises(ValueError, match=message):
        acceptance_explorer(GUESSES[: rows * 9], ROUNDS[: rows * 9], start=start)


def test_a_gap_is_told_from_its_confidence():
    rows = pd.DataFrame(
        {
            "rank": [0, 0, 1, 1, 0, 2],
            "confidence": [0.9, 0.5 * (1 + 1e-12), 0.2, 0.4, 0.33, 0.05],
            "accepted": True,
        }
    )
    found = acceptance.with_gaps(rows, MATCH)
    assert found.gap.tolist() == ["0–0.5", "0–0.5", "0.5–1", "1 and more", "1 and more"], (
        "in the order of the bins; .33 is no rate of this table"
    )
    assert found["rank"].tolist() == [0, 1, 1, 0, 2]
    with pytest.raises(ValueError, match="does not look at gaps"):
        acceptance.with_gaps(rows, MatchTable())
    with pytest.raises(ValueError, match="no guess has a confidence of match table 'measured'"):
        acceptance.with_gaps(rows.assign(confidence=0.123), MATCH)


def test_a_yield_without_an_interval_is_drawn_and_a_series_twice_is_not():
    table = acceptance.tokens(ROUNDS, ["draft"]).assign(series=["a", "b"])
    assert (
        len(
            figures.yields(
                table.assign(tokens_per_round_low=float("nan"), tokens_per_round_high=float("nan"))
            ).data
        )
        == 4
    )
    with pytest.raises(ValueError, match="at most one row per series"):
        figures.yields(table.assign(series="a"))
