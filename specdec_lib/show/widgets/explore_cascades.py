"""The explorer of cascades: order, K matrix, lenience, prices, known settings and the tuner."""

import html
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import ipywidgets
import pandas as pd

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, Tuned
from specdec_lib.show import figures
from specdec_lib.show.widgets import cascade_knobs as offered
from specdec_lib.show.widgets.cascade_knobs import TARGET, CascadeKnobs, Prices
from specdec_lib.show.widgets.panel import Panel, Shown, refusal_html, status

Evaluate = Callable[[CascadeSetting, Prices, str], pd.DataFrame]
Tune = Callable[..., Tuned]

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
    lines = [f"SWI {ours.swi:.2f} ({ours.low:.2f} to {ours.high:.2f} over {ours.texts} texts)"]
    for one in others:
        word = "worse" if one.ratio_high < 1 else "within the noise"
        word = "better" if one.ratio_low > 1 else word
        interval = f"({one.ratio_low:.2f} to {one.ratio_high:.2f})"
        lines.append(f"{one.ratio:.2f} times that of {one.setting} {interval}: {word}")
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
    choices = {"lengths": offered.LENGTHS, "leniences": offered.LENIENCES, "starts": [setting]}
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
