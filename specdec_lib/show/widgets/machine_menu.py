"""Whose prices an explorer uses: a menu of machines, and a button that times this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import ipywidgets

from specdec_lib.measure.machine import HERE
from specdec_lib.measure.machine_prices import SECONDS, Machines
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import Values, choice, push_button
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import progress

NOBODY = ""  # of the menu, where these models were timed nowhere
LABELS = {HERE: "this machine", NOBODY: "no machine"}
TIP = "whose seconds of a pass the predictions rest on"
TIME = "time this machine"
TIMES = f"times passes of these models here, for about {SECONDS:.0f} seconds, and keeps them"
UNTIMED = (
    "No speed-up is predicted: these models were timed on no machine yet. The button"
    f' "{TIME}" times them here, in about {SECONDS:.0f} seconds.'
)


class MachineMenu:
    """A menu of the machines whose prices are known, and a button that times this one.

    given    whether the caller has prices of `machines.given` of its own, so that this machine is
             offered even if nothing is stored of it

    Raises ValueError for a machine by name of which nothing is stored.
    """

    def __init__(self, machines: Machines, *, given: bool = False) -> None:
        self.machines = machines
        self.given = given
        self._seen = self._begins = self._first()
        self.menu = choice(self._names(), TIP, label="prices of", named=machine_label)
        self._panel: Panel | None = None
        self.button = push_button(TIME, self.time_here, TIMES)

    def _first(self) -> str:
        """Where the menu stands before this machine's own prices are asked for."""
        names = self.machines.names()
        if self.given or self.machines.given in names:
            return self.machines.given
        asked = self.machines.machine and self.machines.are_stored
        if asked and self.machines.start != HERE:
            self.machines.passes(self.machines.given)  # says what is stored
        return self.machines.start

    def _names(self) -> list[str]:
        return [*dict.fromkeys([self._begins, *self.machines.names()])]

    def describe(self, name: str) -> str:
        """Whose prices these are, in words."""
        if self.given and name == self.machines.given:
            return name
        return self.machines.describe(name)

    def moved(self) -> str | None:
        """The machine that the menu was turned to since this was last asked; else None."""
        name = self.menu.value
        if name == self._seen:
            return None
        self._seen = name
        return name

    def settle(self, panel: Panel) -> Panel:
        """The panel with this menu, which begins with this machine's prices where they are known
        and no other machine's were asked for.
        """
        self._panel = panel
        start = self.machines.start
        if start == HERE != self.menu.value:
            panel.settle(machine=HERE)
        return panel

    def time_here(self) -> None:
        """Time this machine, and turn the menu to it."""
        panel = self._panel
        assert panel is not None  # the button is on it
        self.button.disabled = True  # else a second press would wait, and time once more
        try:
            with panel.at_work():
                self.machines.time_here(partial(_tell, panel))
                self.menu.options = [(machine_label(name), name) for name in self._names()]
                self._seen = NOBODY  # whose prices may have changed though it is the same machine
                panel.turn(machine=HERE)
        finally:
            self.button.disabled = False


def priced_panel(
    menu: MachineMenu | None,
    knobs: Mapping[str, ipywidgets.DOMWidget],
    draw: Callable[..., Shown],
    *,
    fit: Callable[[Mapping[str, Any]], None],
    bookmark: Bookmark,
    start: Values | None = None,
    presets: Mapping[str, Values] | None = None,
    heights: Sequence[int] = (),
) -> Panel:
    """A panel with the menu as its knob `machine` and the button beside the presets; without a menu
    it has neither. The other arguments are as of `Panel`.
    """
    actions = {}
    if menu is not None:
        knobs = {**knobs, "machine": menu.menu}
        actions["time"] = menu.button
        bookmark = replace(bookmark, always=(*bookmark.always, "machine"))
    panel = Panel(
        knobs,
        draw,
        start=start,
        fit=fit,
        presets=presets,
        actions=actions,
        bookmark=bookmark,
        heights=heights,
    )
    return panel if menu is None else menu.settle(panel)


def machine_label(name: str) -> str:
    """A machine in the menu."""
    return LABELS.get(name, name)


def _tell(panel: Panel, share: float) -> None:
    panel.working.value = progress("timing this machine …", share)
