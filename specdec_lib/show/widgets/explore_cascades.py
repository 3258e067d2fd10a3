"""The explorer of cascades: order, K matrix, lenience, prices, known settings and the tuner."""

import html
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import ipywidgets
import pandas as pd

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.intervals import with_interval
from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, Tuned, widen
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import check_box, choice, make_knobs, slider
from specdec_lib.show.widgets.panel import Panel, Shown, refusal_html, status

Prices = Mapping[str, float]
Evaluate = Callable[[CascadeSetting, Prices, str], pd.DataFrame]
Tune = Callable[..., Tuned]

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)  # what an entry may be
PRICES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)
TARGET = "target"
WIDE = "11em"  # of "middle ← Max-Gram"
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
    tune: Tune,
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
    knobs = CascadeKnobs(tuple(drafters), dict(prices), tuple(texts))
    at = knobs.values_of(start)
    turns = {name: knobs.values_of(one) for name, one in presets.items()}
    for name in texts:
        evaluate(start, prices, name)  # it remembers these texts, and is quick from now on
    button = ipywidgets.Button(description="tune", tooltip=TUNES)
    made = knobs.widgets(at, turns.values()) | {"tune": button}
    panel = Panel(made, partial(_draw, knobs, evaluate), presets=turns)
    button.on_click(partial(_turn_to_best, panel, knobs, evaluate, tune))
    return panel


@dataclass(frozen=True)
class CascadeKnobs:
    """Maps widget values to a CascadeSetting, prices and texts, and back.

    All fields are those of `cascade_explorer`.  Raises ValueError if there is no drafter or text.
    """

    drafters: tuple[str, ...]
    prices: Prices
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.drafters or not self.texts:
            raise ValueError(
                f"the explorer needs a drafter and texts, got {len(self.drafters)} drafters and"
                f" {len(self.texts)} texts"
            )

    @property
    def entries(self) -> dict[str, tuple[int, int]]:
        """Row and column of each entry of the K matrix that may be set, by its knob's name."""
        size = range(len(self.drafters))
        return {f"k{row}{column}": (row, column) for row in size for column in size[row:]}

    def values_of(self, wanted: CascadeSetting | Prices) -> dict[str, Any]:
        """The knobs' values for a setting or for prices.  Raises ValueError if they do not offer
        that setting, or a model has no price of 0 or more.
        """
        if not isinstance(wanted, CascadeSetting):
            models = [name for name in self.drafters if name != MAX_GRAM]
            if missing := [name for name in models if not wanted.get(name, -1) >= 0]:
                raise ValueError(
                    f"a price list has a price of 0 or more for {', '.join(models)},"
                    f" {', '.join(missing)} has none in {dict(wanted)}"
                )
            return {f"price_{name}": wanted[name] for name in models}
        whole = widen(wanted, self.drafters)
        for row, entries in enumerate(whole.matrix):
            if any(entries[:row]) or not set(entries[row:]) <= set(LENGTHS):
                raise ValueError(
                    f"an entry is one of {list(LENGTHS)}, in an upper triangular matrix, row {row}"
                    f" is {entries}"
                )
        if whole.lenience not in LENIENCES:
            raise ValueError(f"lenience is one of {list(LENIENCES)}, got {whole.lenience}")
        entries = {name: whole.matrix[row][column] for name, (row, column) in self.entries.items()}
        rest = {"lenience": whole.lenience, "exempt": whole.exempt_max_gram}
        return {"order": whole.drafters} | entries | rest

    def meaning(self, values: Mapping[str, Any]) -> tuple[CascadeSetting, dict[str, float], str]:
        """The setting, the prices and the name of the texts for the knobs' values."""
        size = range(len(self.drafters))
        matrix = tuple(tuple(values.get(f"k{row}{column}", 0) for column in size) for row in size)
        setting = CascadeSetting(values["order"], matrix, values["lenience"], values["exempt"])
        prices = {name: values.get(f"price_{name}", price) for name, price in self.prices.items()}
        return setting, prices, values["texts"]

    def widgets(
        self, start: Mapping[str, Any], presets: Iterable[Mapping[str, Any]]
    ) -> dict[str, ipywidgets.ValueWidget]:
        """All knobs at their start; the price knobs offer the presets' prices too."""
        orders = [one for one in permutations(self.drafters) if MAX_GRAM not in one[:-1]]
        found = {"order": choice({" ← ".join((TARGET, *one)): one for one in orders}, orders[0])}
        for name in self.entries:
            tip = f"{name.upper()}: tokens that one model wants of the other"
            found[name] = slider(LENGTHS, 0, tip)
        found["lenience"] = slider(LENIENCES, 1.0, LENIENCE)
        found["exempt"] = check_box(True, f"{MAX_GRAM}'s reviewer is never lenient")
        for name, price in self.values_of(self.prices).items():
            values = sorted({*PRICES, price, *(one[name] for one in presets if name in one)})
            label = f"price of {name.removeprefix('price_')}"
            tip = f"{label}'s pass, a target pass being 1; {price:.3g} at first"
            found[name] = slider(values, price, tip, digits=".3g", label=label)
        made = make_knobs(found | {"texts": choice(self.texts, self.texts[0])}, start)

        def label_entries(_: object = None) -> None:
            """Label each entry of the K matrix with its reviewer and its drafter."""
            models = (TARGET, *made["order"].value)
            for name, (row, column) in self.entries.items():
                made[name].description = f"{models[row]} ← {models[column + 1]}"
                made[name].style.description_width = WIDE

        label_entries()
        made["order"].observe(label_entries, names="value")
        return made


def _draw(knobs: CascadeKnobs, evaluate: Evaluate, **values: object) -> Shown:
    """The figure of one setting and the words over it: its K matrix in both conventions, and what
    it is worth.
    """
    setting, prices, texts = knobs.meaning(values)
    table = evaluate(setting, prices, texts)
    exempt = setting.exempt_max_gram and setting.lenience > 1
    parts = [" ← ".join((TARGET, *setting.drafters)), f"lenience {setting.lenience:g}"]
    parts += [f"{MAX_GRAM}'s reviewer exempt" if exempt else "", texts]
    figure = figures.rivals(table, title=", ".join(filter(None, parts)))
    lines = [*_matrices(setting), "", *_verdicts(table)]
    return Shown((figure,), f"<pre>{html.escape(chr(10).join(lines))}</pre>")


def _matrices(setting: CascadeSetting) -> list[str]:
    """The K matrix in both conventions, a line per reviewer."""
    heads = "".join(f"{name:34}" for name in CONVENTIONS.values())
    lines = [f"{'K, a row per reviewer':24}{heads}"]
    both = [converted(setting.matrix, "increments", name) for name in CONVENTIONS]
    for reviewer, *rows in zip((TARGET, *setting.drafters), *both, strict=False):
        cells = ("".join(f"{entry:4}" for entry in row) for row in rows)
        lines.append(f"{reviewer:24}" + "".join(f"{one:34}" for one in cells))
    return lines


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


class _TimeUpError(Exception):
    """The tuner has had its time."""


def _turn_to_best(
    panel: Panel, knobs: CascadeKnobs, evaluate: Evaluate, tune: Tune, button: ipywidgets.Button
) -> None:
    """Run the tuner from where the knobs are, show how far it is, and turn them to its answer."""
    setting, prices, texts = knobs.meaning(panel.values())
    tried: list[tuple[float, CascadeSetting]] = []
    began, end = time.perf_counter(), "no change of one entry or of lenience is better"

    def report(setting: CascadeSetting, swi: float) -> None:
        tried.append((swi, setting))
        if len(tried) % TOLD == 1:
            most = max(swi for swi, _ in tried)
            words = f"tuning: {len(tried)} settings tried, SWI {most:.3f} so far"
            panel.words.value = status(f"<p>{words}</p>")
        if time.perf_counter() - began > TUNE_SECONDS:
            raise _TimeUpError

    button.disabled = True
    choices = {"lengths": LENGTHS, "leniences": LENIENCES, "starts": [setting]}
    try:
        report(setting, float(evaluate(setting, prices, texts).swi.iloc[0]))
        best = tune(setting.drafters, prices, texts, **choices, tell=report).setting
    except _TimeUpError:
        best = max(tried, key=lambda one: one[0])[1]
        end = "stopped there: press again to go on"
    except ValueError as problem:
        panel.words.value = refusal_html(problem)
        return
    finally:
        button.disabled = False
    panel.turn(**knobs.values_of(best))
    took = f"{len(tried)} settings tried in {time.perf_counter() - began:.1f} s"
    panel.words.value += status(f"<p>the best of {took}, on these very texts; {end}</p>")
