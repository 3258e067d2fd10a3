"""The explorer of cascades: order, K matrix, lenience, prices, known settings and the tuner."""

import html
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, NamedTuple

import ipywidgets
import pandas as pd

from specdec_lib.drafts.cascade import Convention, converted
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting
from specdec_lib.measure.cascade.tune import LENGTHS, LENIENCES, Tuned, widen
from specdec_lib.measure.machine import HERE
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.show import figures
from specdec_lib.show.figures.chart import named_rows
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import Values, choice, push_button, slider, turn_knob
from specdec_lib.show.widgets.machine_menu import MachineMenu, priced_panel
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import aligned_table, status

Prices = Mapping[str, float]
Evaluate = Callable[[CascadeSetting, Prices, str], pd.DataFrame]

PRICES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
TARGET = "target"
ARROW = " ← "
CONVENTIONS: dict[Convention, str] = {
    "increments": "as set: tokens added",
    "cumulative": "as in the paper: tokens so far",
}
TUNES = "looks for the setting of this order with the largest SWI, at these prices, on these texts"
TUNE_SECONDS = 3.0


def cascade_explorer(
    evaluate: Evaluate,
    drafters: Sequence[str],
    *,
    prices: Prices,
    start: CascadeSetting,
    texts: Sequence[str],
    presets: Mapping[str, CascadeSetting | Prices],
    tune: Callable[..., Tuned],
    machines: Machines | None = None,
) -> Panel:
    """Knobs for a cascade over `figures.rivals`: its order, an entry of the K matrix each (k00,
    k01, …: row, column), lenience, exempt, what a pass of each model costs (price_…), and texts.

    evaluate    as `cascade.Replays.beside`; the message of its ValueError is shown
    drafters    their names, strongest first; Max-Gram stays last in every order
    prices      at first, of a pass over that of a target pass
    start       the setting at first, in increments
    texts       names that `evaluate` knows
    presets     buttons by name, each for a setting or for prices
    tune        as `cascade.Replays.tune`, of which the best within TUNE_SECONDS is shown
    machines    whose prices a menu offers; the prices at first are those of its `given`

    Raises ValueError if there is no drafter or text, or a setting or prices that the knobs cannot
    be at.
    """
    if not drafters or not texts:
        raise ValueError(
            "the explorer needs a drafter and texts, got"
            f" {len(drafters)} drafters and {len(texts)} texts"
        )
    menu = None if machines is None else MachineMenu(machines, given=True)
    cascade = _Cascade(evaluate, tune, tuple(drafters), prices, menu)
    turns = {name: cascade.values_of(one) for name, one in presets.items()}
    button = push_button("tune", lambda: cascade.turn_to_best(panel), TUNES)
    knobs = cascade.knobs() | {"texts": choice(texts), "tune": button}
    panel = priced_panel(
        menu,
        knobs,
        cascade.draw,
        fit=cascade.fit,
        bookmark=Bookmark("04_cascade_tuning", more=_parameters),
        start=cascade.values_of(start),
        presets=turns,
    )
    return panel


def _parameters(at: Values) -> dict[str, object]:
    """The parameter of notebook 04 that sets prices, where they are a stored machine's."""
    machine = at.get("machine", HERE)
    return {} if machine == HERE else {"machine": machine}


class _Cascade(NamedTuple):
    """Values of the knobs as a setting, prices and texts, and what is drawn and tuned of them."""

    evaluate: Evaluate
    tune: Callable[..., Tuned]
    drafters: tuple[str, ...]
    prices: Prices
    menu: MachineMenu | None = None

    @property
    def entries(self) -> dict[str, tuple[int, int]]:
        """Row and column of each entry of the K matrix that may be set, by its knob's name."""
        size = range(len(self.drafters))
        return {f"k{row}{column}": (row, column) for row in size for column in size[row:]}

    def values_of(self, wanted: CascadeSetting | Prices) -> dict[str, Any]:
        """The knobs' values for a setting or for prices; ValueError if an entry below the diagonal
        is not 0, or a model has no price of 0 or more.
        """
        if not isinstance(wanted, CascadeSetting):
            models = [name for name in self.drafters if name != MAX_GRAM]
            for name in models:
                if not wanted.get(name, -1) >= 0:
                    raise ValueError(
                        f"a price of 0 or more is needed for every model, {name} has none in"
                        f" {dict(wanted)}"
                    )
            return {f"price_{name}": wanted[name] for name in models}
        whole = widen(wanted, self.drafters)
        if any(any(entries[:row]) for row, entries in enumerate(whole.matrix)):
            raise ValueError(f"a K matrix is upper triangular, got {whole.matrix}")
        entries = {name: whole.matrix[row][column] for name, (row, column) in self.entries.items()}
        rest = {"lenience": whole.lenience, "exempt": whole.exempt_max_gram}
        return {"order": whole.drafters} | entries | rest

    def meaning(self, values: Values) -> tuple[CascadeSetting, Prices, str]:
        """The setting, the prices and the name of the texts for the knobs' values."""
        size = range(len(self.drafters))
        matrix = tuple(tuple(values.get(f"k{row}{column}", 0) for column in size) for row in size)
        setting = CascadeSetting(values["order"], matrix, values["lenience"], values["exempt"])
        prices = {name: values.get(f"price_{name}", price) for name, price in self.prices.items()}
        return setting, prices, values["texts"]

    def knobs(self) -> dict[str, ipywidgets.DOMWidget]:
        """The knobs of a setting and of prices."""
        orders = [one for one in permutations(self.drafters) if MAX_GRAM not in one[:-1]]
        found: dict[str, ipywidgets.DOMWidget] = {
            "order": choice(orders, named=lambda order: ARROW.join((TARGET, *order)))
        }
        tip = "tokens that one model wants of the other"
        found |= {name: slider(LENGTHS, 0, f"{name.upper()}: {tip}") for name in self.entries}
        tip = "how many times less likely a reviewed token may be"
        found["lenience"] = slider(LENIENCES, 1.0, tip)
        exempt = f"{MAX_GRAM}'s reviewer is never lenient"
        found["exempt"] = ipywidgets.Checkbox(True, description=exempt, indent=False)
        for name, price in self.values_of(self.prices).items():
            label = f"price of {name.removeprefix('price_')}"
            tip = f"{label}'s pass, a target pass being 1; {price:.3g} at first"
            found[name] = slider(PRICES, price, tip, label)
        return found

    def fit(self, made: Mapping[str, Any]) -> None:
        """Label the entries of K, and let prices be those of the machine that was turned to."""
        self.label_entries(made)
        name = None if self.menu is None else self.menu.moved()
        if name is not None:
            for knob, price in self.values_of(self.prices_of(name)).items():
                turn_knob(made[knob], price)

    def prices_of(self, name: str) -> Prices:
        """The prices of a machine in the menu: what the caller gave, or its pass times."""
        assert self.menu is not None  # only its machines are asked for
        machines = self.menu.machines
        if name == machines.given:
            return self.prices
        timed = machines.one_row_prices(name)
        return {model: timed[model] for model in self.prices if model in timed}

    def label_entries(self, made: Mapping[str, Any]) -> None:
        """Label each entry of the K matrix with its reviewer and its drafter."""
        models = (TARGET, *made["order"].value)
        for name, (row, column) in self.entries.items():
            made[name].description = f"{models[row]}{ARROW}{models[column + 1]}"
            made[name].style.description_width = "11em"  # of "middle ← Max-Gram"

    def draw(self, **values: Any) -> Shown:
        """The figure of a setting; above, its K matrix in both conventions and what it is worth."""
        setting, prices, texts = self.meaning(values)
        table = self.evaluate(setting, prices, texts)
        exempt = setting.exempt_max_gram
        parts = [ARROW.join((TARGET, *setting.drafters)), f"lenience {setting.lenience:g}"]
        parts += [f"{MAX_GRAM}'s reviewer exempt"] * (exempt and setting.lenience > 1) + [texts]
        words = [_matrices(setting), _beside(table), self.whose(prices, values.get("machine"))]
        figure = figures.rivals(table, title=", ".join(parts))
        return Shown((figure,), "".join(words))

    def whose(self, prices: Prices, name: str | None) -> str:
        """Whose prices these are, as HTML."""
        shown = ", ".join(f"{model} {prices[model]:.3g}" for model in prices if model != TARGET)
        said = f"Prices, in passes of the target: {html.escape(shown)}"
        if self.menu is None or name is None:
            return f"{said}."
        theirs = self.prices_of(name)
        named = html.escape(self.menu.describe(name))
        if all(math.isclose(prices[model], theirs[model], rel_tol=1e-6) for model in theirs):
            return f"{said}; those of {named}."
        shown = ", ".join(f"{model} {theirs[model]:.3g}" for model in theirs if model != TARGET)
        return f"{said}; set by hand, where {named}, has {html.escape(shown)}."

    def turn_to_best(self, panel: Panel) -> None:
        """Run the tuner from where the knobs are, and turn them to its answer."""
        tried: dict[CascadeSetting, float] = {}
        began = time.perf_counter()
        end = "stopped there: press again to go on"

        def tell(setting: CascadeSetting, swi: float) -> None:
            tried[setting] = swi
            if time.perf_counter() - began > TUNE_SECONDS:
                raise TimeoutError

        with panel.at_work():
            setting, prices, texts = self.meaning(panel.values())
            with suppress(TimeoutError):
                tell(setting, float(self.evaluate(setting, prices, texts).swi.iloc[0]))
                self.tune(setting.drafters, prices, texts, starts=[setting], tell=tell)
                end = "no change of one entry or of lenience is better"
            panel.turn(**self.values_of(max(tried, key=tried.__getitem__)))
            took = f"{len(tried)} settings tried in {time.perf_counter() - began:.1f} s"
            panel.words.value += status(f"<p>the best of {took}, on these very texts; {end}</p>")


def _matrices(setting: CascadeSetting) -> str:
    """The K matrix in both conventions, as HTML."""
    found = []
    for to, words in CONVENTIONS.items():
        matrix = converted(setting.matrix, "increments", to)
        rows = [
            (reviewer, *lengths)
            for reviewer, lengths in zip((TARGET, *setting.drafters[:-1]), matrix, strict=True)
        ]
        found.append(aligned_table((words, *setting.drafters), rows))
    return f'<div style="display:flex;flex-wrap:wrap;gap:4px 40px">{"".join(found)}</div>'


def _beside(table: pd.DataFrame) -> str:
    """What the first row is worth, alone and against each of the others, as HTML."""
    ours, *others = named_rows(table)
    rows = [("this setting", ours.swi, _ends(ours.low, ours.high), "", "", "")]
    for one in others:
        word = "worse" if one.ratio_high < 1 else "within the noise"
        word = "better" if one.ratio_low > 1 else word
        word = "too few texts for an interval" if math.isnan(one.ratio_low) else word
        apart = _ends(one.ratio_low, one.ratio_high)
        rows.append((one.setting, one.swi, _ends(one.low, one.high), one.ratio, apart, word))
    times = "this setting ÷ it"
    heads = (f"over {ours.texts} texts", "SWI", "95 %", times, "95 %", "this setting is")
    return aligned_table(heads, rows, words=(5,))


def _ends(low: float, high: float) -> str:
    """An interval's ends, where there are any."""
    return "–" if math.isnan(low) else f"{low:.2f}–{high:.2f}"
