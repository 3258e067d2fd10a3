"""Knobs for a cascade: order, K matrix, lenience."""

import html
from collections.abc import Callable, Sequence
from itertools import permutations

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib import figures
from specdec_lib.cascade import converted
from specdec_lib.replay import MAX_GRAM
from specdec_lib.widgets.panel import replace

Matrix = tuple[tuple[int, ...], ...]
Evaluate = Callable[[tuple[str, ...], Matrix, float, bool], pd.DataFrame]
LOOK = {"continuous_update": False, "style": {"description_width": "12em"}}
CONVENTIONS = {"increments": "as set: tokens added", "cumulative": "as in the paper: tokens so far"}


def cascade_explorer(
    evaluate: Evaluate,
    drafters: Sequence[str],
    *,
    lengths: Sequence[int] = tuple(range(17)),
    leniences: Sequence[float] = (1.0, 2.0, 3.0, 5.0),
    start: Sequence[Sequence[int]] | None = None,
) -> ipywidgets.VBox:
    """Knobs for a cascade: its order, a slider per entry of the K matrix, lenience and Max-Gram's exemption, over `figures.setting`.

    evaluate     drafters, K matrix in increments, lenience and exemption in; a table of `quantity` and `value` out; its ValueError is shown as text
    drafters     their names, strongest first; Max-Gram stays last in every order
    lengths      what an entry may be
    start        the K matrix at first, in increments; without it every entry is the first length above 0

    Raises ValueError if there is no drafter, or `start` is no K matrix of these drafters and lengths.
    """
    matrix = _start(start, len(drafters), lengths)
    orders = {" ← ".join(("target", *names)): names for names in permutations(drafters) if MAX_GRAM not in names[:-1]}
    order = ipywidgets.Dropdown(options=list(orders.items()), description="order", style=LOOK["style"])
    places = [(row, column) for row in range(len(matrix)) for column in range(row, len(matrix))]
    entries = {at: ipywidgets.SelectionSlider(options=list(lengths), value=matrix[at[0]][at[1]], **LOOK) for at in places}
    lenience = ipywidgets.SelectionSlider(options=list(leniences), description="lenience", **LOOK)
    exempt = ipywidgets.Checkbox(value=True, description=f"{MAX_GRAM}'s reviewer is never lenient", style=LOOK["style"])
    said, shown = ipywidgets.HTML(), go.FigureWidget()

    def redraw(_: object = None) -> None:
        models = ("target", *order.value)
        for (row, column), slider in entries.items():
            slider.description = f"{models[row]} ← {models[column + 1]}"
        wanted = tuple(tuple(entries[row, column].value if column >= row else 0 for column in range(len(matrix))) for row in range(len(matrix)))
        figure, said.value = _explored(evaluate, order.value, wanted, lenience.value, exempt.value)
        replace(shown, figure)

    redraw()
    for knob in (order, *entries.values(), lenience, exempt):
        knob.observe(redraw, names="value")
    return ipywidgets.VBox([order, *entries.values(), lenience, exempt, said, shown])


def _start(start: Sequence[Sequence[int]] | None, size: int, lengths: Sequence[int]) -> Matrix:
    """The checked K matrix at which the sliders stand first."""
    if not size or not any(length > 0 for length in lengths):
        raise ValueError(f"the explorer needs a drafter and a length above 0, got {size} drafters and the lengths {list(lengths)}")
    first = next(length for length in lengths if length > 0)
    given = start if start is not None else [[first if column >= row else 0 for column in range(size)] for row in range(size)]
    matrix = converted(given, "increments", "increments")
    if len(matrix) != size:
        raise ValueError(f"a K matrix has a row and a column per drafter: {size} drafters, {len(matrix)} rows")
    for row, entries in enumerate(matrix):
        if not set(entries[row:]) <= set(lengths):
            raise ValueError(f"the sliders must start at one of {list(lengths)}, row {row} is {entries}")
    return matrix


def _explored(evaluate: Evaluate, drafters: tuple[str, ...], matrix: Matrix, lenience: float, exempt: bool) -> tuple[go.Figure, str]:
    """The figure of one setting and the words over it: its K matrix in both conventions, or why there is nothing to show."""
    try:
        table = evaluate(drafters, matrix, lenience, exempt)
    except ValueError as error:
        return go.Figure(layout={"template": figures.SCREEN, "height": 80}), f"<pre>{html.escape(str(error))}</pre>"
    lines = [f"{'K, a row per reviewer':24}" + "".join(f"{name:34}" for name in CONVENTIONS.values())]
    both = [converted(matrix, "increments", name) for name in CONVENTIONS]
    for number, reviewer in enumerate(("target", *drafters)[: len(matrix)]):
        lines.append(f"{reviewer:24}" + "".join(f"{''.join(f'{entry:4}' for entry in shape[number]):34}" for shape in both))
    title = f"lenience {lenience:g}" + (f", {MAX_GRAM}'s reviewer exempt" if exempt and lenience > 1 else "")
    return figures.setting(table, title=f"{' ← '.join(('target', *drafters))}, {title}"), f"<pre>{html.escape(chr(10).join(lines))}</pre>"
