"""What models of larger sizes take: the measurement on a tiny shape, and what the guide says."""

import json

import pandas as pd
import pytest
import torch
import transformers as hub
from verbs import run

from specdec_lib.measure import shapes, sizes
from specdec_lib.measure.pages import RESULTS
from specdec_lib.measure.sizes import EDITIONS, ROWS, SHOWN, measured_here, sizes_page
from specdec_lib.models.loading import load_model

TINY = hub.SmolLM3Config(
    vocab_size=300,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    tie_word_embeddings=True,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(shapes, "cache_folder", lambda: tmp_path)
    monkeypatch.setitem(shapes.CONFIGS, "tiny", TINY)
    monkeypatch.setattr(shapes, "SHARD", 20_000)
    return shapes.shaped_model("tiny")


def test_a_shape_is_written_once_in_shards_and_loads(folder):
    index = json.loads((folder / shapes.INDEX).read_text())["weight_map"]
    assert len({*index.values()}) > 1
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert shapes.shaped_model("tiny") == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    network = load_model(folder, "target", device="cpu", dtype="bfloat16").model
    assert network.dtype == torch.bfloat16 and network.config.num_hidden_layers == 4


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_edition_of_a_shape_is_measured(folder, edition, unchecked):
    found = measured_here(folder, "tiny", edition, threads=1)
    measured = [f"ms_{count}" for count in ROWS]
    measured += [f"{kind}_{way}_ms" for kind in ("plain", "tree") for way in ("greedy", "drawn")]
    assert all(found[name] > 0 for name in [*measured, "load_seconds", "peak_mib", "sum_ms"])
    numbers = sum(map(torch.numel, load_model(folder, "t", device="cpu").model.parameters()))
    assert found["parameters"] == numbers
    assert sizes_page(pd.DataFrame([found])).count("\n") == 2


def test_an_unknown_shape_is_refused_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(sizes, "measure_sizes", lambda *given: pytest.fail("it began"))
    with pytest.raises(ValueError, match=r"models are Qwen3-0\.6B, .*, got Qwen9"):
        run("measure", "sizes", "--models", "Qwen9", "--csv", str(tmp_path / "t.csv"))


def test_what_the_guide_says_about_larger_sizes_is_measured():
    table = pd.read_csv(SHOWN)
    assert f"<!-- sizes: begin -->\n{sizes_page(table)}\n<!--" in RESULTS.read_text("utf-8")
    assert table.groupby("model").size().tolist() == [6, 6, 6, 6]
    ours = table[table.edition != "Hugging Face bfloat16"]
    assert (ours.peak_mib < 1.3 * ours.edition_mib + 600).all()
    assert (ours.ms_8 < 1.4 * ours.ms_1).all()
    one_thread = ours[ours.threads == 1]
    assert (one_thread.ms_16 / one_thread.ms_1).between(1.6, 2.7).all()
    alone = table[table.threads == 1].pivot(index="model", columns="edition", values="ms_1")
    share = alone["int8"] / alone["Hugging Face bfloat16"]
    assert share.between(0.19, 0.26).all()
    int8 = table[(table.edition == "int8") & (table.threads == 1)]
    assert (int8.ms_1 < 1.1 * int8.sum_ms).all()
    faster = ours.pivot(index=["model", "edition"], columns="threads", values="ms_1")
    gains = faster[1] / faster[2]
    assert gains.max() < 2 and gains.idxmin() == ("Gemma-3-1B", "exact") and gains.min() < 1.05
