"""The contenders themselves, on tiny random networks and on a tiny ladder."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from tiny import tiny_ladder
from transformers import GPT2Config, GPT2LMHeadModel

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import bench, racing, target_text, tuned_methods
from specdec_lib.measure.bench import SAMPLERS, benchmark
from specdec_lib.measure.contenders import hugging_contenders, llama_cpp, our_contenders
from specdec_lib.measure.race_table import beside_plain
from specdec_lib.measure.racing import race
from specdec_lib.measure.settings.bench import OURS, bench_settings
from specdec_lib.measure.settings.names import ASSIST, HF
from specdec_lib.measure.target_text import TargetText, write_text
from specdec_lib.measure.tuned_methods import BenchPlan
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.show import figures
from specdec_lib.workload import DOMAINS
from tests.verbs import run

GREEDY = SAMPLERS[0]
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4)


def network(layers: int) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=17, n_positions=64, n_embd=16, n_layer=layers, n_head=2)
    return GPT2LMHeadModel(config).double().eval()


HUGGING = [
    one
    for sampler in SAMPLERS[:2]
    for method in HF
    for one in hugging_contenders(method, network(2), network(1), sampler)
]


@pytest.mark.parametrize("one", HUGGING, ids=lambda one: f"{one.method}, {one.setting}")
def test_hugging_face_writes_our_greedy_tokens_and_follows_its_seed(one):
    made, again, other = (one.run(PROMPT, 20, seed) for seed in (0, 0, 1))
    assert len(made.tokens) == 20 and made.tokens == again.tokens
    assert 0 < made.timed_tokens < 20 and made.seconds > 0 and 1 <= made.rounds <= 20
    assert one.exact == (one.sampler == GREEDY) == (made.tokens == other.tokens)
    asked = (CachedModel(network(2), "target"), NoDraft(), PROMPT, Chance(0, GREEDY))
    assert one.exact == (decode(*asked, max_new_tokens=20).tokens == made.tokens)


def test_a_setting_of_the_assistant_does_not_leak_into_the_next():
    first, *others = hugging_contenders(ASSIST, network(2), network(1), GREEDY)
    once = first.run(PROMPT, 20, 0).rounds
    for other in others:
        other.run(PROMPT, 20, 0)
    assert first.run(PROMPT, 20, 0).rounds == once


@pytest.mark.parametrize("sampler", SAMPLERS[:2])
@pytest.mark.parametrize("method", ("autoregressive", *OURS))
def test_every_draft_of_a_grid_writes_the_text(ladder, prompts, sampler, method, unchecked):
    grid = bench_settings(ladder, sampler, method)
    made = our_contenders(ladder.target, grid[:: max(1, len(grid) // 4)])
    text = write_text(ladder, prompts[0], sampler, max_new_tokens=8)
    assert all(timing.same for timing in race(made, text, ladder.target))
    assert len(grid) > 5 or method == "autoregressive"


def stored() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (DATA / "measured").glob("race_*")}


@pytest.fixture
def small(monkeypatch):
    """The command runs the tiny ladder on prompts of one domain."""
    monkeypatch.setattr(target_text, "DOMAINS", DOMAINS[:1])
    monkeypatch.setattr(bench, "load_ladder", lambda runtime, **_: tiny_ladder(runtime=runtime))


TINY = BenchPlan((2, 1, 1), others=1, development=1, tokens=4, stages=(1,), most=1)


def test_a_smoke_run_of_int8_races_ours_and_stores_nothing(monkeypatch, capsys, small, unchecked):
    before = stored()
    monkeypatch.setattr(bench, "SMOKE", replace(TINY, prompts=(1,)))
    monkeypatch.setattr(bench, "SAMPLERS", SAMPLERS[:1])
    run("bench", "--smoke", "--edition", "int8")
    shown = capsys.readouterr().out
    assert stored() == before and "nothing was kept" in shown
    assert all(word in shown for word in OURS) and not any(word in shown for word in HF)


def test_a_kept_run_writes_tables_and_they_make_a_figure(monkeypatch, tmp_path, small, unchecked):
    monkeypatch.setattr(tuned_methods, "BenchPlan", lambda **given: replace(TINY, prompts=(2,)))
    monkeypatch.setattr(bench, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(bench, "SAMPLERS", (GREEDY,))
    run("bench", "--out", str(tmp_path / "out"))
    found = (tmp_path / "out").iterdir()
    place, *beside = sorted(found, key=lambda path: len(path.name))
    ledger, per_prompt = (place.with_stem(place.stem + end) for end in ("_ledger", "_prompts"))
    assert beside == [ledger, per_prompt]
    main = pd.read_csv(place)
    assert set(main.domain) == {"all", DOMAINS[0]} and main.divergences.eq(0).all()
    assert set(main.baseline) == {"autoregressive", *HF}
    assert main.setting[main.method == "hf_generate"].str.contains(" took ").all()
    assert len(pd.read_csv(per_prompt)) == (len(OURS) + 1) * 2 + 1 + len(HF)
    assert isinstance(figures.versus(beside_plain(main)), go.Figure)
    parts = pd.read_csv(ledger).groupby("method")
    assert set(parts.groups) == {"autoregressive", *OURS}
    assert ((parts.share.sum() - parts.accounted.first()).abs() < 1e-3).all()


def test_a_run_goes_on_where_it_was(ladder, monkeypatch, tmp_path, small, unchecked):
    raced, tuned = [], []
    race_one, tune = racing.race, bench.tune_lineup
    monkeypatch.setattr(racing, "race", lambda *a, **b: (raced.append(b), race_one(*a, **b))[1])
    monkeypatch.setattr(bench, "tune_lineup", lambda *a: (tuned.append(a), tune(*a))[1])
    monkeypatch.setattr(bench, "SAMPLERS", (GREEDY,))

    def run(count: int, **changed) -> list:
        plan = replace(TINY, prompts=(count,), hugging=False, **changed)
        [(timings, *_)] = benchmark({"fast": ladder}, plan, print, tmp_path)
        return [replace(one, margin=0.0) for one in timings]  # NaN is no equal of NaN

    first = run(1)
    assert run(1) == first and (len(raced), len(tuned)) == (1, 1)
    assert run(2)[: len(first)] == first and (len(raced), len(tuned)) == (2, 1)
    run(1, seed=1)  # the negative control: another plan starts anew
    assert (len(raced), len(tuned)) == (3, 2)
    for kept in tmp_path.glob("*/*/*.json"):  # a power cut
        kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
    assert [one.prompt for one in run(1)] == [one.prompt for one in first]
    assert (len(raced), len(tuned)) == (4, 3)


def test_without_top_k_only_plain_decoding_and_the_best_race(ladder, small, unchecked):
    found = list(benchmark({"reference": ladder}, replace(TINY, hugging=False), print))
    raced = [{one.method for one in timings} for timings, *_ in found]
    assert raced[0] == raced[1] == {"autoregressive", *OURS}
    [best] = raced[2] - {"autoregressive", "tree"}
    assert best == found[1][1].chosen and found[2][1].best.keys() == raced[2] - {"autoregressive"}


def test_llama_cpp_races_where_it_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SPECDEC_TARGET_GGUF", "model.gguf")
    assert llama_cpp(GREEDY) is None and "llama-bench is not on the PATH" in capsys.readouterr().out
    program = tmp_path / "llama-bench"
    program.write_text('#!/bin/sh\necho "[{\\"samples_ns\\": [8000000], \\"told\\": \\"$*\\"}]"\n')
    program.chmod(0o755)
    contender = llama_cpp(GREEDY)
    made = contender.run(PROMPT, 4, 0)
    assert (made.timed_tokens, made.seconds, made.tokens) == (4, 0.008, ())
    target = CachedModel(network(1), "target")
    [timing] = race([contender], TargetText("a", "", GREEDY, 0, (0,) * 4, 4, given=PROMPT), target)
    assert (timing.tokens, timing.method) == (4, "llama.cpp") and timing.repetition is None
    program.write_text("#!/bin/sh\necho no such file >&2; exit 1\n")
    with pytest.raises(ValueError, match=r"llama-bench failed on model\.gguf: no such file"):
        contender.run(PROMPT, 4, 0)
    monkeypatch.delenv("SPECDEC_TARGET_GGUF")
    assert llama_cpp(GREEDY) is None and "names no file" in capsys.readouterr().out
