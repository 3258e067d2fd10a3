"""The explorer of a pass: what it takes over so many rows, and what the machine would allow."""

from collections.abc import Mapping
from itertools import pairwise

import pandas as pd

from specdec_lib.measure import latency
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import choice, make_knobs, slider
from specdec_lib.show.widgets.panel import Panel, Shown, bullets
from specdec_lib.theory import PassTable

COLUMNS = ("seconds", "roofline_seconds")


def latency_explorer(curves: pd.DataFrame) -> Panel:
    """Knobs over `figures.pass_at`: model, runtime, rows and context of a pass, its seconds by the
    measured curves, and the roofline's.

    curves    of `latency.curves`; with the columns of `with_roofline`, the roofline is
              drawn too

    Between measured rows and contexts the seconds lie on straight lines.  Raises ValueError for a
    table that `latency.pass_tables` refuses.
    """
    columns = [column for column in COLUMNS if column in curves]
    tables = {
        runtime: {column: latency.pass_tables(curves, runtime, column=column) for column in columns}
        for runtime in curves.runtime.unique()
    }

    def draw(model: str, runtime: str, rows: int, context: int) -> Shown:
        known = tables[runtime]["seconds"]
        if model not in known:
            raise ValueError(
                f"{model} was not timed with runtime {runtime!r}, there are {', '.join(known)}"
            )
        measured = curves[(curves.model == model) & (curves.runtime == runtime)]
        if rows > (most := int(measured.rows.max())):
            raise ValueError(
                f"{model} was timed over up to {most} rows with runtime {runtime!r}, got {rows}"
            )
        line = _line({name: of[model] for name, of in tables[runtime].items()}, most, context)
        title = f"{model}, {runtime}: a pass over {rows} rows after {context} tokens"
        figure = figures.pass_at(measured, line, rows=rows, title=title)
        return Shown((figure,), bullets(_words(measured, line, rows, context)))

    contexts = sorted({*curves.context_tokens})
    between = sorted({*contexts, *((low + high) // 2 for low, high in pairwise(contexts))})
    rows = range(1, int(curves.rows.max()) + 1)
    verified = "tokens read in the pass: the last one, and the guesses that it verifies"
    knobs = {
        "model": choice(list(curves.model.unique()), curves.model.iloc[0]),
        "runtime": choice(list(curves.runtime.unique()), curves.runtime.iloc[0]),
        "rows": slider(rows, min(4, len(rows)), verified),
        "context": slider(between, contexts[len(contexts) // 2], "tokens that were read before"),
    }
    return Panel(make_knobs(knobs), draw)


def _line(tables: Mapping[str, PassTable], most: int, context: int) -> pd.DataFrame:
    """Seconds of a pass over 1 to `most` rows after a context."""
    counts = range(1, most + 1)
    seconds = {name: [one.at(count, context) for count in counts] for name, one in tables.items()}
    return pd.DataFrame({"rows": list(counts)} | seconds)


def _words(measured: pd.DataFrame, line: pd.DataFrame, rows: int, context: int) -> list[str]:
    """Seconds of a pass, their ratio to one row's, and the roofline's."""
    one, here = (line[line.rows == count].iloc[0] for count in (1, rows))
    spot = measured[(measured.rows == rows) & (measured.context_tokens == context)]
    how = "between measured ones, on straight lines"
    if len(spot):
        low, high = (1e3 * spot[name].iloc[0] for name in ("low_seconds", "high_seconds"))
        how = f"half of the measured passes took {low:.2f} to {high:.2f}"
    ratio = here.seconds / one.seconds
    lines = [
        f"{1e3 * here.seconds:.2f} ms ({how}), {1e3 * here.seconds / rows:.2f} ms per row",
        f"{ratio:.2f} times a pass over one row: {rows - 1} guesses to verify cost"
        f" {ratio - 1:+.0%} of a pass",
    ]
    if "roofline_seconds" in line:
        bound = here.roofline_seconds
        lines.append(
            f"the machine would allow {1e3 * bound:.2f} ms (bandwidth or arithmetic):"
            f" {bound / here.seconds:.0%} of what it takes"
        )
    return lines
