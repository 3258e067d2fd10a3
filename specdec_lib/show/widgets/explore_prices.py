"""The explorer of machines: what every method would be worth at prices of one's own."""

from collections.abc import Mapping

from specdec_lib.measure.price_map import CLAIMS, Priced, PricePoint, gains_over_plain
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import choice, slider
from specdec_lib.show.widgets.panel import Panel, Shown, bullets

SIXTEENS = tuple(1 + step / 20 for step in range(61))
DRAFTS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3)
HOSTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
NEAR = 0.005  # of a gain from 1: neither pays nor costs


def price_explorer(races: Mapping[str, Priced], machines: Mapping[str, PricePoint]) -> Panel:
    """Knobs over `figures.gains_by_method`: would it pay on my machine?

    races       counted rounds by the name of edition and sampler; the first to begin with
    machines    by name, a button each that sets the prices to its own; the first to begin with

    Raises ValueError if there is no race or no machine.
    """
    if not races or not machines:
        raise ValueError(
            f"prices need a race and a machine to begin with, got {len(races)} and {len(machines)}"
        )
    starts = {name: _nearest(point) for name, point in machines.items()}
    first = next(iter(starts.values()))

    def draw(race: str, sixteen: float, draft: float, host: float) -> Shown:
        priced, point = races[race], PricePoint(sixteen, draft, host)
        gains = gains_over_plain(priced, point)
        best = gains.idxmax()
        title = f"Predicted speed-ups, settings of {race}: {gains.max():.2f} at best"
        verdict = f"Speculate: {best} would be {gains.max():.2f} times as fast as plain decoding"
        if gains.max() <= 1:
            verdict = "Do not speculate: no method would be faster than plain decoding"
        lines = [_said(claim, priced.gain(*pair, point)) for claim, pair in CLAIMS.items()]
        figure = figures.gains_by_method(gains, title=title)
        return Shown((figure,), bullets(lines, verdict))

    rows = "a target pass over 16 rows, one over a single row being 1"
    cost = "a draft's pass, a target pass over one row being 1"
    outside = "seconds outside the models, times as measured; 0 where a graph runs whole rounds"
    knobs = {
        "race": choice(races, "target, sampling and so the settings", label="settings of"),
        "sixteen": slider(SIXTEENS, first["sixteen"], rows, "16 rows"),
        "draft": slider(DRAFTS, first["draft"], cost, "draft pass"),
        "host": slider(HOSTS, first["host"], outside, "host's seconds"),
    }
    return Panel(knobs, draw, presets=starts)


def _said(claim: str, gain: float) -> str:
    word = "pays" if gain > 1 + NEAR else "costs" if gain < 1 - NEAR else "makes no difference"
    return f"{claim}: {gain:.3f}, {word}"


def _nearest(point: PricePoint) -> dict[str, float]:
    """The knobs' values that are nearest to a machine's."""
    values = {"sixteen": SIXTEENS, "draft": DRAFTS, "host": HOSTS}
    found = {}
    for name, steps in values.items():
        own = getattr(point, name)
        found[name] = min(steps, key=lambda step, own=own: abs(step - own))
    return found
