"""The explorer of cascades: order, K matrix, lenience, prices, known settings and the tuner."""

import html
import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import pandas as pd

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.intervals import with_interval
from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, Tuned, widen
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import Knob, check_box, choice, push_button, slider
from specdec_lib.show.widgets.panel import Panel, Shown, Values, refusal_html, status

Prices = Mapping[str, float]
Evaluate = Callable[[CascadeSetting, Prices, str], pd.DataFrame]

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)  # what an entry may be
PRICES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)
TARGET, ARROW = "target", " ← "
WIDE = "11em"  # of "middle ← Max-Gram"
ENTRY = "tokens that one model wants of the other"
LENIENCE = "how many times less likely a reviewed token may be"
CONVENTIONS = {"increments": "as set: tokens added", "cumulative": "as in the paper: tokens so far"}
TUNES = "looks for the setting of this order with the largest SWI, at these prices, on these texts"
TUNE_SECONDS = 3.0
TOLD = 20  # settings between two messages of the tuner


def cascade_explorer(
    evaluate: Evaluate,
    drafters: Sequence[str],
    *,
    prices: Prices,
    start: CascadeSetting,
    texts: Sequence[str],
    presets: Mapping[str, CascadeSetting | Prices],
    tune: Callable[..., Tuned],
) -> Panel:
    """Knobs for a cascade over `figures.rivals`: its order, an entry of the K matrix each,
    lenience, and what a pass of each model costs.

    evaluate    as `replay.Replays.beside`; the message of its ValueError is shown
    drafters    their names, strongest first; Max-Gram stays last in every order
    prices      of a pass over that of a target pass, at which the price knobs start
    start       the setting at first, in increments
    texts       names that `evaluate` knows
    presets     buttons by name, each for a setting or for prices
    tune        as `replay.Replays.tune`; its button turns the knobs to the answer, or to the best
                setting that was tried within TUNE_SECONDS

    The knobs are order, k00, k01, … (row, column), lenience, exempt, price_<model>, and texts.
    Raises ValueError if there is no drafter or text, or the knobs do not offer a setting or price
    at the start or of a preset.
    """
    if not drafters or not texts:
        got = f"{len(drafters)} drafters and {len(texts)} texts"
        raise ValueError(f"the explorer needs a drafter and texts, got {got}")
    cascade = _Cascade(evaluate, tune, tuple(drafters), prices)
    turns = {name: cascade.values_of(one) for name, one in presets.items()}
    for name in texts:
        evaluate(start, prices, name)  # it remembers these texts, and is quick from now on
    button = push_button("tune", lambda: cascade.turn_to_best(panel), TUNES)
    knobs = cascade.knobs() | {"texts": choice(texts), "tune": button}
    look = {"fit": cascade.label_entries, "presets": turns}
    panel = Panel(knobs, cascade.draw, start=cascade.values_of(start), **look)
    return panel


class _Cascade(NamedTuple):
    """Values of the knobs as a setting, prices and texts, and what is drawn and tuned of them."""

    evaluate: Evaluate
    tune: Callable[..., Tuned]
    drafters: tuple[str, ...]
    prices: Prices

    @property
    def entries(self) -> dict[str, tuple[int, int]]:
        """Row and column of each entry of the K matrix that may be set, by its knob's name."""
        size = range(len(self.drafters))
        return {f"k{row}{column}": (row, column) for row in size for column in size[row:]}

    def values_of(self, wanted: CascadeSetting | Prices) -> dict[str, Any]:
        """The knobs' values for a setting or for prices.  Raises ValueError if an entry below the
        diagonal is not 0, or a model has no price of 0 or more.
        """
        if not isinstance(wanted, CascadeSetting):
            models = [name for name in self.drafters if name != MAX_GRAM]
            if missing := [name for name in models if not wanted.get(name, -1) >= 0]:
                got = f"{', '.join(missing)} has none in {dict(wanted)}"
                raise ValueError(f"a price of 0 or more is needed for {', '.join(models)}, {got}")
            return {f"price_{name}": wanted[name] for name in models}
        whole = widen(wanted, self.drafters)
        if any(any(entries[:row]) for row, entries in enumerate(whole.matrix)):
            raise ValueError(f"a K matrix is upper triangular, got {whole.matrix}")
        entries = {name: whole.matrix[row][column] for name, (row, column) in self.entries.items()}
        rest = {"lenience": whole.lenience, "exempt": whole.exempt_max_gram}
        return {"order": whole.drafters} | entries | rest

    def meaning(self, values: Values) -> tuple[CascadeSetting, dict[str, float], str]:
        """The setting, the prices and the name of the texts for the knobs' values."""
        size = range(len(self.drafters))
        matrix = tuple(tuple(values.get(f"k{row}{column}", 0) for column in size) for row in size)
        setting = CascadeSetting(values["order"], matrix, values["lenience"], values["exempt"])
        prices = {name: values.get(f"price_{name}", price) for name, price in self.prices.items()}
        return setting, prices, values["texts"]

    def knobs(self) -> dict[str, Knob]:
        """The knobs of a setting and of prices."""
        orders = [one for one in permutations(self.drafters) if MAX_GRAM not in one[:-1]]
        whole = lambda order: ARROW.join((TARGET, *order))  # noqa: E731
        found = {"order": choice(orders, named=whole)}
        for name in self.entries:
            found[name] = slider(LENGTHS, 0, f"{name.upper()}: {ENTRY}")
        found["lenience"] = slider(LENIENCES, 1.0, LENIENCE)
        found["exempt"] = check_box(True, f"{MAX_GRAM}'s reviewer is never lenient")
        for name, price in self.values_of(self.prices).items():
            label = f"price of {name.removeprefix('price_')}"
            tip = f"{label}'s pass, a target pass being 1; {price:.3g} at first"
            found[name] = slider(PRICES, price, tip, digits=".3g", label=label, widen=True)
        return found

    def label_entries(self, made: Mapping[str, Any]) -> None:
        """Label each entry of the K matrix with its reviewer and its drafter."""
        models = (TARGET, *made["order"].value)
        for name, (row, column) in self.entries.items():
            made[name].description = f"{models[row]}{ARROW}{models[column + 1]}"
            made[name].style.description_width = WIDE

    def draw(self, **values: Any) -> Shown:
        """The figure of one setting and the words over it: its K matrix in both conventions, and
        what it is worth.
        """
        setting, prices, texts = self.meaning(values)
        table, models = self.evaluate(setting, prices, texts), (TARGET, *setting.drafters)
        exempt = setting.exempt_max_gram and setting.lenience > 1
        parts = [ARROW.join(models), f"lenience {setting.lenience:g}"]
        parts += [f"{MAX_GRAM}'s reviewer exempt"] * exempt + [texts]
        heads = "".join(f"{name:34}" for name in CONVENTIONS.values())
        lines = [f"{'K, a row per reviewer':24}{heads}"]
        both = [converted(setting.matrix, "increments", name) for name in CONVENTIONS]
        for reviewer, *rows in zip(models, *both, strict=False):
            cells = ("".join(f"{entry:4}" for entry in row) for row in rows)
            lines.append(f"{reviewer:24}" + "".join(f"{one:34}" for one in cells))
        words = html.escape("\n".join([*lines, "", *_verdicts(table)]))
        return Shown((figures.rivals(table, title=", ".join(parts)),), f"<pre>{words}</pre>")

    def turn_to_best(self, panel: Panel) -> None:
        """Run the tuner from where the knobs are, say how far it is, and turn to its answer."""
        setting, prices, texts = self.meaning(panel.values())
        tried: list[tuple[float, CascadeSetting]] = []
        began, end = time.perf_counter(), "no change of one entry or of lenience is better"

        def report(setting: CascadeSetting, swi: float) -> None:
            tried.append((swi, setting))
            if len(tried) % TOLD == 1:
                most = max(swi for swi, _ in tried)
                words = f"tuning: {len(tried)} settings tried, SWI {most:.3f} so far"
                panel.words.value = status(f"<p>{words}</p>")
            if time.perf_counter() - began > TUNE_SECONDS:
                raise TimeoutError

        panel.knobs["tune"].disabled = True
        choices = {"lengths": LENGTHS, "leniences": LENIENCES, "starts": [setting]}
        try:
            report(setting, float(self.evaluate(setting, prices, texts).swi.iloc[0]))
            best = self.tune(setting.drafters, prices, texts, **choices, tell=report).setting
        except TimeoutError:
            best = max(tried, key=lambda one: one[0])[1]
            end = "stopped there: press again to go on"
        except ValueError as problem:
            panel.words.value = refusal_html(problem)
            return
        finally:
            panel.knobs["tune"].disabled = False
        panel.turn(**self.values_of(best))
        took = f"{len(tried)} settings tried in {time.perf_counter() - began:.1f} s"
        panel.words.value += status(f"<p>the best of {took}, on these very texts; {end}</p>")


def _verdicts(table: pd.DataFrame) -> list[str]:
    """What the first row is worth, alone and against each of the others."""
    ours, *others = table.itertuples()
    found = with_interval(ours.swi, ours.low, ours.high)
    lines = [f"SWI {found} over {ours.texts} texts"]
    for one in others:
        word = "worse" if one.ratio_high < 1 else "within the noise"
        word = "better" if one.ratio_low > 1 else word
        word = "from too few texts for an interval" if math.isnan(one.ratio_low) else word
        ratio = with_interval(one.ratio, one.ratio_low, one.ratio_high)
        lines.append(f"{ratio} times that of {one.setting}: {word}")
    return lines
