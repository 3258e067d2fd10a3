"""Knobs for a cascade: order, K matrix, lenience and the prices of its models; buttons for settings
that are known, and for the tuner.
"""

import html
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import Any

import ipywidgets
import pandas as pd

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, Tuned, widen
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import labelled, look, slider
from specdec_lib.show.widgets.panel import Panel, Shown, refusal, told

Prices = Mapping[str, float]
Evaluate = Callable[[CascadeSetting, Prices, str], pd.DataFrame]
Tune = Callable[..., Tuned]

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)
PRICES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
TARGET = "target"
CONVENTIONS = {"increments": "as set: tokens added", "cumulative": "as in the paper: tokens so far"}
WIDE = "11em"  # of "middle ← Max-Gram"
TUNES = "looks for the setting of this order with the largest SWI, at these prices, on these texts"
EVERY_SECONDS = 0.2  # between two words of the tuner
NOTHING: Mapping[str, Any] = MappingProxyType({})


def cascade_explorer(
    evaluate: Evaluate,
    drafters: Sequence[str],
    *,
    prices: Prices,
    start: CascadeSetting | None = None,
    texts: Sequence[str] = ("",),
    presets: Mapping[str, CascadeSetting | Prices] = NOTHING,
    tune: Tune | None = None,
    tune_seconds: float = 3.0,
    lengths: Sequence[int] = LENGTHS,
    leniences: Sequence[float] = LENIENCES,
) -> Panel:
    """Knobs for a cascade over `figures.rivals`: its order, an entry of the K matrix each,
    lenience, and what a pass of each model costs.

    evaluate     a setting, prices and the name of the texts in; a table as of
                 `replay.Replays.beside` out; its ValueError is shown as text
    drafters     their names, strongest first; Max-Gram stays last in every order
    prices       of a pass over that of a target pass, at which the price knobs stand first; the
                 target's is 1
    start        the setting at first, in increments; without it every entry is the first length
                 above 0
    texts        what `evaluate` may be asked for: a knob where there are several
    presets      buttons by what they say: each turns the knobs to a setting, or the price knobs to
                 other prices
    tune         a button: `replay.Replays.tune`, or what is called like it; the knobs are turned
                 to its answer, or to the best setting that it had tried after `tune_seconds`
    lengths      what an entry may be
    leniences    what lenience may be

    The knobs are order, k00, k01, … (row, column), lenience, exempt, price_<model>, and texts.
    Raises ValueError if there is no drafter, or a setting or price at the start or of a preset is
    none that the knobs can be turned to.
    """
    made = _Tuner(
        evaluate,
        tuple(drafters),
        dict(prices),
        tuple(lengths),
        tuple(leniences),
        tuple(texts),
        tune,
        tune_seconds,
    )
    made.check()
    for name in texts:
        evaluate(
            start or made.first(), made.prices, name
        )  # what it remembers makes every later look at these texts quick
    turns = {
        name: made.turned(one) if isinstance(one, CascadeSetting) else made.priced(one)
        for name, one in presets.items()
    }
    knobs = made.knobs(made.turned(start or made.first()), turns.values())
    button = {"tune": ipywidgets.Button(description="tune", tooltip=TUNES)} if tune else {}
    panel = Panel(knobs | button, made.draw, presets=turns)
    if tune:
        button["tune"].on_click(lambda pressed: made.tuning(panel, pressed))
    return panel


@dataclass(frozen=True)
class _Tuner:
    """What the knobs mean."""

    evaluate: Evaluate
    drafters: tuple[str, ...]
    prices: Prices
    lengths: tuple[int, ...]
    leniences: tuple[float, ...]
    texts: tuple[str, ...]
    tune: Tune | None
    tune_seconds: float

    def check(self) -> None:
        """Raises ValueError if there is nothing to turn."""
        if not self.drafters or not any(length > 0 for length in self.lengths) or not self.texts:
            raise ValueError(
                "the explorer needs a drafter, a length above 0 and texts, got"
                f" {len(self.drafters)} drafters, the lengths {list(self.lengths)}"
                f" and {len(self.texts)} texts"
            )
        if missing := [name for name in (TARGET, *self.models()) if name not in self.prices]:
            raise ValueError(
                f"every model needs a price: {', '.join(missing)} has none; there are"
                f" {', '.join(self.prices) or 'none'}"
            )

    def models(self) -> tuple[str, ...]:
        """The drafters that cost something."""
        return tuple(name for name in self.drafters if name != MAX_GRAM)

    def places(self) -> list[tuple[int, int]]:
        """Row and column of each entry that may be set."""
        return [
            (row, column)
            for row in range(len(self.drafters))
            for column in range(row, len(self.drafters))
        ]

    def first(self) -> CascadeSetting:
        """The first length above 0 everywhere."""
        some = next(length for length in self.lengths if length > 0)
        size = len(self.drafters)
        return CascadeSetting(
            self.drafters,
            tuple(
                tuple(some if column >= row else 0 for column in range(size)) for row in range(size)
            ),
        )

    def turned(self, setting: CascadeSetting) -> dict[str, Any]:
        """The knobs at a setting of some of these drafters.

        Raises ValueError if they cannot stand there.
        """
        whole = widen(setting, self.drafters)
        for row, entries in enumerate(whole.matrix):
            if any(entries[:row]) or not set(entries[row:]) <= set(self.lengths):
                raise ValueError(
                    f"an entry is one of {list(self.lengths)}, in an upper triangular matrix, row"
                    f" {row} is {entries}"
                )
        if whole.lenience not in self.leniences:
            raise ValueError(f"lenience is one of {list(self.leniences)}, got {whole.lenience}")
        entries = {f"k{row}{column}": whole.matrix[row][column] for row, column in self.places()}
        return (
            {"order": whole.drafters}
            | entries
            | {"lenience": whole.lenience, "exempt": whole.exempt_max_gram}
        )

    def priced(self, prices: Prices) -> dict[str, Any]:
        """The price knobs at these prices.

        Raises ValueError if a model has none, or one below 0.
        """
        if missing := [name for name in self.models() if not prices.get(name, -1) >= 0]:
            raise ValueError(
                f"a price list has a price of 0 or more for {', '.join(self.models())},"
                f" {', '.join(missing)} has none in {dict(prices)}"
            )
        return {f"price_{name}": prices[name] for name in self.models()}

    def knobs(
        self, turned: Mapping[str, Any], presets: Iterable[Mapping[str, Any]]
    ) -> dict[str, ipywidgets.ValueWidget]:
        """All knobs, at their start, with the presets' prices among their own."""
        orders = [
            (" ← ".join((TARGET, *names)), names)
            for names in permutations(self.drafters)
            if MAX_GRAM not in names[:-1]
        ]
        found: dict[str, ipywidgets.ValueWidget] = {
            "order": ipywidgets.Dropdown(
                options=orders, value=turned["order"], description="order", **look("order")
            )
        }
        for row, column in self.places():
            name = f"k{row}{column}"
            found[name] = slider(
                name,
                self.lengths,
                turned[name],
                tooltip=f"K{row}{column}: tokens that one asks of the other",
            )
            found[name].style.description_width = WIDE
        found["lenience"] = slider(
            "lenience",
            self.leniences,
            turned["lenience"],
            tooltip="how many times less likely a reviewed token may be",
        )
        words = f"{MAX_GRAM}'s reviewer is never lenient"
        found["exempt"] = ipywidgets.Checkbox(
            value=turned["exempt"],
            description=words,
            indent=False,
            layout=ipywidgets.Layout(width="auto"),
        )
        steps = {*PRICES, *(self.prices[name] for name in self.models())}
        steps |= {
            value for one in presets for name, value in one.items() if name.startswith("price_")
        }
        for name in self.models():
            tip = f"what a pass of {name} costs, a target pass being 1; {self.prices[name]:.3g} at first"
            found[f"price_{name}"] = labelled(
                f"price of {name}", steps, self.prices[name], tooltip=tip
            )
        if len(self.texts) > 1:
            found["texts"] = ipywidgets.Dropdown(
                options=list(self.texts), description="texts", **look("texts")
            )
        self.named(found, turned["order"])
        found["order"].observe(lambda change: self.named(found, change["new"]), names="value")
        return found

    def named(self, knobs: Mapping[str, ipywidgets.ValueWidget], order: Sequence[str]) -> None:
        """Each entry of the K matrix is called after who asks whom."""
        models = (TARGET, *order)
        for row, column in self.places():
            knobs[f"k{row}{column}"].description = f"{models[row]} ← {models[column + 1]}"

    def asked(self, values: Mapping[str, Any]) -> tuple[CascadeSetting, dict[str, float], str]:
        """Setting, prices and texts that the knobs stand at."""
        size = range(len(self.drafters))
        matrix = tuple(
            tuple(values[f"k{row}{column}"] if column >= row else 0 for column in size)
            for row in size
        )
        prices = {TARGET: self.prices[TARGET]} | {
            name: values[f"price_{name}"] for name in self.models()
        }
        setting = CascadeSetting(values["order"], matrix, values["lenience"], values["exempt"])
        return setting, prices, values.get("texts", self.texts[0])

    def draw(self, **values: Any) -> Shown:
        """The figure of one setting and the words over it: its K matrix in both conventions, and
        what it is worth.
        """
        setting, prices, texts = self.asked(values)
        table = self.evaluate(setting, prices, texts)
        title = f"lenience {setting.lenience:g}" + (
            f", {MAX_GRAM}'s reviewer exempt"
            if setting.exempt_max_gram and setting.lenience > 1
            else ""
        )
        title = ", ".join(filter(None, (" ← ".join((TARGET, *setting.drafters)), title, texts)))
        said = [*_matrices(setting), "", *_verdicts(table)]
        return Shown(
            (figures.rivals(table, title=title),), f"<pre>{html.escape(chr(10).join(said))}</pre>"
        )

    def tuning(self, panel: Panel, button: ipywidgets.Button) -> None:
        """Ask the tuner, saying how far it is, and turn the knobs to its answer."""
        setting, prices, texts = self.asked(panel.values())
        heard = _Heard(panel, self.tune_seconds)
        button.disabled = True
        try:
            best, end = self.answer(heard, setting, prices, texts)
            turned = self.turned(best)
        except ValueError as problem:
            panel.words.value = refusal(problem)
            return
        finally:
            button.disabled = False
        panel.turn(**turned)
        panel.words.value += told(
            f"<p>the best of {heard.tried} settings tried in {heard.seconds:.1f} s, on these very"
            f" texts; {end}</p>"
        )

    def answer(
        self, heard: "_Heard", setting: CascadeSetting, prices: Prices, texts: str
    ) -> tuple[CascadeSetting, str]:
        """The best setting that was tried, and why the search ended."""
        choices = {"lengths": self.lengths, "leniences": self.leniences, "starts": [setting]}
        try:
            heard(setting, float(self.evaluate(setting, prices, texts).swi.iloc[0]))
            return self.tune(
                setting.drafters, prices, texts, **choices, tell=heard
            ).setting, "no change of one entry or of lenience is better"
        except _EnoughError:
            return heard.best, "stopped there: press again to go on"


class _EnoughError(Exception):
    """The tuner has had its time."""


class _Heard:
    """What the tuner tells: counted, shown, and ended when its time is up."""

    def __init__(self, panel: Panel, limit: float) -> None:
        self.panel, self.limit, self.began, self.said = panel, limit, time.perf_counter(), 0.0
        self.tried, self.best, self.swi = 0, None, 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def __call__(self, setting: CascadeSetting, swi: float) -> None:
        self.tried += 1
        if self.best is None or swi > self.swi:
            self.best, self.swi = setting, swi
        if self.seconds > self.said:
            self.said = self.seconds + EVERY_SECONDS
            self.panel.words.value = told(
                f"<p>tuning: {self.tried} settings tried, SWI {self.swi:.3f} so far</p>"
            )
        if self.seconds > self.limit:
            raise _EnoughError


def _matrices(setting: CascadeSetting) -> list[str]:
    """The K matrix in both conventions, a line per reviewer."""
    lines = [
        f"{'K, a row per reviewer':24}" + "".join(f"{name:34}" for name in CONVENTIONS.values())
    ]
    both = [converted(setting.matrix, "increments", name) for name in CONVENTIONS]
    for number, reviewer in enumerate((TARGET, *setting.drafters)[: len(setting.matrix)]):
        lines.append(
            f"{reviewer:24}"
            + "".join(f"{''.join(f'{entry:4}' for entry in shape[number]):34}" for shape in both)
        )
    return lines


def _verdicts(table: pd.DataFrame) -> list[str]:
    """What the first row is worth, alone and against each of the others."""
    ours = table.iloc[0]
    lines = [f"SWI {ours.swi:.2f} ({ours.low:.2f} to {ours.high:.2f} over {ours.texts} texts)"]
    for one in table.iloc[1:].itertuples():
        word = (
            "better" if one.ratio_low > 1 else "worse" if one.ratio_high < 1 else "not told apart"
        )
        lines.append(
            f"{one.ratio:.2f} times that of {one.setting} ({one.ratio_low:.2f} to"
            f" {one.ratio_high:.2f}): {word}"
        )
    return lines
