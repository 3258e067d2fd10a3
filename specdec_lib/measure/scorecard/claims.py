"""A printed claim beside our measurement of it, and the verdict that follows from the two."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

NEAR = 0.05  # of the paper's value: as close as two measurements of one thing come
COLUMNS = [
    "paper",
    "item",
    "claim",
    "domain",
    "unit",
    "by",
    "paper_value",
    "ours",
    "low",
    "high",
    "prompts",
    "no_effect",
    "verdict",
    "reason",
]
NO_SIGN = math.nan  # for `no_effect`: a quantity that has no side, such as a length
VERDICTS = (
    "reproduced",
    "same sign, larger",
    "same sign, smaller",
    "another number",
    "sign unsettled",
    "opposite",
    "not testable here",
)


class Claim(NamedTuple):
    """One printed number, and ours with its 95 % interval (NaN: none) and the prompts behind it.

    reason         what differs, and the evidence for why the verdict is what it is
    paper_value    the paper's, in `unit`; NaN where only words are printed
    by             how ours was found: clock, counted, SWI, predicted or nothing
    no_effect      the value that says so; None where `paper_value` is a bound or an exact number,
                   NO_SIGN where it is neither and has no side
    domain         that ours was found on; "" for all, or none
    """

    paper: str
    item: str
    claim: str
    unit: str
    reason: str
    paper_value: float = math.nan
    by: str = "nothing"
    ours: float = math.nan
    low: float = math.nan
    high: float = math.nan
    prompts: float = math.nan
    no_effect: float | None = 1
    domain: str = ""

    @property
    def verdict(self) -> str:
        """One of VERDICTS: "reproduced" if the printed value is within NEAR of ours or in its
        interval. The sign is that of the distance from `no_effect`, and our interval, if there
        is one, must be on one side of it. Further off, a bound is "opposite".
        """
        ours = self.ours
        theirs = self.paper_value
        neutral = self.no_effect
        if math.isnan(ours) or math.isnan(theirs):
            return "not testable here"
        low, high = (ours if math.isnan(end) else end for end in (self.low, self.high))
        if low <= theirs <= high or abs(ours / theirs - 1) <= NEAR:
            return "reproduced"
        if neutral is None:
            return "opposite"
        if math.isnan(neutral):
            return "another number"
        sign = math.copysign(1, theirs - neutral)
        nearest, furthest = sorted(sign * (end - neutral) for end in (low, high))
        if nearest > 0:
            larger = abs(ours - neutral) > abs(theirs - neutral)
            return "same sign, larger" if larger else "same sign, smaller"
        return "opposite" if furthest < 0 else "sign unsettled"


def score(claims: Iterable[Claim]) -> pd.DataFrame:
    """A row per claim, in the papers' order."""
    return pd.DataFrame(one._asdict() | {"verdict": one.verdict} for one in claims)[COLUMNS]


def readable(scores: pd.DataFrame) -> pd.DataFrame:
    """The scorecard as a person reads it: a claim per row, ours with interval and prompts."""

    def said(value: float, low: float = math.nan, high: float = math.nan) -> str:
        interval = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
        number = f"{value:g}" if value == round(value, 2) else f"{value:.2f}"
        return "" if math.isnan(value) else number + interval

    columns = ["item", "claim", "domain", "unit", "by"]
    ours = [said(*row) for row in scores[["ours", "low", "high"]].itertuples(index=False)]
    shown = scores[columns].assign(paper=scores.paper_value.map(said), ours=ours)
    prompts = scores.prompts.map("{:.0f}".format).replace("nan", "")
    return shown.assign(prompts=prompts, verdict=scores.verdict).set_index(["item", "claim"])


def count_verdicts(scores: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each paper got each verdict."""
    counts = pd.crosstab(scores.verdict, scores.paper)
    return counts.reindex([one for one in VERDICTS if one in counts.index])
