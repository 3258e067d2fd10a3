import csv
import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from fakes import fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode, loop
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race import (
    COLUMNS,
    Contender,
    Played,
    Portions,
    Text,
    Timing,
    divergence,
    ours,
    rows,
    timed,
    tuned,
    write,
)

GREEDY = Sampler(0)
PROMPT = (1, 0, 2)


def timing(
    method: str,
    prompt: str,
    seconds: float,
    tokens: int = 10,
    runtime: str = "reference",
    **more: float,
) -> Timing:
    return Timing(
        **{
            "method": method,
            "runtime": runtime,
            "setting": "any",
            "temperature": 0.0,
            "top_k": 0,
            "prompt": prompt,
            "tokens": tokens,
        }
        | {
            "timed_tokens": tokens,
            "seconds": seconds,
            "least_seconds": seconds,
            "rounds": 5,
            "repetition": 0.1,
            "margin": math.nan,
            "load": 0.5,
        }
        | more
    )


def table(timings: list[Timing], looping: frozenset[str] = frozenset()) -> list[dict]:
    return rows(
        timings, {0.0: looping}, chosen={0.0: "staged"}, memory={("staged", "reference"): (5, 7)}
    )


def one(
    found: list[dict],
    method: str,
    baseline: str,
    prompt_set: str = "all",
    runtime: str = "reference",
) -> dict:
    [row] = [
        row
        for row in found
        if (row["method"], row["baseline"], row["prompt_set"], row["runtime"])
        == (method, baseline, prompt_set, runtime)
    ]
    return row


def fake(
    name: str,
    seconds: float,
    *,
    tokens: tuple[int, ...] | None = None,
    exact: bool = False,
    log: list[str] | None = None,
) -> Contender:
    def play(prompt: tuple[int, ...], count: int, seed: int) -> Played:
        if log is not None:
            log.append(name)
        return Played((0,) * count if tokens is None else tokens, count, seconds * count, count)

    return Contender("chain", "none", name, GREEDY, play, exact)


def text(name: str = "a", tokens: tuple[int, ...] = (0,) * 6) -> Text:
    return Text(name, PROMPT, tokens, seed=3)


TIMINGS = [
    timing("autoregressive", "a", 4.0, 10),
    timing("autoregressive", "b", 40.0, 30),
    timing("staged", "a", 1.0, 10),
    timing("staged", "b", 21.0, 30),
    timing("hf_generate", "a", 8.0, 9),
    timing("hf_generate", "b", 80.0, 31),
]


def test_a_ratio_is_total_time_per_token_against_total_time_per_token() -> None:
    row = one(table(TIMINGS), "staged", "autoregressive")
    assert row["ratio"] == pytest.approx((44 / 40) / (22 / 40))
    assert row["ratio"] != pytest.approx((4 / 1 + 40 / 21) / 2)  # the mean of ratios
    assert row["geometric_mean"] == pytest.approx(math.sqrt(4 * 40 / 21))
    assert row["ratio_low"] == pytest.approx(40 / 21) and row["ratio_high"] == pytest.approx(4)
    assert row["ms_per_token"] == pytest.approx(550) and row["tokens_per_second"] == pytest.approx(
        40 / 22
    )
    assert (
        row["tokens_per_round"] == 4
        and row["prompts"] == 2
        and row["chosen"]
        and row["peak_bytes"] == 5
    )


def test_only_the_timed_tokens_count_where_some_came_with_the_prompt() -> None:
    row = one(
        table([replace(found, timed_tokens=found.tokens // 2) for found in TIMINGS]),
        "staged",
        "autoregressive",
    )
    assert row["ms_per_token"] == pytest.approx(1100) and row["ratio"] == pytest.approx(2)


def test_the_baseline_is_the_fastest_autoregressive_contender_of_any_runtime() -> None:
    found = table(
        [
            *TIMINGS,
            timing("autoregressive", "a", 2.0, runtime="fast"),
            timing("autoregressive", "b", 30.0, 30, runtime="fast"),
        ]
    )
    assert one(found, "staged", "autoregressive")["ratio"] == pytest.approx(32 / 22)
    assert one(found, "staged", "autoregressive")["baseline_runtime"] == "fast"
    assert one(found, "autoregressive", "autoregressive")["ratio"] == pytest.approx(32 / 44)


def test_looping_prompts_are_left_out_of_the_second_set_only() -> None:
    found = table(TIMINGS, frozenset({"b"}))
    assert one(found, "staged", "autoregressive", "not looping")["ratio"] == pytest.approx(4)
    assert one(found, "staged", "autoregressive", "not looping")["prompts"] == 1
    assert one(found, "staged", "autoregressive")["prompts"] == 2


def test_a_contender_without_one_of_the_prompts_is_not_compared() -> None:
    with pytest.raises(ValueError, match="staged, reference has 1 prompts, another contender 2"):
        table([found for found in TIMINGS if (found.method, found.prompt) != ("staged", "b")])


def test_the_file_has_the_promised_columns_and_is_written_whole(tmp_path) -> None:
    path = tmp_path / "new" / "bench.csv"
    write(path, table(TIMINGS), COLUMNS)
    with path.open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    promised = "method baseline temperature top_k prompts repetition ratio ratio_low ratio_high tokens_per_round tokens_per_second peak_bytes"
    assert set(promised.split()) <= set(read[0])
    assert {row["baseline"] for row in read} == {"autoregressive", "hf_generate"} and {
        row["temperature"] for row in read
    } == {"0"}
    assert read[0]["margin"] == "" and list(path.parent.iterdir()) == [path]


def test_everybody_takes_a_turn_per_repeat_in_an_order_that_follows_from_the_seed() -> None:
    def order(seed: int, name: str) -> list[str]:
        log: list[str] = []
        list(
            timed(
                [fake(str(number), 1.0, log=log) for number in range(6)],
                text(name),
                fixed_model([0.0]),
                seed=seed,
                repeats=2,
            )
        )
        return log

    assert sorted(order(0, "a")[:6]) == sorted(order(0, "a")[6:]) == list("012345")
    assert order(0, "a") == order(0, "a")
    assert (
        order(0, "a") != order(1, "a") != order(0, "b") and order(0, "a")[:6] != order(0, "a")[6:]
    )


def test_repeats_give_their_median_and_the_fastest() -> None:
    times = iter((5.0, 1.0, 2.0))
    contender = Contender(
        "chain",
        "none",
        "x",
        GREEDY,
        lambda prompt, count, seed: Played((0,) * count, count, next(times), 1),
        exact=False,
    )
    [found] = timed([contender], text(), fixed_model([0.0]), seed=0, repeats=3)
    assert (found.seconds, found.least_seconds) == (2.0, 1.0)


def test_a_streamed_generation_is_timed_from_its_first_new_tokens_on() -> None:
    times = iter(
        (0.0, 100.0, 103.0, 104.0, 104.5)
    )  # the prompt is handed on, read for 100 s, and two more portions follow
    portions = Portions(lambda: next(times))
    for size in (7, 2, 3, 1):
        portions.put(torch.zeros(size))
    portions.end()
    assert portions.played((1, 2, 3, 4, 5, 6)) == Played((1, 2, 3, 4, 5, 6), 4, 4.5, 3)
    with pytest.raises(ValueError, match="5 tokens were to be timed"):
        portions.played((1, 2, 3, 4, 5))


def test_our_loop_is_timed_without_reading_the_prompt_and_with_what_lies_between_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    model = table_model(5, 1)
    score = model.score

    def slow(context, tree):
        now[0] += 1.0 if len(context) >= len(PROMPT) else 100.0
        return score(context, tree)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: now[0])
    object.__setattr__(model, "score", slow)
    played = ours(
        model,
        NoDraft(),
        GREEDY,
        method="autoregressive",
        runtime="none",
        setting="",
        clock=lambda: now[0],
    ).play(PROMPT, 7, 0)
    assert (played.seconds, played.timed_tokens, played.rounds) == (7.0, 7, 7) and now[0] == 107.0


def test_the_right_tokens_pass_and_wrong_ones_stop_the_bench() -> None:
    target = table_model(5, 1)
    own = decode(target, NoDraft(), PROMPT, Chance(3, GREEDY), max_new_tokens=6).tokens
    contender = ours(target, NoDraft(), GREEDY, method="autoregressive", runtime="none", setting="")
    assert math.isnan(next(timed([contender], text(tokens=own), target, seed=0)).margin)
    wrong = ours(
        table_model(5, 2), NoDraft(), GREEDY, method="autoregressive", runtime="none", setting=""
    )
    with pytest.raises(ValueError, match="does not write what the target does: token 0 of a"):
        next(timed([wrong], text(tokens=own), target, seed=0))
    with pytest.raises(ValueError, match="wrote 2 tokens of a, 6 were asked for"):
        next(timed([fake("short", 1.0, tokens=(0, 0))], text(), target, seed=0))


def test_a_near_tie_is_told_with_its_margin_and_not_hidden() -> None:
    near, far = fixed_model([0.50002, 0.49998, 0.0]), fixed_model([0.6, 0.4, 0.0])
    contender = fake("x", 1.0, exact=True)
    assert divergence(near, contender, text(tokens=(0, 0)), (0, 1)) == pytest.approx(8e-5, rel=1e-3)
    with pytest.raises(ValueError, match=r"token 1 of a lies 0.405 nats below the best"):
        divergence(far, contender, text(tokens=(0, 0)), (0, 1))


def test_tuning_finds_the_fastest_and_shows_the_slow_ones_little() -> None:
    log: list[str] = []
    speeds = [3.0, 2.0, 1.0, 4.0, 5.0, 6.0]
    random.Random(0).shuffle(speeds)
    texts = [text(str(number)) for number in range(3)]
    ranked = tuned(
        [fake(f"{speed:g}", speed, log=log) for speed in speeds],
        texts,
        fixed_model([0.0]),
        stages=(1, 2),
    )
    assert (
        [best.contender.setting for best in ranked] == ["1", "2"]
        and ranked[0].ms_per_token == pytest.approx(1000)
        and ranked[0].tried == 6
    )
    assert log.count("6") == 2 and log.count("1") == 4  # one of them is the warm-up


def test_tuning_passes_over_texts_that_loop() -> None:
    seen: list[tuple[int, ...]] = []

    def play(prompt: tuple[int, ...], count: int, seed: int) -> Played:
        seen.append(prompt)
        return Played((0,) * count, count, 1.0, 1)

    loops, calm = text("loops", (1, 2) * 20), Text("calm", (4,), tuple(range(30)), 0)
    tuned(
        [Contender("chain", "none", "x", GREEDY, play, exact=False)],
        [loops, calm],
        fixed_model([0.0]),
        stages=(1,),
    )
    assert loops.loops and not calm.loops and set(seen) == {(4,)}


@pytest.mark.parametrize(
    "contenders, texts", list(itertools.product(([], [fake("x", 1.0)]), ([], [text()])))[:-1]
)
def test_tuning_says_what_it_lacks(contenders: list[Contender], texts: list[Text]) -> None:
    with pytest.raises(ValueError, match=f"got {len(contenders)} and {len(texts)}"):
        tuned(contenders, texts, fixed_model([0.0]), stages=(1,))
