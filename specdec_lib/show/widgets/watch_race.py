"""The race to watch: a request of one's own, answered by five methods on this machine, and shown
side by side at the pace at which they wrote.
"""

import html
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import ipywidgets
import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.options import RACE_REQUEST, RACE_TOKENS
from specdec_lib.measure.quiet import SPARE
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.settings.ladder_drafts import EDITIONS, with_int8_drafts
from specdec_lib.measure.watching import race_speeds, record_race
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import as_fast
from specdec_lib.show import figures
from specdec_lib.show.figures.chart import named_rows
from specdec_lib.show.racing import race_page, speed_said
from specdec_lib.show.saving import still
from specdec_lib.show.widgets.knobs import TEMPERATURES, TOP_KS, choice, push_button, slider
from specdec_lib.show.widgets.panel import GRID, ROW, label_knob
from specdec_lib.show.widgets.words import alert, status
from specdec_lib.workload import Ladder

PACES = {"as fast as it was": 1.0, "half as fast": 2.0, "a quarter": 4.0, "a tenth": 10.0}
LENGTHS = (32, 64, 96, 128, 192, 256)


class RacePanel(ipywidgets.VBox):
    """A request and how it is sampled, a button that lets five methods answer it one after the
    other, and the race between them, again as often as one likes. Before the first run it shows a
    stored recording, if there is one.

    ladder      of the models; the target's edition is a knob where it runs on the fast runtime
    recorded    as `record_race` gives it
    """

    def __init__(self, ladder: Ladder, recorded: pd.DataFrame | None = None) -> None:
        self._ladder = cache(lambda edition: _in_edition(ladder, edition))
        asked = RACE_REQUEST if recorded is None else recorded["request"].iloc[0]
        target = ladder.target
        self.knobs = _knobs(asked, target.edition if isinstance(target, FastModel) else "")
        self.pace: Any = ipywidgets.ToggleButtons(options=PACES, tooltip="how fast it is shown")
        self.pace.observe(lambda _: self.show(), names="value")
        self.race = push_button("race on this machine", self.run, "runs all five methods")
        self.again = push_button("show again", self.show, "the same recording")
        self.words = ipywidgets.HTML()
        self.view = ipywidgets.HTML()
        self.recording = recorded
        grid = ipywidgets.GridBox(list(self.knobs.values()), layout=GRID)
        row = ipywidgets.HBox([self.race, self.again, self.pace], layout=ROW)
        super().__init__([grid, row, self.words, self.view])
        self.add_class("specdec-race-panel")
        self.show()

    def run(self) -> None:
        """Let all methods answer the request, and show the race; a ValueError is shown instead."""
        at = {name: knob.value for name, knob in self.knobs.items()}
        temperature = at["temperature"]
        with self._at_work():
            sampler = Sampler(temperature, top_k=at["top_k"] if temperature else None)
            self.recording = record_race(
                self._ladder(at.get("edition", "")),
                at["request"],
                sampler,
                seed=at["seed"],
                max_new_tokens=at["tokens"],
                say=lambda method: self._say(f"{method} is writing …"),
            )
            self.show()

    def show(self) -> None:
        """Show the present recording from its beginning; without one, say how to make it."""
        if self.recording is None:
            self._say("Press “race on this machine”: each method answers once, by itself.")
            return
        self._say(_whose(self.recording))
        self.view.value = ""  # a page that is equal would not be drawn, and so not move, again
        self.view.value = race_page(self.recording, slower=self.pace.value)

    def _say(self, words: str) -> None:
        self.words.value = status(html.escape(words))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Meanwhile nothing moves and no button works: drawing would disturb the clock."""
        self.view.value = ""
        for button in (self.race, self.again):
            button.disabled = True
        try:
            yield
        except ValueError as problem:
            self.words.value = alert(str(problem))
        finally:
            for button in (self.race, self.again):
                button.disabled = False

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the race half way, and its result."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        if self.recording is None:
            return bundle | {"text/plain": "a race to watch (it needs a running notebook)"}
        speeds = named_rows(race_speeds(self.recording))
        said = "; ".join(f"{one.method}: {speed_said(one)}" for one in speeds)
        text = f"a race to watch (it needs a running notebook); {said}"
        half = self.recording.groupby("method").seconds.max().min() / 2
        return bundle | {"text/plain": text} | still(figures.race_moment(self.recording, at=half))


def race_to_watch(ladder: Ladder, recorded: pd.DataFrame | None = None) -> RacePanel:
    """Five methods answer a request of one's own, each alone on this machine, and are shown side by
    side; see `RacePanel`.
    """
    return RacePanel(ladder, recorded)


def _knobs(asked: str, edition: str) -> dict[str, Any]:
    """The request, how it is sampled, and the target's edition, unless that is ""."""
    kept = "tokens that keep their probability; greedily it changes nothing"
    own = ipywidgets.Textarea(
        value=asked,
        placeholder=f"such as: {RACE_REQUEST}",
        description="your request",
        tooltip="what all five methods answer",
        rows=3,
    )
    knobs: dict[str, Any] = {
        "request": own,
        "temperature": slider(TEMPERATURES, 0.0, "of the target's distribution; 0 is greedy"),
        "top_k": choice(TOP_KS, kept, label="top-k", named=TOP_KS.__getitem__),
        "seed": slider(range(20), 0, "of all noise"),
        "tokens": slider(LENGTHS, RACE_TOKENS, "new ones, at most"),
    }
    if edition:
        offered = dict.fromkeys([edition, *EDITIONS])
        knobs["edition"] = choice(offered, "of the target; int8 is another model")
    knobs["top_k"].index = 0  # a menu at the value None would choose nothing
    for name, knob in knobs.items():
        label_knob(knob, name)
    return knobs


def _in_edition(ladder: Ladder, edition: str) -> Ladder:
    """The ladder with quick drafts, and a target of that edition; "" leaves it as it is."""
    if edition and edition != getattr(ladder.target, "edition", ""):
        ladder = replace(ladder, target=as_fast(ladder.target, edition))
    return with_int8_drafts(ladder)


def _whose(recording: pd.DataFrame) -> str:
    """Where and when it was recorded, and what disturbed it."""
    first = recording.iloc[0]
    here = first.machine == machine_name()
    place = "this machine" if here else f"another machine ({first.machine})"
    sampling = sampling_of(float(first.temperature), float(first.top_k) or None)
    words = f"Recorded on {place}, {first.date}: {first.model}, {first.edition}, {sampling}."
    others = recording["cores"].max() - first.threads
    if others > SPARE:
        words += f" Other programs kept {others:.1f} cores busy meanwhile: race again without them."
    return words
