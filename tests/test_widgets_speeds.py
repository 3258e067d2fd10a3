"""The explorers of seconds: a pass is read off the curves, a verdict follows from theory, and a map
is theory's own.
"""

from types import ModuleType

import pandas as pd
import pytest

from specdec_lib.show import figures
from specdec_lib.show.widgets import break_even_explorer, latency_explorer
from specdec_lib.theory import best_chain_speed_up, chain_break_even, chain_map, chain_speed_up

ROWS = {1: 2.0, 2: 2.0, 4: 2.4, 8: 4.0}  # milliseconds at context 64
CURVES = pd.DataFrame(
    [
        {
            "model": model,
            "runtime": runtime,
            "rows": rows,
            "context_tokens": context,
            "seconds": slow * (ms + context / 640) / 1e3,
        }
        for model, runtime, slow in (
            ("target", "fast", 1.0),
            ("draft", "fast", 0.2),
            ("target", "reference", 4.0),
        )
        for rows, ms in ROWS.items()
        for context in (64, 256)
    ]
)
CURVES = CURVES.assign(
    low_seconds=0.9 * CURVES.seconds,
    high_seconds=1.1 * CURVES.seconds,
    roofline_seconds=CURVES.seconds / 2,
)
POINTS = pd.DataFrame([("draft", 0.6, 0.15)], columns=["pair", "acceptance_rate", "cost"])
STEEP = {"steep": lambda rows: 0.5 + 0.5 * rows, "flat": None}


def star(panel) -> tuple[float, float]:
    [trace] = (trace for trace in panel.figures[0].data if trace.name == "this pass")
    return trace.x[0], trace.y[0]


def test_a_pass_is_read_off_the_curve_and_between_its_points_off_a_line():
    panel = latency_explorer(CURVES)
    assert star(panel) == pytest.approx((4, 2.4 + 0.4)), (
        "at the middle of the contexts there are, 256"
    )
    panel.turn(rows=6, context=160)
    assert star(panel) == pytest.approx((6, (2.4 + 4.0) / 2 + 160 / 640))
    assert "between measured ones" in panel.words.value
    ratio = (3.2 + 0.25) / (2.0 + 0.25)
    assert (
        f"{ratio:.2f} times a pass over one row: 5 guesses to verify cost {ratio - 1:+.0%}"
        in panel.words.value
    )


def test_the_roofline_and_the_measured_band_are_in_the_words():
    panel = latency_explorer(CURVES)
    assert (
        "the machine would allow 1.40 ms (bandwidth or arithmetic): 50% of what it takes"
        in panel.words.value
    )
    assert "half of the measured passes took 2.52 to 3.08" in panel.words.value
    assert "allow" not in latency_explorer(CURVES.drop(columns="roofline_seconds")).words.value


def test_what_was_not_timed_is_refused_and_the_figure_stays():
    panel = latency_explorer(CURVES)
    before = star(panel)
    panel.turn(model="draft")
    assert star(panel) == pytest.approx((4, before[1] * 0.2))
    panel.turn(runtime="reference")
    assert (
        "draft was not timed with runtime &#x27;reference&#x27;, there are target"
        in panel.words.value
    )
    assert star(panel) == pytest.approx((4, before[1] * 0.2))
    panel.turn(model="target")
    assert star(panel) == pytest.approx((4, before[1] * 4)), "and recovers"


def bars(panel) -> list[float]:
    return list(panel.figures[1].data[0].y)


def test_the_bars_are_chain_speed_ups_with_the_host_added():
    panel = break_even_explorer(STEEP, POINTS, acceptance_rate=0.6, cost=0.16)
    assert bars(panel) == pytest.approx(
        [chain_speed_up(0.6, length, 0.16, STEEP["steep"]) for length in range(1, 13)]
    )
    panel.turn(host=0.2, verify="flat", cost=0.3)
    assert bars(panel) == pytest.approx(
        [chain_speed_up(0.6, length, 0.3, lambda rows: 1.2) for length in range(1, 13)]
    )


def test_the_map_is_of_the_best_length_or_of_the_one_set():
    panel = break_even_explorer({"flat": None}, POINTS)
    best = panel.figures[0].data[0].z
    panel.turn(map="the length set", length=2)
    one = panel.figures[0].data[0].z
    cost, rate = 12, 18
    assert best[cost][rate] == pytest.approx(best_chain_speed_up(0.5, 0.3, longest=12))
    assert one[cost][rate] == pytest.approx(chain_speed_up(0.5, 2, 0.3))
    assert (best >= one - 1e-12).all() and (best > one).any()


def test_the_verdict_changes_where_the_best_chain_stops_paying():
    panel = break_even_explorer({"flat": None}, POINTS, acceptance_rate=0.5, cost=0.4)
    assert "Speculate, with 1 guess per round." in panel.words.value and max(bars(panel)) > 1
    panel.knobs["cost"].value = 0.6
    assert "Do not speculate" in panel.words.value and max(bars(panel)) < 1
    panel.turn(cost=0.04, acceptance_rate=0.9)
    assert (
        f"Speculate, with {1 + max(range(12), key=bars(panel).__getitem__)} guesses"
        in panel.words.value
    )
    panel.turn(acceptance_rate=0.2, host=0.5)
    assert "even a free draft does not pay" in panel.words.value


def test_the_pair_stands_on_the_map_and_reset_brings_it_back():
    panel = break_even_explorer(STEEP, POINTS, acceptance_rate=0.6, cost=0.16)
    panel.turn(acceptance_rate=0.8, cost=0.5)
    [here] = (trace for trace in panel.figures[0].data if trace.name == "here")
    assert (here.x[0], here.y[0]) == (0.8, 0.5)
    next(button for button in panel.children[1].children if button.description == "reset").click()
    [here] = (trace for trace in panel.figures[0].data if trace.name == "here")
    assert (here.x[0], here.y[0]) == (0.6, 0.16)


@pytest.mark.parametrize("options", [{"longest": 0}, {"acceptance_rate": 1.2}, {"cost": -0.1}])
def test_a_map_that_starts_nowhere_is_refused(options):
    with pytest.raises(ValueError, match="the map needs a curve of the target"):
        break_even_explorer({"flat": None}, POINTS, **options)
    with pytest.raises(ValueError, match="got 0 curves"):
        break_even_explorer({}, POINTS)


def test_the_map_of_theory_is_the_best_chain_everywhere():
    rates, costs = (0.0, 0.3, 0.7, 1.0), (0.0, 0.2, 1.5)
    cells = chain_map(rates, costs, STEEP["steep"], overhead=0.1)
    assert [(cell.acceptance_rate, cell.cost) for cell in cells] == [
        (rate, cost) for rate in rates for cost in costs
    ]
    for cell in cells:
        wanted = best_chain_speed_up(cell.acceptance_rate, cell.cost, lambda rows: 0.6 + 0.5 * rows)
        assert cell.speed_up == pytest.approx(wanted, rel=1e-12)
        assert cell.speed_up == pytest.approx(
            chain_speed_up(
                cell.acceptance_rate, cell.length, cell.cost, lambda rows: 0.6 + 0.5 * rows
            )
        )
    assert (
        chain_map([0.7], [0.2])[0].speed_up > chain_map([0.7], [0.2], overhead=0.1)[0].speed_up
    ), "the control: a host that costs nothing"


def test_break_even_is_where_the_best_chain_neither_gains_nor_loses():
    found = chain_break_even(0.6, 0.2, STEEP["steep"], overhead=0.05)
    at = best_chain_speed_up(found.acceptance_rate, 0.2, lambda rows: 0.55 + 0.5 * rows)
    assert at == pytest.approx(1, abs=1e-3) and at >= 1
    assert best_chain_speed_up(0.6, found.cost, lambda rows: 0.55 + 0.5 * rows) == pytest.approx(1)
    assert chain_break_even(0.5, 0.4) == pytest.approx((0.4, 0.5), abs=1e-3), (
        "flat, one guess: a draft pays if α > c"
    )
    assert (
        chain_break_even(0.1, 3.0).acceptance_rate is None
        and chain_break_even(0.1, 0.2, overhead=0.5).cost is None
    )


@pytest.mark.parametrize(
    "options", [{"lengths": ()}, {"lengths": (0, 1)}, {"overhead": -0.1}, {"costs": (-0.1,)}]
)
def test_a_map_of_nothing_is_refused(options):
    given = {"rates": (0.5,), "costs": (0.2,)} | options
    with pytest.raises(ValueError, match="a map needs lengths of at least 1"):
        chain_map(**given)


def test_figures_of_a_pass_and_of_lengths_refuse_what_they_cannot_mark():
    line = pd.DataFrame({"rows": [1, 2], "seconds": [1.0, 1.5]})
    own = CURVES[(CURVES.model == "draft")]
    with pytest.raises(ValueError, match="passes of 1 to 2 rows, got 3"):
        figures.pass_at(own, line, rows=3)
    with pytest.raises(ValueError, match="at most one row per rows and context_tokens"):
        figures.pass_at(CURVES, line, rows=1)
    lengths = pd.DataFrame(
        {"length": [1, 2], "speed_up": [1.2, 0.9], "tokens_per_round": [1.5, 1.7]}
    )
    assert list(figures.chain_lengths(lengths, length=2).data[0].marker.pattern.shape) == [
        "",
        "/",
    ], "colour is not alone"
    with pytest.raises(ValueError, match=r"one of \[1, 2\], got 3"):
        figures.chain_lengths(lengths, length=3)


def test_no_module_of_the_figures_hides_a_figure_of_its_name():
    assert [
        name for name in figures.__all__ if isinstance(getattr(figures, name), ModuleType)
    ] == []


def test_a_benchmark_is_drawn_with_readable_names_on_a_scale_of_factors():
    rows = [
        ("tree", name, value)
        for name, value in (
            ("autoregressive", 1.2),
            ("hf_generate", 7.0),
            ("hf_prompt_lookup", 6.0),
        )
    ]
    table = pd.DataFrame(rows, columns=["method", "baseline", "ratio"]).assign(
        temperature=0, top_k=0, prompt_set="all", runtime="fast"
    )
    figure = figures.versus(
        table.assign(ratio_low=0.9 * table.ratio, ratio_high=1.1 * table.ratio), prompt_set="all"
    )
    marks = [trace.name for trace in figure.data if trace.mode == "markers"]
    assert marks == ["plain decoding", "transformers generate", "transformers prompt lookup"]
    assert (
        figure.layout.xaxis.type == "log"
        and figure.layout.xaxis.range[0] < 0 < figure.layout.xaxis.range[1]
    )


def test_predictions_stand_in_a_panel_per_sampling():
    table = pd.DataFrame(
        {
            "name": list("ab"),
            "predicted": [90.0, 50.0],
            "measured": [100.0, 50.0],
            "low": [90.0, 45.0],
            "high": [110.0, 55.0],
        }
    )
    figure = figures.predicted_speeds(table.assign(series="chain", sampling=["greedy", "T = 1"]))
    assert [note.text for note in figure.layout.annotations] == ["greedy", "T = 1"]
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == [
        "within 10 %",
        "as predicted",
        "chain",
    ]
