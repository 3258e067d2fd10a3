"""A recorded race in motion: every lane writes its answer at the pace at which it was decoded, as a
piece of HTML that moves without a kernel, or in a terminal.
"""

import html
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel as Frame
from rich.text import Text

from specdec_lib.measure.watching import race_speeds
from specdec_lib.show.figures.chart import groups_of, named_rows
from specdec_lib.show.figures.races import with_plain_sources
from specdec_lib.show.figures.theme import DARK, looks, tint

FRAMES = 30  # per second, in a terminal
LINES = 4  # of a lane in a terminal at most: the end of its text
FRAMED = 2  # lines of a lane besides its text
LINGER = 0.5  # seconds for which the finished race is drawn before it is left standing
PAUSE = 0.4  # seconds before the race begins on a page
STYLE = """<style>
@property --specdec-ms {syntax: "<integer>"; initial-value: 0; inherits: false}
@keyframes specdec-come {to {visibility: visible}}
@keyframes specdec-grow {from {transform: scaleX(0)} to {transform: scaleX(1)}}
@keyframes specdec-clock {to {--specdec-ms: var(--end)}}
.specdec-race {color: var(--jp-content-font-color1, inherit); font: 14px/1.5 system-ui, sans-serif}
.specdec-race .specdec-clock {font-variant-numeric: tabular-nums; font-weight: 600}
.specdec-race .specdec-clock::after {content: counter(ms) " ms";
  counter-reset: ms var(--specdec-ms);
  animation: specdec-clock var(--lasts) linear var(--begins) both}
.specdec-race .specdec-lane {margin: 10px 0 14px}
.specdec-race .specdec-head {display: flex; gap: 10px; align-items: center}
.specdec-race .specdec-head b {width: 11em}
.specdec-race .specdec-bar {height: 8px; border-radius: 4px; transform-origin: left;
  background: currentColor; opacity: .45;
  animation: specdec-grow var(--lasts) linear var(--begins) both}
.specdec-race .specdec-rail {flex: 1}
.specdec-race .specdec-said {width: 23em; text-align: right; font-variant-numeric: tabular-nums}
.specdec-race .specdec-text {white-space: pre-wrap; overflow-wrap: anywhere; margin-top: 4px}
.specdec-race .specdec-token {border-radius: 3px; color: INK}
.specdec-race .specdec-token, .specdec-race .specdec-said {visibility: hidden;
  animation: specdec-come 1ms linear var(--at) forwards}
.specdec-race .specdec-key {margin-right: 12px; padding: 0 6px; border-radius: 3px; color: INK}
@media (prefers-reduced-motion: reduce) {
  .specdec-race * {animation-duration: 1ms !important; animation-delay: 0s !important}
  .specdec-race .specdec-clock::after {--specdec-ms: var(--end); animation: none}}
</style>""".replace("INK", DARK)


def race_page(recording: pd.DataFrame, *, slower: float = 1.0) -> str:
    """The race as HTML: under each other a lane per method, each token in the colour of who guessed
    it, appearing when it was there; a clock, and behind each lane its tokens per second.

    recording    as `record_race` gives it
    slower       times as slow as it was; ValueError unless above 0
    """
    check_pace(slower)
    recording = with_plain_sources(recording)
    speeds = _speeds(recording)
    longest = float(recording["seconds"].max())
    colours = {name: look.colour for name, look in looks(recording["source"]).items()}
    keys = "".join(
        f'<span class="specdec-key" style="background:{tint(colour)}">{html.escape(name)}</span>'
        for name, colour in colours.items()
    )
    clock = f"--end:{1000 * longest:.0f};--begins:{PAUSE}s;--lasts:{longest * slower:.4f}s"
    lanes = "".join(
        _lane(rows, speeds[method], longest, slower, colours)
        for method, rows in groups_of(recording, "method")
    )
    head = f'{keys}<span class="specdec-clock" style="{clock}"></span>'
    return f'{STYLE}<div class="specdec-race"><div>{head}</div>{lanes}</div>'


def _lane(
    rows: pd.DataFrame,
    speed: Any,
    longest: float,
    slower: float,
    colours: Mapping[str, str],
) -> str:
    """One method: its name, a bar that grows while it writes, its speed, and its text."""
    lasts = speed.seconds * slower
    share = 100 * speed.seconds / longest
    bar = f"width:{share:.1f}%;--begins:{PAUSE}s;--lasts:{lasts:.4f}s"
    tokens = "".join(
        f'<span class="specdec-token" style="--at:{PAUSE + one.seconds * slower:.4f}s;'
        f'background:{tint(colours[one.source])}">{html.escape(one.token)}</span>'
        for one in named_rows(rows)
    )
    return (
        f'<div class="specdec-lane"><div class="specdec-head"><b>{html.escape(speed.method)}</b>'
        f'<span class="specdec-rail"><div class="specdec-bar" style="{bar}"></div></span>'
        f'<span class="specdec-said" style="--at:{PAUSE + lasts:.4f}s">{speed_said(speed)}</span>'
        f'</div><div class="specdec-text">{tokens}</div></div>'
    )


def speed_said(speed: Any) -> str:
    """A lane's result in words: tokens per second and its ratio to plain decoding.

    speed    a row of `race_speeds`
    """
    said = f"{speed.tokens_per_second:.0f} tokens per second, {speed.ratio:.2f} ×"
    return said if speed.same else f"{said}; parts from plain decoding at a near tie"


def play_race(
    recording: pd.DataFrame, *, slower: float = 1.0, console: Console | None = None
) -> None:
    """Show the race in a terminal, at the pace at which it was decoded; where the output is no
    terminal, only how it ended.

    slower    times as slow as it was; ValueError unless above 0
    """
    check_pace(slower)
    recording = with_plain_sources(recording)
    shown = console or Console()
    longest = float(recording["seconds"].max())
    speeds = _speeds(recording)
    if shown.is_terminal:
        with Live(console=shown, refresh_per_second=FRAMES, screen=True) as live:
            started = time.perf_counter()
            while (now := (time.perf_counter() - started) / slower) < longest + LINGER / slower:
                live.update(_frame(recording, speeds, now, shown))
                time.sleep(1 / FRAMES)
    shown.print(_frame(recording, speeds, longest, shown))


def _speeds(recording: pd.DataFrame) -> dict[str, Any]:
    return {one.method: one for one in named_rows(race_speeds(recording))}


def check_pace(slower: float) -> None:
    """Raise ValueError unless a race is to last a positive number of times as long as it did."""
    if not slower > 0:
        raise ValueError(f"slower is a number above 0, times as slow as it was, got {slower:g}")


def _frame(
    recording: pd.DataFrame, speeds: Mapping[str, Any], now: float, console: Console
) -> Group:
    """The race after so many seconds, in lanes that fit a terminal all together."""
    room = (console.height - 1) // len(speeds) - FRAMED if console.is_terminal else LINES
    lines = min(LINES, max(1, room))
    colours = {name: look.colour for name, look in looks(recording["source"]).items()}
    key = Text()
    for name, colour in colours.items():
        key.append(f"{name}  ", style=colour)
    key.append(f"{1000 * min(now, float(recording['seconds'].max())):.0f} ms")
    lanes = []
    for method, rows in groups_of(recording, "method"):
        there = rows[rows["seconds"] <= now]
        text = Text()
        for one in named_rows(there):
            text.append(one.token, style=colours[one.source])
        wrapped = text.wrap(console, max(1, console.width - 4))[-lines:]
        padded = [*wrapped, *[Text()] * (lines - len(wrapped))]
        said = speed_said(speeds[method]) if len(there) == len(rows) else f"{len(there)} tokens"
        lanes.append(
            Frame(
                Group(*padded),
                title=f"{method}: {said}",
                title_align="left",
                height=lines + FRAMED,
            )
        )
    return Group(key, *lanes)
