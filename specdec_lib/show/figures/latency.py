"""Figures of seconds: of a pass over rows, beside what the machine would allow, and of a round."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import open_chart
from specdec_lib.show.figures.forms import add_bars, add_dots, add_lines
from specdec_lib.show.figures.labels import short
from specdec_lib.show.figures.marks import (
    check,
    check_among,
    lanes,
    marks,
    names_of,
)
from specdec_lib.show.figures.theme import DASHES, HATCHES, INK, SOURCES, SYMBOLS, Look, looks

ENDS = "low_seconds seconds high_seconds"
CHOSEN, ALLOWED, STAR = "at the chosen context", "what the machine would allow", "this pass"
PASS_LOOKS = {
    CHOSEN: Look(SOURCES["target"]),
    ALLOWED: Look(INK, "dot"),
    STAR: Look(SOURCES["target"], symbol="star"),
}
PARTS = {
    "verify": SOURCES["target"],
    "draft passes": SOURCES["draft"],
    "choice and noise": SOURCES["bigram"],
    "KV moves": SOURCES["prompt"],
    "tree": SOURCES["n-gram"],
    "n-gram": SOURCES["generation"],
    "host": SOURCES["context"],
}
WRITTEN = 0.07  # of the longest bar: a shorter piece has no room for its number


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its rows, a panel per model, each with its own y axis, and a
    line per runtime with a band between the quartiles; the roofline dotted.

    table    `model`, `runtime`, `rows`, `context_tokens`, `seconds`, `low_seconds`, `high_seconds`,
             optionally `roofline_seconds`, drawn at the greatest context; where there are several
             contexts, the least and the greatest are drawn, as lines of their own
    """
    check(table, "model runtime rows context_tokens", ENDS)
    contexts = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(contexts)]
    after = table["context_tokens"].map(", context {}".format) if len(contexts) > 1 else ""
    table = table.assign(series=table["runtime"].map(str) + after)
    rows, hues = _milliseconds(table, panel="model"), looks(table["runtime"])
    styles = {}
    for row in table.itertuples():
        hue, dash = hues[str(row.runtime)], DASHES[contexts.index(row.context_tokens)]
        styles[row.series] = Look(hue.colour, dash, hue.symbol)
    panels = names_of(table["model"])
    size, y = (130 + 260 * len(panels), 324), "milliseconds of a pass"
    chart = open_chart(panels, size=size, x="rows of a pass", y=y, shared_y=False, gap=0.07)
    add_lines(chart, rows, styles, dots=7)
    if "roofline_seconds" in table:
        greatest = table[table["context_tokens"] == contexts[-1]]
        roofs = greatest.assign(series="roofline, " + greatest["runtime"].map(str))
        roofs = marks(
            roofs, "rows", 1e3 * roofs["roofline_seconds"], series="series", panel="model"
        )
        dotted = {f"roofline, {name}": Look(look.colour, "dot") for name, look in hues.items()}
        add_lines(chart, roofs, dotted)
    chart.count_in_powers(table["rows"])
    chart.figure.update_yaxes(rangemode="tozero")
    return chart.titled("How long a pass takes, by its rows")


def _milliseconds(table: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    """Passes as marks, in milliseconds; low and high are their quartiles."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in ENDS.split()})
    return marks(scaled, "rows", "seconds", series="series", panel=panel, ends=ENDS)


def pass_at(measured: pd.DataFrame, line: pd.DataFrame, *, rows: int, title: str = "") -> go.Figure:
    """Milliseconds of a pass against its rows: a thin line with dots per measured context, a thick
    one at the chosen context, a star at the pass.

    measured    of one model in one runtime: `rows`, `context_tokens`, `seconds`, `low_seconds`,
                `high_seconds`
    line        at the chosen context: `rows`, `seconds`, optionally `roofline_seconds`, drawn
                dotted
    rows        of the pass that the star marks; words beside it say its milliseconds, and how many
                times those of one row
    """
    check(measured, "rows context_tokens", ENDS)
    check(line, "rows", "seconds")
    if rows not in set(line["rows"]):
        raise ValueError(
            f"the line has passes of {line['rows'].min()} to {line['rows'].max()} rows, got {rows}"
        )
    named = measured.sort_values("context_tokens", kind="stable")
    named = named.assign(series=named["context_tokens"].map("context {}".format))
    styles = PASS_LOOKS | {
        name: Look(INK, DASHES[number % len(DASHES)], SYMBOLS[number % len(SYMBOLS)])
        for number, name in enumerate(names_of(named["series"]))
    }
    chart = open_chart(size=(780, 394), x="rows of the pass", y="milliseconds of a pass")
    add_lines(chart, _milliseconds(named), styles, dots=6, width=1)
    chosen = marks(line, "rows", 1e3 * line["seconds"]).sort_values("rows").assign(series=CHOSEN)
    add_lines(chart, chosen, styles, width=3)
    if "roofline_seconds" in line:
        roof = marks(line, "rows", 1e3 * line["roofline_seconds"]).assign(series=ALLOWED)
        add_lines(chart, roof, styles)
    star = chosen[chosen["rows"] == rows]
    took, one = star["y"].iloc[0], chosen["y"].iloc[0]
    words = f"{short(took)} ms, {short(took / one)} × one row"
    add_dots(chart, star.assign(series=STAR, text=words), styles, size=17)
    chart.figure.data[-1].textposition = "top left" if rows > 4 else "top right"
    chart.figure.data[-1].textfont = {"size": 14, "color": SOURCES["target"]}
    chart.count_in_powers([1, *line["rows"]])
    chart.figure.update_yaxes(rangemode="tozero")
    return chart.titled(title or f"How long a pass of {rows} rows takes")


def round_ledger(table: pd.DataFrame) -> go.Figure:
    """Where the milliseconds of a round go: a lying bar per draft, a piece per part, a panel per
    sampling; the share of the longer pieces in them. Hovering tells the model of a piece.

    table    `draft`, `sampling`, `part`, `model` ("" where it is no model's), `round_seconds`,
             `share` of the wall time
    """
    keys, values = "draft sampling part model", "round_seconds share"
    check(table, "", f"{keys} {values}")
    table = table.fillna({"model": ""})
    check(table, keys, values)
    check_among("a part of a round", table["part"], tuple(PARTS))
    rows, drafts, panels = (
        _round_marks(table),
        names_of(table["draft"]),
        names_of(table["sampling"]),
    )
    styles = {
        part: Look(colour, hatch=HATCHES[number % len(HATCHES)])
        for number, (part, colour) in enumerate(PARTS.items())
    }
    size = (260 + 330 * len(panels), 74 + 46 * len(drafts))
    chart = open_chart(panels, size=size, x="milliseconds of a round", gap=0.04)
    add_bars(chart, rows, styles, lying=True, width=0.7)
    chart.figure.update_xaxes(range=[0, 1.03 * float((rows["base"] + rows["x"]).max())])
    chart.name_places("y", drafts, longest=26)
    return chart.titled("Where the time of a round goes")


def _round_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A mark per piece of a bar: where it starts, its length, and its share if that has room."""
    order = table["part"].map(list(PARTS).index)
    table = table.assign(place=lanes(table["draft"]), milliseconds=1e3 * table["round_seconds"])
    table = table.iloc[order.argsort(kind="stable")]
    sums = table.groupby(["draft", "sampling"], sort=False)["milliseconds"]
    base, longest = sums.cumsum() - table["milliseconds"], float(sums.sum().max())
    room = table["milliseconds"] > WRITTEN * longest
    share = table["share"].map("{:.0%}".format).where(room, "")
    note = [
        f"{row.draft}: {row.share:.1%}, {row.model or 'no model'}" for row in table.itertuples()
    ]
    table = table.assign(base=base, inside=share, note=note)
    return marks(table, "milliseconds", "place", series="part", panel="sampling")
