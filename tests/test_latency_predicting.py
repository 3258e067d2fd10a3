"""Tokens per second from passes and tables: exact in a world as simple as their model."""

import itertools
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import Shape
from specdec_lib.measure import latency
from specdec_lib.measure.latency import (
    Measuring,
    Ranges,
    few_settings,
    measuring,
    predict,
    stored_tables,
)
from specdec_lib.measure.latency.predict import (
    beside_predictions,
    fit_overheads,
    measured_speed_ups,
    predict_speeds,
)
from specdec_lib.measure.machine import HERE, clocked_file, machine_called, stored_clocked
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.settings.names import AUTOREGRESSIVE as PLAIN
from specdec_lib.models.loading import on_runtime
from specdec_lib.theory import Overhead, PassTable, Work, expected_tokens
from specdec_lib.theory.chains import chain_speed_up
from specdec_lib.theory.planner import best_chain_speed_up, tree_gains, tree_work
from specdec_lib.theory.work import plain_work

TABLES = {"target": PassTable((1, 8), (0, 100), ((4.0, 11.0), (5.0, 12.0)))}
TABLES |= {"draft": PassTable((1, 2), (0,), ((1.0, 1.5),))}
HOST = Overhead(0.5, 0.1, 0.25)


def work(length: int, rounds: int = 10, tokens: int = 20) -> Work:
    """Rounds of a chain without context."""
    passes = {("target", length + 1, 0): rounds, ("draft", 1, 0): rounds * length}
    return Work(tokens, rounds, rounds * length, passes)


def test_seconds_are_those_of_all_passes_and_of_what_lies_around_them():
    two = work(2)
    assert two.model_seconds(TABLES) == pytest.approx(10 * 6 + 20 * 1)
    assert two.seconds(TABLES, HOST) == pytest.approx(80 + 10 * 0.5 + 20 * 0.1 + 20 * 0.25)
    assert two.tokens_per_second(TABLES) == pytest.approx(20 / 80)
    assert two.tokens_per_round == 2 and two.draft_passes == 20


def test_a_trees_work_is_a_draft_pass_per_level_over_its_inner_nodes():
    shape, rates = Shape.of_widths((2, 2, 1)), [[0.5, 0.3]]
    found = tree_work(shape, rates, context=7)
    passes = {("target", 11, 7): 1, ("draft", 1, 7): 1, ("draft", 2, 7): 1, ("draft", 4, 7): 1}
    assert found.passes == passes and found.guesses == 10
    assert found.tokens == expected_tokens(shape, rates)
    assert plain_work(context=7).passes == {("target", 1, 7): 1}
    chain = tree_work(Shape.chain(3), [[0.5]])
    assert chain.passes == {("target", 4, 256): 1, ("draft", 1, 256): 3}


def made_up(length: int) -> dict[str, object]:
    """What a machine with exactly these tables and overheads would show."""
    one = work(length)
    outside = one.seconds(TABLES, HOST) - one.model_seconds(TABLES)
    return {"method": "chain", "setting": length, "work": one, "outside": outside}


def test_an_overhead_is_found_again_and_then_predictions_are_exact():
    """Control: with the wrong table they are not."""
    chains = pd.DataFrame(made_up(length) for length in (1, 2, 4))
    found = fit_overheads(chains)["chain"]
    table = predict_speeds(chains, TABLES).set_index("draft")
    for one in chains.itertuples():
        seconds = one.work.seconds(TABLES, HOST)
        assert one.work.seconds(TABLES, found) == pytest.approx(seconds)
        assert table.predicted[one.setting] == pytest.approx(one.work.tokens / seconds)
        assert table.host_share[one.setting] == pytest.approx(one.outside / seconds)
    slower = {"target": TABLES["target"].faster(0.5), "draft": TABLES["draft"]}
    wrong = predict_speeds(chains, slower).set_index("draft").predicted
    assert (wrong < 0.8 * table.predicted).all()
    plain = {"work": Work(10, 10, 0, {("target", 1, 0): 10}), "outside": 5.0}
    alone = pd.DataFrame([plain | {"method": PLAIN, "setting": ""}])
    assert fit_overheads(alone) == {PLAIN: Overhead(0.5, 0.0, 0.0)}


ROUNDS = [(PLAIN, "a", 10), (PLAIN, "b", 10), ("chain", "a", 4), ("chain", "b", 6)]
ROWS = pd.DataFrame(ROUNDS, columns=["setting", "prompt", "rounds"])
ROWS = ROWS.assign(method=ROWS.setting, tokens=10, seconds=1.0 * ROWS["rounds"])


def test_a_speed_up_is_paired_by_prompt_and_stands_beside_its_prediction():
    table = measured_speed_ups(ROWS).set_index("draft")
    assert table.measured.to_dict() == {PLAIN: 1.0, "chain": 2.0} and table.speed_up["chain"] == 2.0
    assert table.tokens_per_round["chain"] == 2.0 and table.speed_up_low.isna().all()
    ten = [ROWS.assign(prompt=ROWS.prompt + str(copy)) for copy in range(5)]
    table = measured_speed_ups(pd.concat(ten)).set_index("draft")
    assert table.speed_up_low[PLAIN] == table.speed_up_high[PLAIN] == 1.0
    assert table.speed_up_low["chain"] < 2 < table.speed_up_high["chain"]
    foresight = pd.DataFrame({"draft": [PLAIN, "chain"], "predicted": [1.1, 1.9]})
    table = beside_predictions(foresight.assign(tokens_per_round=0.1), ROWS)
    assert table.error.tolist() == pytest.approx([0.1, -0.05])
    assert table.predicted_speed_up.tolist() == pytest.approx([1, 1.9 / 1.1])


def test_gains_of_trees_follow_from_rates_and_tables():
    rates, grid = [[0.6, 0.2]], {"budgets": (1, 3), "depths": (1, 2), "widths": (1, 2)}
    limits = {**grid, "context": 0, "overhead": HOST, "plain": Overhead(0.5)}
    gains = tree_gains(rates, TABLES, **limits)
    found = [(gain.width, gain.depth, gain.budget) for gain in gains]
    assert found == list(itertools.product((1, 2), (1, 2), (1, 3)))
    seconds = TABLES["target"].at(2) + TABLES["draft"].at(1) + 0.5 + 0.1 + 0.25
    assert gains[0].speed_up == pytest.approx(1.6 / seconds * (TABLES["target"].at(1) + 0.5))
    faster = TABLES | {"draft": TABLES["draft"].faster(10)}
    quick = tree_gains(rates, faster, **limits)
    assert all(new.speed_up > old.speed_up for new, old in zip(quick, gains, strict=True))
    with pytest.raises(ValueError, match="at least one budget"):
        tree_gains(rates, TABLES, budgets=(), depths=(1,), widths=(1,))


def test_the_best_chain_is_the_best_of_all_lengths():
    gains = [chain_speed_up(0.7, length, 0.2) for length in range(1, 13)]
    assert best_chain_speed_up(0.7, 0.2) == max(gains) > gains[0]
    assert best_chain_speed_up(0.1, 0.9) < 1


def test_tables_are_read_by_machine(tmp_path, monkeypatch):
    """All four of one machine, or none; this one may be of the README's kind."""
    monkeypatch.setattr("specdec_lib.measure.machine.machine_name", lambda: "mine")
    here = pd.DataFrame({"a": [1.5, 2.25]})
    raced = here.assign(b=1)
    monkeypatch.setattr(measuring, "stored_clocked", partial(stored_clocked, folder=tmp_path))
    for name in ("latency", "ledger", "speeds"):
        here.to_csv(clocked_file(name, folder=tmp_path), index=False)
        raced.to_csv(clocked_file(name, RACED, folder=tmp_path), index=False)
    for machine in ("", HERE):
        with pytest.raises(ValueError, match=r"no table sweeps of .* `specdec measure latency`"):
            stored_tables(machine)
    raced.to_csv(clocked_file("sweeps", RACED, folder=tmp_path), index=False)
    here.to_csv(clocked_file("sweeps", folder=tmp_path), index=False)
    for machine, table in ("", raced), (HERE, here):
        found = stored_tables(machine)
        assert len(found) == 4 and all(one.equals(table) for one in found.values())
    with pytest.raises(ValueError, match=r"no table latency of other is stored in .*, there are"):
        stored_tables("other")
    called = [machine_called(one) for one in ("", HERE, "other")]
    assert called == [RACED, "mine", "other"]


def test_a_finished_table_is_kept_and_a_shared_draft_is_timed_once(ladder, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "cache_folder", lambda: tmp_path)
    ranges = Ranges((1, 2), (16,), 1, settings=few_settings)
    target = replace(ladder, target=on_runtime(ladder.target, "fast"))
    one = Measuring({"first": ladder, "second": target}, ranges, keep=True, progress=False)
    table = one.table("latency")
    runtimes = table.groupby("model").runtime.unique().map(list)
    assert runtimes["target"] == ["first", "second"] and runtimes["draft"] == ["first"]
    assert set(latency.pass_tables(table, "first")) == set(runtimes.index)
    monkeypatch.setattr(measuring, "time_passes", lambda *_, **__: pytest.fail("timed again"))
    again = one.table("latency")
    assert again.seconds.tolist() == pytest.approx(table.seconds.tolist())
    plain = table[(table.runtime == "second") & (table.model == "target")]
    assert (plain.roofline_seconds <= plain.seconds * 1.0001).all()


def test_finished_turns_are_kept_where_a_run_may_go_on(ladder, tmp_path, monkeypatch):
    """And never where what is timed is to be of now."""
    monkeypatch.setattr(predict, "cache_folder", lambda: tmp_path)
    ranges = Ranges((1, 2), (16,), 1, prompts=1, max_new_tokens=4, settings=few_settings)
    options = {"quiet": Quiet(busy=True), "progress": False}

    def speeds(keep: bool) -> pd.DataFrame:
        return predict.time_settings(ladder, Sampler(0.0), ranges, keep=keep, **options)

    speeds(False)
    assert not [*tmp_path.iterdir()]
    first = speeds(True)
    assert first.equals(speeds(True)) and not first.measured.equals(speeds(False).measured)


def test_a_small_measurement_gives_all_four_tables(ladder):
    little = {"temperatures": (0.0,), "domains": ("math",), "prompts": 1, "max_new_tokens": 4}
    ranges = Ranges((1, 2), (16,), 1, **little, settings=few_settings)
    found = Measuring({"reference": ladder}, ranges, progress=False).tables()
    sizes = {name: len(table) for name, table in found.items() if name != "ledger"}
    assert sizes == {"latency": 6, "speeds": 2 * 5, "sweeps": 5}
    assert all(set(table.runtime) == {"reference"} for table in found.values())
    assert (found["latency"].roofline_seconds > 0).all() and found["sweeps"].domain[0] == "math"
    assert set(found["ledger"].temperature) == {0.0, 1.0}
    columns = {"machine", "state", "threads", "cores", "date"}
    assert all(columns <= set(table) and table.cores.min() > 0 for table in found.values())
