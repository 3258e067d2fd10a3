"""What a cascade gains on the clock, and what leaving a part of it out costs."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import EMPTY, PAPERS, domain_looks, headed, hollow, key, words
from specdec_lib.show.figures.marks import (
    check,
    check_once,
    groups,
    interval,
    panels,
    place,
    short,
    tops,
    wrapped,
)
from specdec_lib.show.figures.theme import DARK, INK, escaped, tint

ABLATION = ("domain", "variant", "change_percent", "low", "high", "paper")
LEVEL = 4  # domains to a method whose names still fit beside each other


def walltime(table: pd.DataFrame) -> go.Figure:
    """Speed against autoregressive decoding: a bar per method and domain, tokens per second in it,
    the paper's ratios as hollow diamonds.

    table    a row per bar: `domain`, `method`, `ours`, `ours_low`, `ours_high`, `paper` (tokens per
             second), and `ratio`, `ratio_low`, `ratio_high`, `paper_ratio` (to autoregressive
             decoding on the same machine); NaN where there is none

    Raises ValueError if the table lacks a column or a row, has two rows for one bar, or an interval
    does not hold its value.
    """
    speeds = ("paper", "ours", "ours_low", "ours_high")
    check(table, ("domain", "method", *speeds, "ratio", "ratio_low", "ratio_high", "paper_ratio"))
    check_once(table, ("domain", "method"))
    methods, domains = (
        [name for name, _ in groups(table, column)] for column in ("method", "domain")
    )
    step = len(domains) + 0.8
    table = table.assign(
        x=[
            methods.index(str(row.method)) * step + domains.index(str(row.domain))
            for row in table.itertuples()
        ]
    )
    both = table["ratio"].notna() & table["paper_ratio"].notna()  # they stand beside each other
    ours, theirs = (
        table.assign(x=table["x"] - 0.25 * both),
        table.assign(x=table["x"] + 0.27 * both).dropna(subset=["paper_ratio"]),
    )
    figure = go.Figure().update_layout(EMPTY, width=900, height=430, bargap=0)
    for name, rows in groups(ours.dropna(subset=["ratio"]), "domain"):
        figure.add_trace(_speed_bars(rows, name, 0.5 if both.any() else 0.64))
        ends = tops(rows, "ratio", high="ratio_high")
        figure.add_trace(
            words(rows["x"], ends, map(short, rows["ratio"]), "top center", group=name)
        )
    if len(theirs):
        figure.add_trace(_speed_marks(theirs))
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    _two_levels(figure, methods, domains, step)
    highest = float(
        pd.concat(
            [tops(table, "ratio", high="ratio_high"), table["paper_ratio"].astype(float)]
        ).max()
    )
    figure.update_yaxes(
        title="tokens per second ÷ autoregressive decoding's<br>(in the bars: tokens per second)",
        range=[0, 1.12 * highest],
    )
    return headed(
        figure, "Speed on the clock as a ratio to autoregressive decoding on the same machine"
    )


def _two_levels(figure: go.Figure, methods: list[str], domains: list[str], step: float) -> None:
    """Domains along the x axis, and under them the methods."""
    places = [
        (method * step + lane, escaped(name))
        for method in range(len(methods))
        for lane, name in enumerate(domains)
    ]
    tilted = len(domains) > LEVEL
    ticks = {
        "tickvals": [x for x, _ in places],
        "ticktext": [name for _, name in places],
        "tickangle": -40 if tilted else 0,
    }
    figure.update_xaxes(
        **ticks, range=[-0.75, len(methods) * step - 1.05], showgrid=False, showline=True
    )
    figure.update_xaxes(title={"text": "domain, and below it how it is decoded", "standoff": 38})
    below = {
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -48 if tilted else -24,
        "showarrow": False,
    }
    for number, name in enumerate(methods):
        figure.add_annotation(
            x=number * step + (len(domains) - 1) / 2, text=f"<b>{escaped(name)}</b>", **below
        )
    figure.update_layout(height=figure.layout.height + (60 if tilted else 30))


def _speed_marks(rows: pd.DataFrame) -> go.Scatter:
    """The paper's ratios, and its tokens per second when hovered over."""
    return go.Scatter(
        x=rows["x"],
        y=rows["paper_ratio"],
        mode="markers+text",
        marker=hollow(),
        text=[short(ratio) for ratio in rows["paper_ratio"]],
        textposition="top center",
        textfont={"size": 10},
        cliponaxis=False,
        name=PAPERS,
        legendgroup=PAPERS,
        customdata=rows[["method", "domain", "paper"]].to_numpy(),
        hovertemplate="%{customdata[0]}, %{customdata[1]}: %{y:.2f} times<br>%{customdata[2]:.4g} tokens per second<extra>paper</extra>",
    )


def _speed_bars(rows: pd.DataFrame, name: str, width: float) -> go.Bar:
    """The bars of one domain, tokens per second at their feet."""
    look = domain_looks([name])[name]
    return go.Bar(
        x=rows["x"],
        y=rows["ratio"],
        width=width,
        name=escaped(name),
        legendgroup=name,
        marker={"color": tint(look.colour), "line": {"color": look.colour, "width": 1.5}},
        error_y=interval(rows, "ratio", look, low="ratio_low", high="ratio_high"),
        text=[short(speed) for speed in rows["ours"]],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        constraintext="none",
        insidetextfont={"color": DARK, "size": 11},
        customdata=rows[["method", "ours", "ours_low", "ours_high"]].to_numpy(),
        hovertemplate="%{customdata[0]}: %{y:.2f} times<br>%{customdata[1]:.4g} tokens per second "
        "(%{customdata[2]:.4g} to %{customdata[3]:.4g})<extra>%{fullData.name}</extra>",
    )


def cascade_ablation(table: pd.DataFrame) -> go.Figure:
    """The change that each part left out makes, in percent of the full cascade: a panel per domain,
    a bar per part; the paper's hollow.

    table    a row per bar: `domain`, `variant`, `change_percent`, `low`, `high` (negative is
             slower), `paper` (percent, or NaN); the variant "full" is the line at 0

    Raises ValueError if the table lacks a column or a row, has two rows for one bar, or an interval
    does not hold its value.
    """
    check(table, ABLATION)
    check_once(table, ("domain", "variant"))
    domains = list(dict.fromkeys(map(str, table["domain"])))
    table = table[table["variant"] != "full"]
    check(table, ABLATION)
    variants = [name for name, _ in groups(table, "variant")]
    columns = 2 if len(domains) == 4 else min(3, len(domains))
    down = -(-len(domains) // columns)
    size = {"width": min(900, 170 + 245 * columns), "height": 90 + down * (90 + 46 * len(variants))}
    figure = panels(domains, **size, columns=columns)
    shown: set[str] = set()
    for number, domain in enumerate(domains):
        own = table[table["domain"].map(str) == domain]
        own = own.assign(y=[float(variants.index(str(name))) for name in own["variant"]])
        for trace in _changes(own, domain):
            key(figure, shown, trace, place(number, columns))
    everything = table[["change_percent", "low", "high", "paper"]].astype(float)
    least, most = min(0.0, float(everything.min().min())), max(0.0, float(everything.max().max()))
    room = 0.3 * ((most - least) or 1.0)
    figure.add_vline(x=0, line={"width": 1.5, "color": INK})
    figure.update_xaxes(title="change against full, in %", range=[least - room, most + room])
    figure.update_yaxes(
        tickvals=list(range(len(variants))), ticktext=[wrapped(name, 18) for name in variants]
    )
    figure.update_yaxes(range=[len(variants) - 0.45, -0.55], showgrid=False)
    figure.update_yaxes(title="what is left out", col=1)
    figure.update_layout(bargap=0, showlegend=True)
    return headed(
        figure, "What leaving a part out changes, against the full cascade (left of 0: slower)"
    )


def _changes(rows: pd.DataFrame, domain: str) -> list[go.Bar | go.Scatter]:
    """One panel: bars with their values at the far end of their intervals, the paper's diamonds
    below them.
    """
    look = domain_looks([domain])[domain]
    ours, theirs = rows.dropna(subset=["change_percent"]), rows.dropna(subset=["paper"])
    bars = go.Bar(
        x=ours["change_percent"],
        y=ours["y"] - 0.08,
        width=0.46,
        orientation="h",
        showlegend=False,
        marker={"color": tint(look.colour), "line": {"color": look.colour, "width": 1.5}},
        error_x=interval(ours, "change_percent", look),
        customdata=ours[["variant", "low", "high"]].to_numpy(),
        hovertemplate="%{customdata[0]}: %{x:+.1f} % (%{customdata[1]:+.1f} to %{customdata[2]:+.1f})<extra></extra>",
    )
    traces: list[go.Bar | go.Scatter] = [bars]
    for left, own in ours.groupby(ours["change_percent"] < 0):
        ends = own["low"].fillna(own["change_percent"]) if left else tops(own, "change_percent")
        texts = [
            f"{_signed(change)} " if left else f" {_signed(change)}"
            for change in own["change_percent"]
        ]
        traces.append(
            words(ends, own["y"] - 0.08, texts, "middle left" if left else "middle right")
        )
    if len(theirs):
        hover = "%{x:+.1f} %<extra>%{fullData.name}</extra>"
        traces.append(
            go.Scatter(
                x=theirs["paper"],
                y=theirs["y"] + 0.32,
                mode="markers",
                marker=hollow(size=9),
                name=PAPERS,
                hovertemplate=hover,
            )
        )
        texts = [f"{_signed(change)}\u2003" for change in theirs["paper"]]
        traces.append(words(theirs["paper"], theirs["y"] + 0.32, texts, "middle left"))
    return traces


def _signed(change: float) -> str:
    return f"{change:+.1f}".replace("-", "−")
