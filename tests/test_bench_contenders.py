"""The contenders themselves, on tiny random networks and on the embedded ladder."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race import OURS, command, memory, running, texts, timed
from specdec_lib.measure.race.contenders import Contender, ours
from specdec_lib.measure.race.families import drafts
from specdec_lib.measure.race.hugging import assisted, generates, looks_up
from specdec_lib.measure.race.lineup import calibrated, thinned
from specdec_lib.measure.race.running import SAMPLERS, Plan
from specdec_lib.measure.race.storing import restore
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.show import figures
from specdec_lib.workload import Ladder, Prompt

GREEDY, SAMPLED = SAMPLERS
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4)


def network(layers: int, seed: int = 0) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    return (
        GPT2LMHeadModel(
            GPT2Config(vocab_size=17, n_positions=64, n_embd=16, n_layer=layers, n_head=2)
        )
        .double()
        .eval()
    )


def hugging(sampler: Sampler) -> list[Contender]:
    target, draft = network(2), network(1)
    return [
        generates(target, sampler),
        *assisted(target, draft, sampler),
        *looks_up(target, sampler),
    ]


@pytest.mark.parametrize(
    "contender", hugging(GREEDY), ids=lambda one: f"{one.method}, {one.setting}"
)
def test_greedy_hugging_face_writes_our_tokens_whatever_its_setting(contender: Contender) -> None:
    own = decode(
        CachedModel(network(2), "target"), NoDraft(), PROMPT, Chance(0, GREEDY), max_new_tokens=20
    ).tokens
    played = contender.play(PROMPT, 20, 0)
    assert contender.exact and played.tokens == own
    assert 0 < played.timed_tokens < 20 and played.seconds > 0 and 1 <= played.rounds <= 20


@pytest.mark.parametrize(
    "contender", hugging(SAMPLED), ids=lambda one: f"{one.method}, {one.setting}"
)
def test_sampled_hugging_face_writes_as_many_tokens_and_follows_its_seed(
    contender: Contender,
) -> None:
    assert not contender.exact
    assert len(contender.play(PROMPT, 20, 0).tokens) == 20
    assert (
        contender.play(PROMPT, 20, 0).tokens
        == contender.play(PROMPT, 20, 0).tokens
        != contender.play(PROMPT, 20, 1).tokens
    )


def test_token_by_token_all_but_the_first_token_are_timed() -> None:
    played = generates(network(2), GREEDY).play(PROMPT, 20, 0)
    assert (played.timed_tokens, played.rounds) == (19, 20)


def test_a_setting_of_the_assistant_does_not_leak_into_the_next() -> None:
    target, draft = network(2), network(1)
    first, *others = assisted(target, draft, GREEDY)
    once = first.play(PROMPT, 20, 0).rounds
    for other in others:
        other.play(PROMPT, 20, 0)
    assert first.play(PROMPT, 20, 0).rounds == once


@pytest.mark.parametrize(
    "sampler, method", list(itertools.product(SAMPLERS, ("autoregressive", *OURS)))
)
def test_every_grid_is_built_and_what_it_holds_writes_the_targets_text(
    ladder: Ladder, prompts: list[Prompt], sampler: Sampler, method: str, unchecked: None
) -> None:
    grid = drafts(ladder, sampler, method)
    [text] = texts(ladder.target, ladder, prompts[:1], sampler, tokens=8, seed=0)
    some = dict(itertools.islice(grid.items(), 0, None, max(1, len(grid) // 4)))
    made = [
        ours(ladder.target, draft, sampler, method=method, runtime="", setting=name)
        for name, draft in some.items()
    ]
    assert all(len(grid) > 5 or method == "autoregressive" for _ in made)
    assert all(math.isnan(timing.margin) for timing in timed(made, text, ladder.target, seed=0))


def test_an_unknown_method_is_refused(ladder: Ladder) -> None:
    with pytest.raises(ValueError, match="our methods are autoregressive, n-gram"):
        drafts(ladder, GREEDY, "magic")


def test_a_grid_is_thinned_evenly() -> None:
    grid = hugging(GREEDY)
    assert thinned(grid, None) == grid and thinned(grid, 3) == [grid[0], grid[5], grid[11]]


def test_calibration_names_the_slower_precision(ladder: Ladder, prompts: list[Prompt]) -> None:
    [text] = texts(ladder.target, ladder, prompts[:1], GREEDY, tokens=4, seed=0)
    model, note = calibrated(ladder, GREEDY, text)
    assert note.endswith("times as long on 4 tokens")
    assert note.startswith({torch.float32: "bfloat16", torch.bfloat16: "float32"}[model.dtype])
    assert ladder.target.model.dtype == torch.float32


def stored() -> dict[Path, tuple[int, int]]:
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for path in (DATA / "measured").glob("bench_*")
    }


TINY = Plan(prompts=(2, 1), development=1, tokens=4, stages=(1,), most=1)


def test_a_smoke_run_measures_everybody_and_leaves_the_stored_tables_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, unchecked: None
) -> None:
    monkeypatch.setattr(command, "SMOKE", TINY)
    before = stored()
    command.main(["--smoke", "--runtimes", "reference", "--device", "cpu"])
    shown = capsys.readouterr().out
    assert stored() == before and "nothing was kept" in shown
    assert all(
        method in shown
        for method in (
            *OURS,
            "hf_generate",
            "hf_assisted",
            "hf_prompt_lookup",
            "greedy",
            "T = 1, top-k 50",
        )
    )


def test_a_kept_run_writes_its_tables_and_they_make_a_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unchecked: None
) -> None:
    monkeypatch.setattr(command, "Plan", lambda **given: replace(TINY, prompts=(2,)))
    monkeypatch.setattr(running, "SAMPLERS", (GREEDY,))
    monkeypatch.setattr(
        command, "peaks", lambda contenders, device: {("staged", "reference"): memory.Peak(3, 1, 1)}
    )
    monkeypatch.setattr(command, "flatness", lambda contender, device: [(1000, 5), (2000, 5)])
    command.main(["--runtimes", "reference", "--device", "cpu", "--folder", str(tmp_path)])
    [path] = tmp_path.glob("*_prompts.csv")
    name = path.name.removesuffix("_prompts.csv")
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.csv",
        f"{name}_prompts.csv",
        f"{name}_memory.csv",
    }
    main, prompts, used = (
        pd.read_csv(tmp_path / f"{name}{kind}.csv") for kind in ("", "_prompts", "_memory")
    )
    assert set(main.prompt_set) <= {"all", "not looping"} and main.divergences.eq(0).all()
    assert set(main.baseline) == {
        "autoregressive",
        "hf_generate",
        "hf_assisted",
        "hf_prompt_lookup",
    }
    assert (
        main[main.method == "staged"].allowed_bytes.eq(600_000_002).all()
        and main[main.method == "tree"].peak_bytes.isna().all()
    )
    assert (len(prompts), len(used)) == (9 * 2, 3)
    assert isinstance(figures.versus(main, prompt_set="all"), go.Figure)
    with pytest.raises(ValueError, match="this figure needs"):
        figures.versus(main, prompt_set="none")


def test_memory_alone_needs_a_table_to_go_by(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run `make bench` first"):
        restore(tmp_path, "nowhere")


def test_a_process_of_its_own_tells_what_it_used(ladder: Ladder) -> None:
    order = {"method": "staged", "runtime": "reference", "sampler": [0.0, None]}
    order["setting"] = "tree of draft, budget 3, depth 3; n-gram scout of 4"
    told = memory.answer({"device": "cpu", "tokens": 4, "threads": 1, "contenders": [order]})
    target, draft = ladder.target.model, ladder.draft.model
    assert (
        told["weights"] == sum(4 * network.num_parameters() for network in (target, draft))
        and told["peak"] > told["weights"]
    )
    assert told["kv"] == 2 * 4 * 512 * (6 * 384 + 2 * 128) and not told["on_gpu"]


def test_resident_memory_is_read_from_the_systems_own_words() -> None:
    assert (
        memory.resident("VmHWM", "VmPeak:\t 9 kB\nVmHWM:\t  12 kB\nVmRSS:\t 10 kB\n") == 12 * 1024
    )
    assert memory.resident("VmRSS") > 50_000_000
