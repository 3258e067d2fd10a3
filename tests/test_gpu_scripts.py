"""The measurements that need a GPU run through on the CPU at a tiny size, go on where they stopped, and their tables say what they should."""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_lib.gpu import exactness, headline, latency, ledger, training
from specdec_lib.gpu.contenders import graphed, looped, shapes
from specdec_lib.gpu.setting import Kept, random_model, recipe, seconds_of
from specdec_lib.theory import ModelShape

pytestmark = pytest.mark.usefixtures("unchecked")
METHODS = {"autoregressive", "chain", "tree", "staged chain", "staged tree", "cascade"}


def table(folder: Path, kind: str) -> list[dict[str, str]]:
    [path] = [path for path in folder.glob(f"{kind}_*.csv") if "timings" not in path.name]
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tiny(main, folder: Path, *options: object) -> None:
    main(["--tiny", "--device", "cpu", "--folder", str(folder), *map(str, options)])


def test_latency_times_every_mode_beside_its_limits_and_only_once(tmp_path, capsys, monkeypatch):
    tiny(latency.main, tmp_path, "--dtype", "float32")
    rows = table(tmp_path, "latency")
    assert len(rows) == 4 * 2 * 2  # models, numbers of rows, modes
    assert {row["mode"] for row in rows} == {"Hugging Face eager", "lean eager"}
    assert all(float(row["low_seconds"]) <= float(row["seconds"]) <= float(row["high_seconds"]) for row in rows)
    assert all(0 < float(row["bandwidth_seconds"]) <= float(row["roofline_seconds"]) for row in rows)
    monkeypatch.setattr(latency, "measured", None)  # nothing is left to be measured
    tiny(latency.main, tmp_path, "--dtype", "float32")
    assert table(tmp_path, "latency") == rows
    assert "bandwidth_seconds" in capsys.readouterr().out


def test_exactness_compares_every_runtime_and_fails_where_float32_parts(tmp_path, capsys, monkeypatch):
    tiny(exactness.main, tmp_path, "--dtypes", "float32")
    rows = table(tmp_path, "exactness")
    assert {(row["runtime"], row["method"]) for row in rows} >= {("graph loop", "staged tree"), ("whole rounds", "tree"), ("reference loop", "chain")}
    assert all(row["texts_that_part"] == "0" and row["largest_margin"] == "" for row in rows)
    every = exactness.writers

    def wrong(ladder, sampler, device):
        found = dict(list(every(ladder, sampler, device).items())[:2])
        first, second = found
        return {first: found[first], second: lambda prompt, count, seed: found[first](prompt, count, seed + 1)}

    monkeypatch.setattr(exactness, "writers", wrong)
    monkeypatch.setattr(exactness, "SAMPLERS", {"top-k 50": exactness.SAMPLERS["top-k 50"]})
    with pytest.raises(SystemExit, match="in float32 1 methods wrote another text"):
        tiny(exactness.main, tmp_path / "wrong", "--dtypes", "float32")
    [row] = table(tmp_path / "wrong", "exactness")
    assert float(row["share"]) == 1 and float(row["largest_margin"]) > 0


def test_the_parts_of_a_ledger_make_up_the_wall_time(tmp_path):
    tiny(ledger.main, tmp_path, "--dtype", "float32")
    rows = table(tmp_path, "ledger")
    assert {row["method"] for row in rows if row["runtime"] == "graph loop"} == METHODS
    for runtime, method, sampling in {(row["runtime"], row["method"], row["sampling"]) for row in rows}:
        shares = [float(row["share"]) for row in rows if (row["runtime"], row["method"], row["sampling"]) == (runtime, method, sampling)]
        assert abs(sum(shares) - 1) < 0.05 and min(shares) > -0.01


def test_the_headline_trains_times_and_compares(tmp_path, capsys):
    cache = tmp_path / "cache"
    with pytest.raises(ValueError, match=r"there is no .*; train it with `python -m specdec_lib.gpu.training --model 'target'"):
        tiny(headline.main, tmp_path, "--cache", cache)
    for name in ("target", "draft of 2 layers"):
        tiny(training.main, tmp_path, "--cache", cache, "--model", name)
    assert "tokens in" in capsys.readouterr().out
    tiny(headline.main, tmp_path, "--cache", cache, "--dtype", "float32")
    rows = table(tmp_path, "headline")
    assert {row["method"] for row in rows if row["runtime"] == "graph"} == METHODS == {row["method"] for row in rows if row["runtime"] == "eager"}
    assert {row["method"] for row in rows if row["runtime"] == "Hugging Face"} == {"hf_generate", "hf_assisted", "hf_prompt_lookup"}
    plain = [row for row in rows if row["method"] == "autoregressive"]
    assert all(float(row["ratio"]) == float(row["bytes_per_token_to_autoregressive"]) == float(row["tokens_per_round"]) == 1 for row in plain)
    before = rows
    tiny(headline.main, tmp_path, "--cache", cache, "--dtype", "float32")  # times are kept, so the table is the same
    assert table(tmp_path, "headline") == before


def test_training_goes_on_from_its_weights(tmp_path):
    for tokens in (256, 512):
        tiny(training.main, tmp_path, "--cache", tmp_path, "--model", "draft of 5 layers")
        assert f'"tokens": {tokens}' in training.weights_path(tmp_path, "draft of 5 layers").with_suffix(".json").read_text()


def test_the_loop_and_whole_rounds_write_the_same_with_as_many_passes(ladder):
    from specdec_lib.chance import Sampler
    from specdec_lib.draft import TreeDraft

    prompt, shape, sampler = ladder.encode("def add(a, b):\n"), shapes(widths=(2, 2))["tree"], Sampler(1.0, top_k=50)
    one = looped(ladder.target, TreeDraft(ladder.draft, shape=shape), sampler, "cpu")(prompt, 12, 3)
    other = graphed(ladder.target.model, ladder.draft.model, shape, sampler)(prompt, 12, 3)
    assert (one.tokens, one.rounds) == (other.tokens, other.rounds)
    assert one.work["target"][0] == other.work["target"][0]


def test_a_ratio_is_time_per_token_against_plain_decoding_of_the_same_runtime():
    def row(runtime, method, prompt, seconds, passes):
        counts = {"target_passes": passes, "target_rows": passes, "draft_passes": math.nan, "draft_rows": math.nan}
        return (
            {"sampling": "greedy", "prompt": prompt, "runtime": runtime, "method": method, "tokens": 10, "seconds": seconds, "rounds": passes}
            | {"repetition": 0.9 if prompt == "looping" else 0.0}
            | counts
        )

    rows = [row("graph", "autoregressive", prompt, 1.0, 10) for prompt in ("looping", "calm")]
    rows += [row("graph", "chain", "looping", 0.1, 2), row("graph", "chain", "calm", 0.5, 5)]
    made = headline.table(rows, {"target": ModelShape(1, 8, 10)}, "draft", 0)
    found = {(one["prompt_set"], one["method"]): one for one in made}
    assert found["all", "chain"]["ratio"] == pytest.approx(2 / 0.6)
    assert found["not looping", "chain"]["ratio"] == pytest.approx(2.0)
    assert found["not looping", "chain"]["bytes_per_token_to_autoregressive"] == pytest.approx(0.5)
    assert found["not looping", "chain"]["tokens_per_round"] == 2


def test_a_kept_table_replaces_rows_of_the_same_keys(tmp_path):
    def opened():
        return Kept(tmp_path / "table.csv", ("name", "value"), ("name",))

    opened().add([{"name": "one", "value": 1}, {"name": "two", "value": 2}], "cpu")
    opened().add([{"name": "two", "value": 3}], "cpu")
    assert [(row["name"], row["value"]) for row in opened().rows] == [("one", "1"), ("two", "3")]
    assert opened().has(name="one") and not opened().has(name="three")


def test_everybody_takes_turns_and_the_first_turn_is_not_counted():
    order = []
    found = seconds_of({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, "cpu", repeats=2, inner=2)
    assert "".join(order) == "aabb" * 3
    assert {name: len(seconds) for name, seconds in found.items()} == {"a": 2, "b": 2}


def test_the_sizes_are_those_of_gpt2_large_and_of_forty_million():
    sizes = {}
    for name in ("target", "draft of 2 layers", "draft of 5 layers", "draft of 8 layers"):
        shape = recipe(name, tiny=False, positions=1024)
        sizes[name] = 12 * shape.layers * shape.width**2 + shape.vocabulary * shape.width
    assert sizes.pop("target") == pytest.approx(772e6, rel=0.001)
    assert all(40e6 < size < 43e6 for size in sizes.values())
    assert random_model(recipe("target", tiny=True, positions=64), "cpu", "float32").config.vocab_size == 50257


def test_nothing_is_needed_that_a_bare_machine_lacks():
    names = "pandas plotly dask distributed numba llvmlite beartype papermill ipywidgets jupyterlab nbval".split()
    code = "\n".join(
        [
            "import sys",
            *(f"sys.modules[{name!r}] = None" for name in names),
            *(f"import specdec_lib.gpu.{name}" for name in ("latency", "exactness", "ledger", "training", "headline")),
        ]
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    assert made.returncode == 0, made.stderr
