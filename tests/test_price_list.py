"""Prices of another machine: measured, read, refused, and planned with."""

import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.measure import plan as planning
from specdec_lib.measure import price_list
from specdec_lib.measure.plan import make_plan, write_plan
from specdec_lib.measure.price_list import check_prices, measure_passes, read_prices
from specdec_lib.measure.quiet import Quiet
from specdec_lib.theory import PassTable
from specdec_lib.workload import load_prompts
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")
MODELS = ("target", "middle", "draft")


def table(**changed: object) -> pd.DataFrame:
    """Two rows of each model, in milliseconds of a quick machine."""
    rows = [
        {"model": model, "rows": rows, "seconds": seconds * (1 + rows / 100)}
        for model, seconds in zip(MODELS, (1e-3, 2e-4, 5e-5), strict=True)
        for rows in (1, 16)
    ]
    return pd.DataFrame(rows).assign(**changed)


def test_what_is_measured_is_what_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(price_list, "racing_ladder", lambda edition: tiny_ladder())
    monkeypatch.setattr(price_list, "REPEATS", 2)
    found = measure_passes(Quiet(busy=True), rows=(1, 4), contexts=(16, 40))
    place = tmp_path / "passes.csv"
    found.to_csv(place, index=False)
    assert set(found.edition) == {"exact", "int8"} and len(found) == 2 * 3 * 2 * 2
    read = read_prices(place, "int8")
    own = found[(found.edition == "int8") & (found.model == "middle")]
    [wanted] = own[(own["rows"] == 4) & (own.context_tokens == 40)].seconds
    assert read["middle"].at(4, 40) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="its editions are exact, int8, asked for is none"):
        read_prices(place)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (table().drop(columns="rows"), "it lacks rows"),
        (table(seconds=0.0), "it needs seconds above 0"),
        (table(seconds="soon"), "it needs seconds above 0"),
        (table(rows=0.5), "it needs whole rows from 1"),
        (table(context_tokens=-1), "it needs whole context_tokens from 0"),
        (table().head(0), "it has no rows"),
        (pd.concat([table(), table()]), "target needs one value of seconds per place"),
    ],
)
def test_what_is_no_table_of_rows_and_seconds_is_refused_in_one_line(wrong, said, tmp_path):
    place = tmp_path / "prices.csv"
    wrong.to_csv(place, index=False)
    with pytest.raises(ValueError, match=f"is no table of rows and seconds .{said}") as refused:
        run("plan", "--prices", str(place), "--json", str(tmp_path / "plan.json"))
    assert "\n" not in str(refused.value)
    table().to_csv(place, index=False)  # the control
    assert set(read_prices(place)) == set(MODELS)


def test_a_file_that_is_missing_or_no_table_at_all_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        read_prices(tmp_path / "none.csv")
    place = tmp_path / "empty.csv"
    place.write_text("")
    with pytest.raises(ValueError, match="is no table of rows and seconds"):
        read_prices(place)


def test_a_model_without_a_price_is_named(tmp_path):
    prices = {"target": PassTable((1,), (0,), ((1.0,),))}
    ladder, place = tiny_ladder(), tmp_path / "prices.csv"
    with pytest.raises(ValueError, match="has no seconds of middle, draft, which this ladder runs"):
        check_prices((place, prices), ladder)
    check_prices((place, dict.fromkeys(MODELS, prices["target"])), ladder)
    check_prices(None, ladder)


def test_a_plan_for_another_machine_is_a_forecast_and_races_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(planning, "race_prompts", lambda *given, **more: pytest.fail("it races"))
    monkeypatch.setattr(planning, "timed_passes", lambda *given: pytest.fail("it times"))
    ladder = tiny_ladder()
    both = [load_prompts("chat", split, 2) for split in ("development", "held-out")]
    place = tmp_path / "prices.csv"
    small = {"tokens": 6, "settings": 1}
    verdicts = {}
    for name, cost in {"free": 1.0, "dear": 1e5}.items():
        prices = table()
        prices.loc[prices.model != "target", "seconds"] *= cost
        prices.loc[prices.model == "target", "seconds"] *= 1000  # the host is nothing beside it
        prices.to_csv(place, index=False)
        read = read_prices(place)
        plan = make_plan(ladder, Sampler(0), *both, **small, prices=read)
        assert plan.held_out.empty
        best = plan.forecasts[plan.forecasts.method.isin(["chain", "cascade", "tree"])]
        verdicts[name] = best.speed_up.max()
    assert verdicts["free"] > 1 > verdicts["dear"]
    monkeypatch.setattr(planning, "cache_folder", lambda: tmp_path / "cache")
    about = {"source": "chat", "asked": "fast", "prices": (place, read)}
    write_plan(
        tmp_path / "plan.json", ladder, Sampler(0), tuple(both), small | {"seed": 0}, **about
    )
    said = capsys.readouterr().out
    assert "This is a forecast, nothing was clocked" in said and str(place) in said
    assert (tmp_path / "plan.json").is_file()
