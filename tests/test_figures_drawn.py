"""Every figure draws its stored table, and refuses a wrong one with what is allowed."""

import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from specdec_lib.core.tree import MatchTable
from specdec_lib.measure.latency.predict import measured_speed_ups
from specdec_lib.measure.ratios import without_few
from specdec_lib.show import figures, tables
from specdec_lib.show.figures import chart, theme

STORED = Path(__file__).parents[1] / "figures"


def stored(name: str) -> pd.DataFrame:
    texts = name in (
        "00b_exact",
        "00_race",
        "00_origins",
        "00b_survival",
        "03_scout_pass",
        "04_cascade",
    )  # a token may look like a missing number
    return pd.read_csv(STORED / f"{name}.csv", keep_default_na=not texts)


LATENCY = stored("05_latency")
CURVE = LATENCY[(LATENCY.model == "target") & (LATENCY.runtime == "fast")]
LINE = CURVE[CURVE.context_tokens == CURVE.context_tokens.min()]
MAP = stored("05_break_even").query("speed_up.notna()").astype({"length": int})
LENGTHS = MAP.drop_duplicates("length").assign(tokens_per_round=2.0)
PLACES = pd.DataFrame(
    [("tree", "<here>", figures.MEASURED, 1.5, 0.1, 1.2)],
    columns=["claim", "name", "kind", "sixteen", "draft", "gain"],
)
PAIRS = pd.DataFrame([("target ← draft", 0.6, 0.3)], columns=["pair", "acceptance_rate", "cost"])
SWEPT = stored("05_sweeps").query("temperature == 0")
SWEPT = SWEPT.assign(sweep="domain", value=SWEPT.domain)
ROOF = {"bytes_per_second": 10**12, "flops_per_second": 5e13, "name": "a <machine>"}
YIELD_COLUMNS = ["series", "rounds", "accepted_per_round", "tokens_per_round"]
YIELDS = pd.DataFrame([("a tree", 9, 1.2, 2.2)], columns=YIELD_COLUMNS).assign(
    tokens_per_round_low=2.0, tokens_per_round_high=2.4
)
DEPTH = {"x": "depth", "x_title": "<d>"}
MATRIX = {"best": (2, 1), "across": "a", "down": "b", "prompts": 9}
BRACKETS = pd.DataFrame([(0, 2, 0, "<K>")], columns=["first", "last", "level", "said"])
BYTES = {"title": "", "y_title": "", "by": "counted"}

# figures of a stored table; then those of another table, or that take more
PLAIN = """
distributions=00b_exact race_moment=00_race origins=00_origins budget_curves=01_budget
budget_speed_ups=01_speed_up calibration_curve=02_calibration predicted_tokens=02_predicted
match_rates=02_gaps stages=03b_stages passes=03b_passes
ewif_by_drafters=04b_ewif position=04b_position swi_by_prices=04b_swi walltimes=04b_walltime
paper_speed_ups=03b_speed_ups free_drafts=04c_free latency=05_latency predicted_speeds=05_predicted
setting_speed_ups=05_settings plans=05b_plans off_switches=05b_off_switch versus=05b_versus
film_strip=03_strip verifiers=07_verifiers scorecard=06_scorecard waterfall=06_waterfall
idea_ratios=06_ideas clock_errors=08_agreement
""".split()
CASES = {figure: (name, {}) for figure, name in (pair.split("=") for pair in PLAIN)} | {
    "shapes": ("01_shapes", {"title": ""}),
    "acceptance": ("02_depth", DEPTH),
    "kinds": ("02_domain", {"x_title": ""}),
    "ablation": ("03b_ablation", {"value_title": ""}),
    "history_bars": ("03_back_off", {"after": "<on> the"}),
    "scout_pass": ("03_scout_pass", {"context": "<b>"}),
    "shaded_text": ("00b_survival", {"title": ""}),
    "cascade": ("04_cascade", {"brackets": BRACKETS, "title": ""}),
    "paper_and_ours": ("03b_bandwidth", BYTES),
    "prompt_gains": ("03b_prompts", {"before": "a", "after": "<b>"}),
    "yields": (YIELDS, {}),
    "roofline": ("03b_roofline", ROOF),
    "surface": ("04_surface", MATRIX),
    "rivals": ("04_rivals", {"title": ""}),
    "what_ifs": ("05b_what_if", {"about": "<b>"}),
    "pass_at": (CURVE, {"line": LINE, "rows": 2, "title": ""}),
    "round_ledger": (stored("05_ledger").query("runtime == 'fast'"), {"noise": 0.1}),
    "speed_surface": ("05_surface", {"about": "greedy"}),
    "speed_sweep": (SWEPT, {}),
    "break_even": (MAP, {"points": PAIRS, "title": "", "here": (0.4, 0.5)}),
    "claim_maps": ("08_maps", {"points": PLACES, "about": "<b>"}),
    "chain_lengths": (LENGTHS, {"length": 2, "title": ""}),
}
SEVERAL = (  # marks of one figure that agree in everything but their numbers
    "distributions origins budget_curves acceptance kinds calibration_curve predicted_tokens"
    " roofline predicted_speeds shaded_text cascade"
).split()


@pytest.mark.parametrize("name", CASES)
def test_the_stored_table_is_drawn_and_a_wrong_one_is_refused(name):
    """A wrong table lacks a column or a row, or has a mark twice."""
    table, options = CASES[name]
    table = stored(table) if isinstance(table, str) else table
    draw = partial(vars(figures)[name], **options)
    assert draw(table).data
    for wrong in (table[:0], pd.DataFrame({"x": [1.0]})):
        with pytest.raises(ValueError, match=f"columns .* got {len(wrong)} rows"):
            draw(wrong)
    if name not in SEVERAL:
        with pytest.raises(ValueError, match=r"at most one row per .*, got several"):
            draw(pd.concat([table, table]))


@pytest.mark.parametrize("name", CASES)
def test_a_docstring_names_every_column_that_its_figure_needs(name, monkeypatch):
    """It is the only description of the table; the control is a column that no figure has."""
    draw = vars(figures)[name]
    table, options = CASES[name]
    table = stored(table) if isinstance(table, str) else table
    given = [table, *options.values()]
    needed = set()

    def note(checked: pd.DataFrame, keys: str, values: str) -> None:
        if any(checked is one for one in given):
            needed.update(f"{keys} {values}".split())
        chart.check(checked, keys, values)

    monkeypatch.setattr(sys.modules[draw.__module__], "check", note)
    draw(table, **options)
    assert needed and "nonsense" not in draw.__doc__
    needed -= {options.get("x")}  # the argument says it
    assert [one for one in sorted(needed) if f"`{one}`" not in draw.__doc__] == []


def test_a_long_headline_beside_long_names_is_broken_before_it_leaves_the_figure():
    """As the cascade explorer writes it; the headline begins right of the settings' names, and a
    wide font has 9.6 pixels a letter.
    """
    title = (
        "target ← middle ← draft ← Max-Gram, lenience 1.5, Max-Gram's reviewer exempt, all texts"
    )
    layout = figures.rivals(stored("04_rivals"), title=title).layout
    lines = layout.title.text.split("<br>")
    names = max(len(line) for name in layout.yaxis.ticktext for line in name.split("<br>"))
    assert len(lines) == 3 and max(map(len, lines)) * 8.6 + names * 7 < layout.width


def test_a_pass_refuses_a_role_that_it_does_not_know():
    with pytest.raises(ValueError, match=r"one of .*, got 'mine'"):
        figures.scout_pass(stored("03_scout_pass").assign(role="mine"), context="")


REFUSED = {
    "cost, got 0 rows": lambda: figures.break_even(MAP, PAIRS[:0], title=""),
    "columns text and one of": lambda: figures.step(LINE, title=""),
    "'flat'": lambda: tables.gap_rates(MatchTable((0.5,), "flat")),
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_table_that_cannot_be_drawn_is_refused(said):
    with pytest.raises(ValueError, match=said):
        REFUSED[said]()


@pytest.mark.parametrize("count", [4, 10])
def test_fewer_than_ten_prompts_have_no_error_bars_and_the_headline_counts_them(count):
    """Control: ten have both."""
    pairs = [(f"chat/{one}", seconds) for one in range(count) for seconds in (10.0, 4.0 + one % 3)]
    rows = pd.DataFrame(pairs, columns=["prompt", "seconds"]).assign(tokens=10, rounds=5)
    rows["draft"] = rows["kind"] = ["autoregressive", "chain"] * count
    table = measured_speed_ups(rows).assign(sampling="greedy")
    figure = figures.setting_speed_ups(table)
    drawn = [trace.error_x.array is not None for trace in figure.data if trace.showlegend]
    assert drawn and set(drawn) == {count == 10}
    said = {4: "From 4 prompts, too few for intervals", 10: "From 10 prompts, with 95 % intervals"}
    assert figure.layout.title.text.endswith(f"<br>{said[count]}")


def test_marks_without_an_interval_have_no_caps_and_the_headline_says_which():
    """Plotly draws caps around a mark whose error is missing."""
    table = stored("02_depth")
    figure = figures.acceptance(table, **DEPTH, apart=0.06, bare="for all rounds")
    errors = [trace.error_y.array for trace in figure.data if trace.error_y.array is not None]
    assert sum(map(len, errors)) == table.low.notna().sum() < len(table)
    assert figure.layout.title.text.endswith("where 10 or more, none for all rounds")


def test_no_line_joins_the_parts_of_a_series_and_series_stand_apart():
    table = stored("02_temperature")
    table = table[table.series != "reading"]  # three are enough
    said = {"x": "temperature", "x_title": ""}
    figure = figures.acceptance(table.assign(part=table.temperature > 0), **said)
    assert [len(trace.x) for trace in figure.data] == [1, 1, 1, 6, 6, 6]
    apart = [line for line in figures.acceptance(table, **said, apart=0.1).data if line.showlegend]
    assert [line.x[0] for line in apart] == pytest.approx([-0.1, 0.0, 0.1])


@pytest.mark.parametrize("path", sorted(STORED.glob("*.csv")), ids=lambda path: path.stem)
def test_no_stored_figure_has_an_interval_from_fewer_than_ten_prompts(path):
    table = pd.read_csv(path)
    if "prompts" in table:
        pd.testing.assert_frame_equal(table, without_few(table))


def test_what_is_predicted_is_hatched_and_hollow_and_named_and_nothing_else_is():
    look = theme.Look("#000000", hatch="x")
    for way, hatch, symbol in (("predicted", "/", "circle-open"), ("counted", "", "circle")):
        assert (look.found(way).hatch, look.found(way).symbol) == (hatch, symbol)
        figure = figures.paper_and_ours(stored("03b_bandwidth"), **BYTES | {"by": way})
        bars = [bar for bar in figure.data if (bar.type, bar.name) == ("bar", f"ours, {way}")]
        assert bars and {bar.marker.pattern.shape for bar in bars} == {hatch}


def test_speed_ups_without_intervals_are_drawn_beside_one():
    table = stored("04c_free").query("speed_up > 1")
    bare = table.assign(speed_up_low=float("nan"), speed_up_high=float("nan"), prompts=2)
    low, high = figures.free_drafts(bare).layout.xaxis.range
    assert low < 1 and high > table.speed_up.max()
