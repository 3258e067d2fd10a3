"""What stands where in the figures of passes, plans and speeds."""

from math import nan
from pathlib import Path

import pandas as pd
import pytest
from test_figures import rows

from specdec_lib.show import figures

STORED_PASSES = pd.read_csv(Path(__file__).parents[1] / "figures" / "05_latency.csv")


def test_passes_are_drawn_as_multiples_of_one_row_and_its_milliseconds_are_written():
    columns = "model runtime rows context_tokens seconds roofline_seconds"
    table = rows(
        columns,
        ("target", "fast", 1, 64, 0.010, 0.008),
        ("target", "fast", 4, 64, 0.030, 0.008),
        ("target", "fast", 1, 9, 9.0, 9.0),
    )
    table = table.assign(low_seconds=table.seconds, high_seconds=table.seconds)
    figure = figures.latency(table)
    lines = {one.name: one for one in figure.data if one.mode == "lines+markers"}
    assert lines["fast"].y == pytest.approx((1.0, 3.0))
    [roof] = [one for one in figure.data if one.name == "fast, roofline"]
    assert roof.y == pytest.approx((0.8, 0.8))  # on the scale of the measured passes
    assert [one.text for one in figure.data if one.text] == [(" fast (one row: 10 ms)",)]
    with pytest.raises(ValueError, match=r"those over one row; target \(fast\) has none"):
        figures.latency(table[table.rows > 1])


def test_no_stored_pass_is_below_the_roofline_that_is_drawn():
    drawn = figures.latency(STORED_PASSES).data
    for panel in {one.xaxis for one in drawn}:
        own = {one.name: one.y for one in drawn if one.xaxis == panel and one.name}
        roofs = [name for name in own if name.endswith(", roofline")]
        assert roofs
        for name in roofs:
            passes = own[name.removesuffix(", roofline")]
            assert all(low <= 1.001 * high for low, high in zip(own[name], passes, strict=True))


def test_slower_than_plain_decoding_is_orange_and_faster_blue():
    cells = rows("budget depth width speed_up", (1, 1, 1, 1.2), (2, 2, 1, 1.5))

    def shades(table: pd.DataFrame) -> tuple[float, float, list[tuple[float, str]]]:
        [drawn] = [one for one in figures.speed_surface(table, about="").data if one.z is not None]
        return drawn.zmin, drawn.zmax, [tuple(one) for one in drawn.colorscale]

    white, blue = "#FFFFFF", "#5BA6D1"
    assert shades(cells) == (1.0, 1.5, [(0, white), (1, blue)])
    slower = cells.assign(speed_up=[0.5, 1.5])
    assert shades(slower) == (0.5, 1.5, [(0, "#EA8A45"), (0.5, white), (1, blue)])


def test_a_draft_has_one_symbol_on_the_map_full_under_its_first_sampler():
    names = ["draft, greedy", "draft, T = 1", "middle, greedy", "middle, T = 1"]
    table = rows(
        "acceptance_rate cost speed_up", *((x, y, 1 + x - y) for x in (0, 1) for y in (0, 1))
    )
    pairs = pd.DataFrame({"pair": names, "acceptance_rate": 0.5, "cost": 0.1})
    figure = figures.break_even(table, pairs, title="")
    found = {one.name: one.marker.symbol for one in figure.data if one.name in names}
    assert list(found) == names
    assert list(found.values()) == ["circle", "circle-open", "square", "square-open"]


def test_kinds_of_prompts_and_choices_of_a_plan_are_written_in_words():
    columns = "domain edition sampling speed_up speed_up_low speed_up_high"
    table = rows(
        columns, ("mt", "exact", "greedy", 1.0, 0.9, 1.1), ("all", "exact", "greedy", 1, 1, 1)
    )
    figure = figures.off_switches(table)
    assert figure.layout.yaxis.ticktext == ("MT-Bench chat", "all kinds")
    assert [one.text for one in figure.layout.annotations] == ["float32, greedy"]
    columns = "pair sampling domain choice ratio ratio_low ratio_high prompts"
    table = rows(
        columns,
        ("p", "greedy", "chat", "the planned draft", 1.1, 1.0, 1.2, 10),
        ("p", "greedy", "chat", "the plan, fixed", 1.2, nan, nan, 10),
    )
    figure = figures.plans(table)
    said = [one.name for one in figure.data if one.showlegend]
    assert said == [
        "the plan: the fixed setting with the best forecast",
        "the planned draft: chooses anew in each round",
    ]
    headline = figure.layout.title.text.replace("<br>", " ")
    assert headline.endswith("with 95 % intervals, none for the plan")


def test_what_if_lines_have_a_star_at_their_best_size():
    table = rows(
        "draft host budget depth speed_up",
        *(("as it is", "busy", size, 1, gain) for size, gain in ((1, 1.2), (2, 1.4), (4, 1.1))),
        ("as it is", "busy", 2, 2, 1.3),
        *(("free", "busy", size, 1, gain) for size, gain in ((1, 1.3), (2, 1.5), (4, 1.9))),
    )
    figure = figures.what_ifs(table, about="greedy")
    stars = [one for one in figure.data if one.mode == "markers"]
    assert [(one.x, one.y) for one in stars] == [((2,), (1.4,)), ((4,), (1.9,))]
    with pytest.raises(ValueError, match="at least 1 node, got 0"):
        figures.what_ifs(table.assign(budget=table.budget - 1), about="")


def test_rivals_stand_from_the_slowest_to_the_fastest_with_their_milliseconds():
    table = rows(
        "family sampling name whose prompts ms_per_token ratio ratio_low ratio_high",
        ("embedded", "greedy", "plain", "int8", 9, 5.0, 3.0, 2.5, 4.0),
        ("embedded", "greedy", "generate", "bfloat16", 9, 30.0, 0.5, nan, nan),
    )
    figure = figures.versus(table)
    assert figure.layout.yaxis.ticktext == ("generate", "plain")
    [quick] = [one for one in figure.data if one.name == "int8" and one.mode == "markers"]
    assert quick.error_x.array[0] == pytest.approx(5 * 3 / 2.5 - 5)
    assert quick.error_x.arrayminus[0] == pytest.approx(5 - 5 * 3 / 4)
