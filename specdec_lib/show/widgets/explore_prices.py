"""The explorer of machines: what every method would be worth at prices of one's own."""

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import plotly.graph_objects as go

from specdec_lib.measure.machine_prices import Machines
from specdec_lib.measure.price_map import CLAIMS, Priced, PricePoint, gains_over_plain, place_of
from specdec_lib.show import figures
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import choice, slider, turn_knob
from specdec_lib.show.widgets.machine_menu import MachineMenu, priced_panel
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import aligned_table

SIXTEENS = tuple(1 + step / 20 for step in range(61))
DRAFTS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3)
HOSTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
NEAR = 0.005  # of a gain from 1: neither pays nor costs


def price_explorer(
    races: Mapping[str, Priced],
    points: Mapping[str, PricePoint],
    *,
    machines: Machines | None = None,
    model: str = "draft",
    temperature: float | None = None,
) -> Panel:
    """Knobs over `figures.gains_by_method`: would it pay on my machine?

    races       counted rounds by the name of edition and sampler; the first to begin with
    points      machines by name, a button each that sets the prices to its own; the first to begin
                with
    machines    further ones, whose prices a menu offers; the first point is of its `given`
    model       the draft whose pass is the price of a draft, with what it takes to choose its
                guesses at a temperature, where one is given; as of `price_map.place_of`

    Raises ValueError if there is no race or no point.
    """
    if not races or not points:
        raise ValueError(
            f"prices need a race and a machine to begin with, got {len(races)} and {len(points)}"
        )
    starts = {name: _nearest(point) for name, point in points.items()}
    first = next(iter(starts.values()))
    menu = None if machines is None else MachineMenu(machines)
    places = _Places(starts, menu, model, temperature)

    def draw(race: str, sixteen: float, draft: float, host: float, **at: Any) -> Shown:
        point = PricePoint(sixteen, draft, host)
        figure, words = _gains(races[race], race, point)
        whose = places.whose({"sixteen": sixteen, "draft": draft}, at.get("machine"))
        return Shown((figure,), words + whose)

    rows = "a target pass over 16 rows, one over a single row being 1"
    cost = "a draft's pass, a target pass over one row being 1"
    outside = "seconds outside the models, times as measured; 0 where a graph runs whole rounds"
    knobs = {
        "race": choice(races, "target, sampling and so the settings", label="settings of"),
        "sixteen": slider(SIXTEENS, first["sixteen"], rows, "16 rows"),
        "draft": slider(DRAFTS, first["draft"], cost, "draft pass"),
        "host": slider(HOSTS, first["host"], outside, "host's seconds"),
    }
    return priced_panel(
        menu,
        knobs,
        draw,
        fit=places.fit,
        bookmark=Bookmark("08_other_machines", named=("host",)),
        presets=starts,
    )


def _gains(priced: Priced, race: str, point: PricePoint) -> tuple[go.Figure, str]:
    """The gains of every method, and as HTML the verdict and what becomes of each claim."""
    gains = gains_over_plain(priced, point)
    best = gains.idxmax()
    verdict = f"Speculate: {best} would be {gains.max():.2f} times as fast as plain decoding."
    if gains.max() <= 1:
        verdict = "Do not speculate: no method would be faster than plain decoding."
    rows = [_said(claim, priced.gain(*pair, point)) for claim, pair in CLAIMS.items()]
    table = aligned_table(("claim", "gain", "there it"), rows, digits=3, words=(2,))
    title = f"Predicted speed-ups, settings of {race}: {gains.max():.2f} at best"
    return figures.gains_by_method(gains, title=title), f"<b>{verdict}</b>{table}"


class _Places(NamedTuple):
    """Prices by the name of a point or of a machine, at the knobs' values."""

    points: Mapping[str, Mapping[str, float]]
    menu: MachineMenu | None
    model: str
    temperature: float | None

    def of_machine(self, name: str) -> dict[str, float]:
        """The prices of a machine in the menu."""
        assert self.menu is not None  # only its machines are asked for
        machines = self.menu.machines
        passes = machines.passes(name)
        place = place_of(passes, machines.edition, self.model, self.temperature)
        found = _nearest(place)
        return {one: found[one] for one in ("sixteen", "draft")}

    def fit(self, made: Mapping[str, Any]) -> None:
        """Set the prices of the machine that was turned to."""
        name = None if self.menu is None else self.menu.moved()
        if name:
            for one, value in self.of_machine(name).items():
                turn_knob(made[one], value)

    def whose(self, at: Mapping[str, float], machine: str | None) -> str:
        """Whose prices these are, as HTML."""
        named = [name for name, point in self.points.items() if at.items() <= point.items()]
        said = ", ".join(named) or "set by hand"
        if self.menu is not None and machine:
            if at == self.of_machine(machine):
                said = self.menu.describe(machine)
        return f"Prices: {html.escape(said)}."


def _said(claim: str, gain: float) -> tuple[str, float, str]:
    word = "pays" if gain > 1 + NEAR else "costs" if gain < 1 - NEAR else "makes no difference"
    return claim, gain, word


def _nearest(point: PricePoint) -> dict[str, float]:
    """The knobs' values that are nearest to a machine's."""
    values = {"sixteen": SIXTEENS, "draft": DRAFTS, "host": HOSTS}
    found = {}
    for name, steps in values.items():
        own = getattr(point, name)
        found[name] = min(steps, key=lambda step, own=own: abs(step - own))
    return found
