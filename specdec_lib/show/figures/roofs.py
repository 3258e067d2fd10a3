"""The roofline: how many operations per second a machine can do at each number of operations per
byte.
"""

import math
from numbers import Real

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import beside
from specdec_lib.show.figures.marks import Look, check, groups, with_prefix
from specdec_lib.show.figures.theme import INK, SCREEN, escaped

KINDS = {"paper": Look("#D55E00", "solid", "diamond"), "ours": Look("#0072B2", "solid", "circle")}
PLOT = (640.0, 350.0)  # pixels, about


def roofline(
    table: pd.DataFrame, *, bytes_per_second: Real, flops_per_second: Real, name: str
) -> go.Figure:
    """Points under a machine's bandwidth line and compute roof, each with its share of the lower of
    the two at its place.

    table                               a row per point: `point` (its name), `intensity`
                                        (FLOP/byte), `flops_per_second`, `kind` ("paper", "ours")
    bytes_per_second, flops_per_second  the most that the machine moves and computes
    name                                the machine's

    Raises ValueError if the table lacks a column or a row, a number is not above 0, or a kind is
    another.
    Source: Williams, Waterman and Patterson 2009.
    """
    _check(table, bytes_per_second, flops_per_second)
    bandwidth, roof = float(bytes_per_second), float(flops_per_second)
    ridge = roof / bandwidth
    xs = (
        0.4 * min(ridge, float(table["intensity"].min())),
        20 * max(ridge, float(table["intensity"].max())),
    )
    ys = (
        0.4 * min(bandwidth * xs[0], float(table["flops_per_second"].min())),
        2.5 * max(roof, float(table["flops_per_second"].max())),
    )
    figure = go.Figure()
    line = {"x": [xs[0], ridge, xs[1]], "y": [bandwidth * xs[0], roof, roof]}
    figure.add_scatter(
        **line, mode="lines", line={"color": INK, "width": 2.5}, showlegend=False, hoverinfo="skip"
    )
    _name_the_roof(figure, bandwidth, roof, xs, ys)
    texts = [_text(row, bandwidth, roof) for row in table.itertuples()]
    dots = [_pixels(row.intensity, row.flops_per_second, xs, ys) for row in table.itertuples()]
    table = table.assign(
        text=texts, place=beside(dots, texts, size=PLOT, obstacles=_line(bandwidth, roof, xs, ys))
    )
    for kind, rows in groups(table, "kind"):
        figure.add_scatter(
            x=rows["intensity"],
            y=rows["flops_per_second"],
            mode="markers+text",
            marker=KINDS[kind].marker(11),
            name=kind,
            text=list(rows["text"]),
            textposition=list(rows["place"]),
            textfont={"size": 12},
            cliponaxis=False,
            hovertemplate="%{text}<br>%{x:.3g} FLOP/byte, %{y:.3s}FLOP/s<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(
        template=SCREEN,
        width=760,
        height=500,
        title={"text": escaped(name)},
        margin={"t": 84},
        showlegend=True,
    )
    figure.update_xaxes(**_decades(xs), title="operations per byte, in FLOP/byte")
    figure.update_yaxes(**_decades(ys), title="operations per second, in FLOP/s")
    return figure


def _check(table: pd.DataFrame, bandwidth: Real, roof: Real) -> None:
    check(table, ("point", "intensity", "flops_per_second", "kind"))
    numbers = (bandwidth, roof, table["intensity"].min(), table["flops_per_second"].min())
    if not all(number > 0 for number in numbers):
        raise ValueError(
            "bytes and FLOP per second, of machine and points, and intensities are above 0, got"
            f" down to {min(numbers)}"
        )
    if strangers := sorted(set(table["kind"]) - set(KINDS)):
        raise ValueError(
            f"a point's kind is one of {', '.join(KINDS)}, got {', '.join(map(str, strangers))}"
        )


def _text(row: tuple, bandwidth: float, roof: float) -> str:
    slope = bandwidth * row.intensity
    percent = 100 * row.flops_per_second / min(slope, roof)
    limit = "bandwidth line" if slope < roof else "compute roof"
    return f"{escaped(str(row.point))}<br>{percent:.{0 if percent >= 1 else 2}f} % of the {limit}"


def _decades(ends: tuple[float, float]) -> dict[str, object]:
    """An axis on which each factor of 10 is one step, with a tick each."""
    low, high = (math.log10(end) for end in ends)
    ticks = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [with_prefix(tick, "").strip() for tick in ticks],
    }


def _pixels(
    x: float, y: float, xs: tuple[float, float], ys: tuple[float, float]
) -> tuple[float, float]:
    """From the lower left corner of the plot."""
    return tuple(
        size * math.log(at / low) / math.log(high / low)
        for size, at, (low, high) in zip(PLOT, (x, y), (xs, ys), strict=True)
    )


def _line(
    bandwidth: float, roof: float, xs: tuple[float, float], ys: tuple[float, float]
) -> list[tuple[float, float, float, float]]:
    """The roof as small boxes that words keep off, and the ridge with its own words."""
    boxes = []
    for step in range(121):
        at = xs[0] * (xs[1] / xs[0]) ** (step / 120)
        x, y = _pixels(at, min(bandwidth * at, roof), xs, ys)
        boxes.append((x - 4, y - 4, x + 4, y + 4))
    ridge = _pixels(roof / bandwidth, ys[0], xs, ys)[0]
    return [*boxes, (ridge - 2, 0.0, ridge + 2, PLOT[1]), (ridge, 0.0, ridge + 130, 16.0)]


def _name_the_roof(
    figure: go.Figure,
    bandwidth: float,
    roof: float,
    xs: tuple[float, float],
    ys: tuple[float, float],
) -> None:
    """The words on the slope, on the roof and at the ridge between them."""
    ridge = roof / bandwidth
    (left, low), (right, high) = (
        _pixels(xs[0], bandwidth * xs[0], xs, ys),
        _pixels(ridge, roof, xs, ys),
    )
    angle = -math.degrees(math.atan2(high - low, right - left))
    plain = {"showarrow": False, "font": {"size": 12}}
    middle = math.log10(math.sqrt(xs[0] * ridge))
    figure.add_annotation(
        x=middle,
        y=math.log10(bandwidth) + middle,
        text=with_prefix(bandwidth, "B/s"),
        textangle=angle,
        xshift=13 * math.sin(math.radians(angle)),
        yshift=13 * math.cos(math.radians(angle)),
        **plain,
    )
    figure.add_annotation(
        x=math.log10(xs[1]),
        y=math.log10(roof),
        xanchor="right",
        yanchor="bottom",
        text=with_prefix(roof, "FLOP/s"),
        **plain,
    )
    dotted = {"dash": "dot", "color": INK, "width": 1.2}
    figure.add_scatter(
        x=[ridge, ridge],
        y=[ys[0], roof],
        mode="lines",
        line=dotted,
        showlegend=False,
        hoverinfo="skip",
    )
    figure.add_annotation(
        x=math.log10(ridge),
        y=math.log10(ys[0]),
        xanchor="left",
        yanchor="bottom",
        text=f"ridge {ridge:.3g} FLOP/byte",
        **plain,
    )
