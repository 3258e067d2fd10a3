"""A printed claim beside our measurement of it, and the verdict that follows from the two."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

NEAR = 0.05  # of a printed number that is no gain: as close as two measurements of one thing come
BAND = 0.2  # of the logarithm of a printed gain, to either side: as good as the same
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
    "kind",
    "verdict",
    "reason",
]
NO_SIGN = math.nan  # for `no_effect`: a quantity that has no side, such as a length
GAIN, NUMBER = "gain", "number"
UNTESTED = "not testable here"
VERDICTS = {
    GAIN: (
        "reproduced",
        "larger",
        "smaller",
        "compatible, too wide",
        "opposite",
        "too few to tell",
    ),
    NUMBER: ("equal", "another number", "bound kept", "bound broken"),
}


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
    def kind(self) -> str:
        """Whether it says how much better something is, or is a number of another kind: a length,
        an overhead, a bound, a formula.
        """
        return GAIN if self.no_effect in (0, 1) and self.by != "predicted" else NUMBER

    @property
    def verdict(self) -> str:
        """One of VERDICTS of its kind. A gain is compared on the logarithm of the ratio, by
        equivalence: "reproduced" if our whole interval lies within `BAND` of the printed one;
        "smaller", "larger" or "opposite" if all of it lies outside on that side; else too wide to
        tell. A number is "equal" within `NEAR`.
        """
        if math.isnan(self.ours) or math.isnan(self.paper_value):
            return UNTESTED
        if self.kind == GAIN:
            return self.gain_verdict(BAND)
        if self.no_effect is None:
            return "bound kept" if self.ours <= self.paper_value * (1 + NEAR) else "bound broken"
        return "equal" if abs(self.ours / self.paper_value - 1) <= NEAR else "another number"

    def gain_verdict(self, band: float) -> str:
        """The verdict of a gain that has a number on both sides.

        band    margin to either side, as a share of the printed gain's logarithm
        """
        if math.isnan(self.low):
            return "too few to tell"
        printed = math.log(self.as_ratio(self.paper_value))
        sign = math.copysign(1, printed)
        ends = [sign * math.log(self.as_ratio(end)) for end in (self.low, self.high)]
        low, high = (end / abs(printed) for end in sorted(ends))
        if high < 0:
            return "opposite"
        if high < 1 - band:
            return "smaller"
        if low > 1 + band:
            return "larger"
        return "reproduced" if 1 - band <= low and high <= 1 + band else "compatible, too wide"

    def as_ratio(self, value: float) -> float:
        """A gain as a ratio, where it is printed as a change in percent too."""
        return 1 + value / 100 if self.no_effect == 0 else value


def score(claims: Iterable[Claim]) -> pd.DataFrame:
    """A row per claim, in the papers' order."""
    rows = [one._asdict() | {"kind": one.kind, "verdict": one.verdict} for one in claims]
    return pd.DataFrame(rows)[COLUMNS]


def readable(scores: pd.DataFrame) -> pd.DataFrame:
    """The scorecard as a person reads it: a claim per row, ours with interval and prompts."""

    def said(value: float, low: float = math.nan, high: float = math.nan) -> str:
        interval = "" if math.isnan(low) else f" ({low:.2f}–{high:.2f})"
        number = f"{value:g}" if value == round(value, 2) else f"{value:.2f}"
        return "" if math.isnan(value) else number + interval

    columns = ["item", "claim", "domain", "unit", "by"]
    ours = [said(*row) for row in scores[["ours", "low", "high"]].itertuples(index=False)]
    shown = (
        scores[columns]
        .replace({"by": {"nothing": "–"}})
        .assign(paper=scores.paper_value.map(said), ours=ours)
    )
    prompts = scores.prompts.map("{:.0f}".format).replace("nan", "")
    return shown.assign(prompts=prompts, verdict=scores.verdict).set_index(["item", "claim"])


def reasons(scores: pd.DataFrame) -> str:
    """Why claims came out as they did, as Markdown: each reason once for a verdict, those of claims
    that came out the other way round first, and the setting that several share above them.
    """
    order = scores.assign(order=scores.verdict != "opposite").sort_values("order", kind="stable")
    settings = order.reason.str.split(r"\. (?=[A-Z])", n=1, regex=True).str[0]
    lines = []
    for shared, alike in order.groupby(settings, sort=False):
        several = alike.reason.nunique() > 1
        lines += [f"- {shared}:"] if several else []
        for (verdict, why), rows in alike.groupby(["verdict", "reason"], sort=False):
            rest = str(why).removeprefix(f"{shared}. ") if several else why
            of = f"{rows.paper.iloc[0]}, {rows['item'].iloc[0]}, *{'; '.join(rows.claim)}*"
            lines.append(f"{'    ' * several}- **{verdict}**, {of}: {rest}")
    return "\n".join(lines)


def count_verdicts(scores: pd.DataFrame, kind: str = GAIN) -> pd.DataFrame:
    """How many claims of a kind got each verdict, by paper and by how ours was found."""
    own = scores[(scores.kind == kind) & (scores.verdict != UNTESTED)]
    counts = pd.crosstab(own.verdict, [own.paper, own.by])
    return counts.reindex([one for one in VERDICTS[kind] if one in counts.index])


def count_by_margin(claims: Iterable[Claim], margins: Iterable[float]) -> pd.DataFrame:
    """How many gains get each verdict, a row per verdict and a column per margin (the `band` of
    `gain_verdict`).
    """
    gains = [one for one in claims if one.kind == GAIN and one.verdict != UNTESTED]
    verdicts = {margin: [gain.gain_verdict(margin) for gain in gains] for margin in margins}
    counts = {margin: pd.Series(own).value_counts() for margin, own in verdicts.items()}
    return pd.DataFrame(counts).reindex(VERDICTS[GAIN]).fillna(0).astype(int)
