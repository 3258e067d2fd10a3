"""A recorded race at one moment."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import check
from specdec_lib.show.figures.pictures import (
    INSET,
    LINE,
    boxes_trace,
    sheet,
    text_pieces,
    words_trace,
)
from specdec_lib.show.figures.theme import escape, looks

# pixels
NAME_LINE = 26.0  # of a lane's name, above its text
GAP = 14.0  # between lanes


COPIES = {"prompt": "copy", "generation": "copy", "bigram": "word pair"}  # of Max-Gram's guesses


def with_plain_sources(recording: pd.DataFrame) -> pd.DataFrame:
    """The recording with sources in words that need no explanation: where a copy was taken from is
    left out, and who reviewed it.
    """
    own = recording["source"].replace(COPIES)
    return recording.assign(source=own.mask(own.str.contains(" via "), "reviewed copy"))


def race_moment(recording: pd.DataFrame, *, at: float | None = None) -> go.Figure:
    """A recorded race at one moment: a lane per method with the text that it had written by then, a
    box per token in the colour of who guessed it.

    recording    a row per method and token, in order, as `record_race` gives it: `method`,
                 `number`, `round`, `token` (its text), `source`, `seconds` (when it was there)
    at           the moment, in seconds; without one it is when the first method has finished

    Raises ValueError for a moment that is not above 0.
    """
    check(recording, "method number", "token source seconds round")
    recording = with_plain_sources(recording)
    ends = recording.groupby("method", sort=False)["seconds"].max()
    moment = float(ends.min()) if at is None else at
    if not moment > 0:
        raise ValueError(f"a moment of a race is a number of seconds above 0, got {moment:g}")
    top = 0.0
    heads = []
    lanes = []
    for method, rows in recording.groupby("method", sort=False):
        there = rows[rows["seconds"] <= moment]
        counts = f"{len(there)} of {len(rows)} tokens, {len(rows) / ends[method]:.0f} per second"
        words = f"<b>{escape(method)}</b>  {counts}"
        heads.append({"x": INSET, "y": top + NAME_LINE / 2, "text": words})
        top += NAME_LINE
        high = LINE
        if len(there):
            own = text_pieces(there)
            high = float(own["bottom"].max()) + 4
            lanes.append(own.assign(**{side: own[side] + top for side in ("top", "bottom", "y")}))
        top += high + GAP
    traces = [words_trace(pd.DataFrame(heads), 13).update(textposition="middle right")]
    width = 640.0
    if lanes:
        pieces = pd.concat(lanes)
        for source, look in looks(recording["source"]).items():
            own = pieces[pieces["source"] == source]
            if len(own):
                boxes = boxes_trace(own, look.colour, name=escape(source))
                traces.append(boxes.update(line={"width": 0}))
        traces.append(words_trace(pieces.assign(text=pieces["text"].str.strip().map(escape))))
        width = max(width, float(pieces["right"].max()) + INSET)
    title = f"The same answer by every method, {1000 * moment:.0f} ms after it began"
    return sheet(traces, (width, top), title)
