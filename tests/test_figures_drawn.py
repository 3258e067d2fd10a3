"""Every figure of a table draws the stored table, and refuses a wrong one with what it got and what
is allowed.
"""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.show import figures

STORED = Path(__file__).parents[1] / "figures"


def stored(name: str) -> pd.DataFrame:
    texts = name in ("00_exact", "00_origins")  # a token may look like a missing number
    return pd.read_csv(STORED / f"{name}.csv", keep_default_na=not texts)


RATES, LATENCY, LEDGER = stored("02_depth"), stored("05_latency"), stored("05_ledger")
CURVE = LATENCY[(LATENCY.model == "target") & (LATENCY.runtime == "fast")]
LINE = CURVE[CURVE.context_tokens == CURVE.context_tokens.min()]
MAP, GRID, SURFACE = stored("05_break_even"), stored("05_surface"), stored("04_surface")
LENGTHS = MAP.drop_duplicates("length").assign(tokens_per_round=2.0)
PAIRS = pd.DataFrame([("target ← draft", 0.6, 0.3)], columns=["pair", "acceptance_rate", "cost"])
SWEPT = (
    stored("05_sweeps").query("temperature == 0").assign(sweep="domain", value=lambda t: t.domain)
)
SHAPES = figures.slots(
    {"chain": Shape.chain(3), "wide": Shape.of_widths((1, 3))}, [[0.6, 0.2, 0.1]]
)
# with intervals, which those of fewer than ten prompts lack
TIMED = stored("04_walltime").assign(ratio_low=0.1, ratio_high=9.0)
BY_K00, RIVALS = (
    stored("04_sensitivity").assign(low=0.1, high=9.0),
    stored("04_rivals").assign(texts=10),
)
ROOF = {"bytes_per_second": 10**12, "flops_per_second": 5e13, "name": "a <machine>"}
MACHINE = partial(figures.roofline, **ROOF)
DEPTH, MATRIX = {"x": "depth", "x_title": "<d>"}, {"best": (2, 1), "across": "a", "down": "b"}

# its table, stored or made here, the columns of an interval, and what else it takes
CASES = {
    "distributions": ("00_exact", "", {}),
    "origins": ("00_origins", "", {}),
    "budget_curves": ("01_budget", "low tokens_per_round high", {}),
    "shapes": ("01_shapes", "", {}),
    "budget_speed_ups": ("01_speed_up", "", {}),
    "acceptance": ("02_depth", "low rate high", DEPTH),
    "kinds": ("02_domain", "low rate high", {"x_title": ""}),
    "calibration_curve": ("02_calibration", "low rate high", {}),
    "predicted_tokens": ("02_predicted", "low measured high", {}),
    "match_rates": ("02_gaps", "", {}),
    "yields": ("02_yields", "tokens_per_round_low tokens_per_round tokens_per_round_high", {}),
    "ablation": ("03_ablation", "low value high", {"value_title": ""}),
    "stages": ("03_stages", "low value high", {}),
    "passes": ("03_passes", "low passes high", {}),
    "paper_and_ours": (
        "03_bandwidth",
        "ours_low ours ours_high",
        {"title": "", "y_title": "", "by": "counted"},
    ),
    "relative_performance": ("03_relative_performance", "", {}),
    "roofline": ("03_roofline", "", ROOF),
    "ewif_by_drafters": ("04_ewif", "", {}),
    "position": ("04_position", "low rate high", {}),
    "swi_by_drafters": ("04_swi", "ours_low ours ours_high", {}),
    "walltime": (TIMED, "ratio_low ratio ratio_high", {}),
    "sensitivity": (BY_K00, "low value high", {}),
    "cascade_ablation": ("04_ablation", "low change_percent high", {}),
    "lenience": ("04_lenience", "low value high", {}),
    "surface": ("04_surface", "", MATRIX),
    "rivals": (RIVALS, "low swi high", {}),
    "latency": ("05_latency", "low_seconds seconds high_seconds", {}),
    "pass_at": (CURVE, "low_seconds seconds high_seconds", {"line": LINE, "rows": 2}),
    "round_ledger": (LEDGER.query("runtime == 'fast'"), "", {}),
    "predicted_speeds": ("05_predicted", "low measured high", {}),
    "speed_surface": ("05_surface", "", {}),
    "setting_speed_ups": ("05_settings", "speed_up_low speed_up speed_up_high", {}),
    "speed_sweep": (SWEPT, "speed_up_low speed_up speed_up_high", {}),
    "versus": ("05_versus", "ratio_low ratio ratio_high", {}),
    "break_even": ("05_break_even", "", {"points": PAIRS, "here": (0.4, 0.5)}),
    "chain_lengths": (LENGTHS, "", {"length": 2}),
    "verifiers": (
        "07_verifiers",
        "tokens_per_round_low tokens_per_round tokens_per_round_high",
        {},
    ),
    "scorecard": ("06_scorecard", "low ours high", {}),
}
SEVERAL = (  # marks of one figure that agree in everything but their numbers
    "distributions origins budget_curves acceptance kinds calibration_curve predicted_tokens"
    " roofline predicted_speeds"
).split()


@pytest.mark.parametrize("name", CASES)
def test_the_stored_table_is_drawn_and_a_wrong_one_is_refused(name):
    """Without a column or a row, with a mark twice, with an interval beside its value."""
    table, ends, options = CASES[name]
    table = stored(table) if isinstance(table, str) else table
    draw = partial(vars(figures)[name], **options)
    assert draw(table).data
    for wrong in (table[:0], pd.DataFrame({"x": [1.0]})):
        with pytest.raises(ValueError, match=f"columns .* got {len(wrong)} rows"):
            draw(wrong)
    if name not in SEVERAL:
        with pytest.raises(ValueError, match=r"at most one row per .*, got several"):
            draw(pd.concat([table, table]))
    if ends:
        low, value, high = ends.split()
        with pytest.raises(ValueError, match=f"{low} ≤ {value} ≤ {high}"):
            draw(table.assign(**{high: table[low] - 1}))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: figures.budget_curves(stored("01_budget").assign(budget=0)), "node, got 0"),
        (lambda: figures.acceptance(RATES.assign(depth=0), **DEPTH, log_x=True), "above 0, got 0"),
        (lambda: figures.shapes(SHAPES.query("node != 1")), "without a gap"),
        (lambda: figures.slots({}, [[0.5]]), "at least one shape, got none"),
        (lambda: figures.gap_table(MatchTable((0.5,), "flat")), "'flat'"),
        (lambda: MACHINE(stored("03_roofline").assign(kind="theirs")), "paper, ours, got theirs"),
        (lambda: MACHINE(stored("03_roofline").assign(intensity=0)), "above 0, got down to 0"),
        (
            lambda: figures.relative_performance(stored("03_relative_performance")[1:]),
            r"\d+ prompts times \d methods but \d+ rows",
        ),
        (lambda: figures.surface(SURFACE, **MATRIX | {"best": (0, 77)}), "k1 = 0, k2 = 77"),
        (lambda: figures.surface(SURFACE[1:], **MATRIX), f"got {len(SURFACE) - 1} rows"),
        (lambda: figures.speed_surface(GRID[1:]), f"got {len(GRID) - 1} rows"),
        (lambda: figures.break_even(MAP[1:], PAIRS), f"got {len(MAP) - 1} rows"),
        (lambda: figures.break_even(MAP, PAIRS[:0]), "got 0 rows"),
        (lambda: figures.pass_at(CURVE, LINE, rows=999), "1 to .* rows, got 999"),
        (lambda: figures.round_ledger(LEDGER[:1].assign(part="magic")), "got magic"),
        (lambda: figures.predicted_speeds(stored("05_predicted").assign(predicted=0.0)), "to 0"),
        (lambda: figures.speed_sweep(SWEPT.assign(sweep="size")), "domain, got size"),
        (lambda: figures.chain_lengths(LENGTHS, length=99), "got 99"),
        (lambda: figures.versus(stored("05_versus").assign(domain="code")), "got 0 rows"),
        (lambda: figures.step(RATES), f"got {len(RATES)} rows"),
    ],
)
def test_a_value_out_of_bounds_is_refused(draw, said):
    with pytest.raises(ValueError, match=said):
        draw()


def test_what_is_predicted_is_hatched_and_named_and_nothing_else_is():
    table = stored("03_bandwidth")
    for way, hatch in (("predicted", "/"), ("counted", ""), ("measured", "")):
        drawn = figures.paper_and_ours(table, title="", y_title="", by=way, paper_by="measured")
        bars = {bar.name: bar.marker.pattern.shape for bar in drawn.data if bar.type == "bar"}
        assert bars == {"paper, measured": "", f"ours, {way}": hatch}
    with pytest.raises(ValueError, match=r"way to a number .* got guessed"):
        figures.paper_and_ours(table, title="", y_title="", by="guessed")
    drawn = [one for one in MACHINE(stored("03_roofline")).data if one.showlegend]
    roof = {one.name: one.marker.symbol for one in drawn}
    assert roof["ours, predicted"] == "circle-open" and "paper, measured" in roof


def test_few_prompts_give_no_interval():
    few = figures.rivals(RIVALS.assign(texts=9)).data[0]
    assert not few.error_x.visible and figures.rivals(RIVALS).data[0].error_x.visible is None


def test_the_probabilities_of_slots_add_up_to_the_expected_tokens():
    sums = SHAPES.groupby("shape")["probability"].sum()
    assert sums["chain"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert sums["wide"] == pytest.approx(1 + 0.6 + 0.6 * 0.9)


@pytest.mark.parametrize(
    "columns",
    [
        {"log_probability": -1.0, "noise": 2.0, "sum": 1.0, "chosen": True, "child": 1},
        {"low": 0.0, "high": 0.4, "uniform": 0.2, "chosen": True},
        {"wanted": 0.2, "offered": 0.5, "left": 0.0, "probability": 0.4, "uniform": 0.6}
        | {"kept": False},
        {"after": "b", "score": 0.75},
    ],
)
def test_each_kind_of_step_is_drawn(columns):
    assert figures.step(pd.DataFrame([{"text": "a"} | columns]), title="<chosen>").data
