"""The contenders themselves, on tiny random networks and on a tiny ladder."""

import itertools
import math
from dataclasses import replace
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from tiny import tiny_ladder
from transformers import GPT2Config, GPT2LMHeadModel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race import benchmark as whole
from specdec_lib.measure.race import command, harness
from specdec_lib.measure.race.benchmark import SAMPLERS, BenchPlan, benchmark
from specdec_lib.measure.race.contenders import Contender, ours
from specdec_lib.measure.race.families import OURS, drafts
from specdec_lib.measure.race.harness import TargetText, race, target_texts
from specdec_lib.measure.race.hugging import ASSIST, HF, hugging_contenders, llama_cpp
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.show import figures
from specdec_lib.workload import DOMAINS, Prompt

GREEDY, SAMPLED = SAMPLERS
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4)


def network(layers: int) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=17, n_positions=64, n_embd=16, n_layer=layers, n_head=2)
    return GPT2LMHeadModel(config).double().eval()


def hugging(sampler: Sampler) -> list[Contender]:
    target, draft = network(2), network(1)
    return [one for method in HF for one in hugging_contenders(method, target, draft, sampler)]


def label(contender: Contender) -> str:
    return f"{contender.method}, {contender.setting}, {contender.sampler.temperature}"


@pytest.mark.parametrize("contender", hugging(GREEDY) + hugging(SAMPLED), ids=label)
def test_hugging_face_writes_our_tokens_if_greedy_whatever_its_setting(contender):
    made, again, other = (contender.run(PROMPT, 20, seed) for seed in (0, 0, 1))
    assert 0 < made.timed_tokens < len(made.tokens) == 20 and 1 <= made.rounds <= 20
    target, greedy = CachedModel(network(2), "target"), contender.sampler == GREEDY
    own = decode(target, NoDraft(), PROMPT, Chance(0, GREEDY), max_new_tokens=20).tokens
    assert contender.exact == greedy == (made.tokens == own) == (other.tokens == own)
    assert made.tokens == again.tokens


def test_a_setting_of_the_assistant_does_not_leak_into_the_next():
    first, *others = hugging_contenders(ASSIST, network(2), network(1), GREEDY)
    once = first.run(PROMPT, 20, 0).rounds
    for other in others:
        other.run(PROMPT, 20, 0)
    assert first.run(PROMPT, 20, 0).rounds == once


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("method", ("autoregressive", *OURS))
def test_every_draft_of_a_grid_writes_the_text(ladder, prompts, sampler, method, unchecked):
    grid = drafts(ladder, sampler, method)
    some = dict(itertools.islice(grid.items(), 0, None, max(1, len(grid) // 4)))
    run = partial(ours, ladder.target, sampler=sampler, method=method)
    made = [run(draft, setting=name) for name, draft in some.items()]
    texts = target_texts(ladder, prompts[:1], sampler, tokens=8, seed=0)
    [timings] = race(made, texts, ladder.target)
    assert all(math.isnan(timing.margin) and timing.tokens == 8 for timing in timings)
    assert len(grid) > 5 or method == "autoregressive"


def test_an_unknown_method_is_refused(ladder):
    with pytest.raises(ValueError, match=r"our methods are autoregressive, n-gram.* got 'magic'"):
        drafts(ladder, GREEDY, "magic")


TINY = BenchPlan(prompts=2, development=1, tokens=4, most=1)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The command runs the tiny ladder, greedily, on prompts of one domain."""
    monkeypatch.setattr(whole, "DOMAINS", DOMAINS[:1])
    monkeypatch.setattr(whole, "SAMPLERS", (GREEDY,))
    ladders = lambda runtime, **_: tiny_ladder(runtime=runtime)  # noqa: E731
    monkeypatch.setattr(command, "load_ladder", ladders)
    monkeypatch.setattr(command, "cache_folder", lambda: tmp_path / "cache")
    plan = lambda edition="exact", **_: replace(TINY, edition=edition)  # noqa: E731
    monkeypatch.setattr(command, "BenchPlan", plan)


def test_a_run_writes_tables_and_they_make_a_figure(tmp_path, small, unchecked):
    for edition in ("exact", "int8"):
        command.main(["--edition", edition, "--out", str(tmp_path / "out")])
    found = (tmp_path / "out").iterdir()
    place, *beside = sorted(found, key=lambda path: len(path.name))
    ledger, per_prompt = (place.with_stem(place.stem + end) for end in ("_ledger", "_prompts"))
    assert beside == [ledger, per_prompt]
    main = pd.read_csv(place)
    exact, int8 = (main[main.edition == name] for name in ("exact", "int8"))
    assert main.divergences.eq(0).all() and set(exact.baseline) == {"autoregressive", *HF}
    assert set(int8.method) == {"autoregressive", *OURS} and set(int8.runtime) == {"int8"}
    written = pd.read_csv(per_prompt).groupby("edition").size()
    assert written.to_dict() == {"exact": 2 * (2 + len(OURS) + len(HF)), "int8": 2 + 2 * len(OURS)}
    assert isinstance(figures.versus(exact), go.Figure)
    parts = pd.read_csv(ledger).query("edition == 'exact'").groupby("method")
    assert set(parts.groups) == {"autoregressive", *OURS}
    assert ((parts.share.sum() - parts.accounted.first()).abs() < 1e-3).all()


def test_a_run_goes_on_where_it_was(ladder, monkeypatch, tmp_path, small, unchecked):
    raced, tuned = [], []
    race_one, tune = harness.race, whole.tune_contenders
    monkeypatch.setattr(harness, "race", lambda *a, **b: (raced.append(b), race_one(*a, **b))[1])
    monkeypatch.setattr(whole, "tune_contenders", lambda *a: (tuned.append(a), tune(*a))[1])

    def run(count: int, **changed) -> list:
        plan = replace(TINY, edition="int8", prompts=count, **changed)
        [(timings, _)] = benchmark(ladder, plan, print, tmp_path)
        return [replace(one, margin=0.0) for one in timings]  # NaN is no equal of NaN

    first = run(1)
    assert run(1) == first and (len(raced), len(tuned)) == (1, len(OURS))
    assert run(2)[: len(first)] == first and (len(raced), len(tuned)) == (2, len(OURS))
    run(1, tokens=5)  # the negative control: another plan starts anew
    assert (len(raced), len(tuned)) == (3, 2 * len(OURS))
    for kept in tmp_path.glob("**/*.json"):  # a power cut
        kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
    assert [one.prompt for one in run(1)] == [one.prompt for one in first]
    assert (len(raced), len(tuned)) == (4, 3 * len(OURS))


def test_llama_cpp_races_where_it_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SPECDEC_TARGET_GGUF", "model.gguf")
    assert llama_cpp(GREEDY) is None and "llama-bench is on no PATH" in capsys.readouterr().out
    program = tmp_path / "llama-bench"
    program.write_text('#!/bin/sh\necho "[{\\"samples_ns\\": [8000000], \\"told\\": \\"$*\\"}]"\n')
    program.chmod(0o755)
    contender = llama_cpp(GREEDY)
    made = contender.run(PROMPT, 4, 0)
    assert (made.timed_tokens, made.seconds, made.tokens) == (4, 0.008, ())
    target = CachedModel(network(1), "target")
    asked = Prompt("a", "a", "own", "held-out", "here")
    [timing] = next(race([contender], [TargetText(asked, PROMPT, (0,) * 4, 0)], target))
    assert (timing.tokens, timing.method) == (4, "llama.cpp") and math.isnan(timing.repetition)
    program.write_text("#!/bin/sh\necho no such file >&2; exit 1\n")
    with pytest.raises(ValueError, match=r"llama-bench failed on model\.gguf: no such file"):
        contender.run(PROMPT, 4, 0)
