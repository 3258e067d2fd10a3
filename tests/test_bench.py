"""The race and the benchmark's table, on contenders whose seconds are made up."""

import math
import time
from dataclasses import replace

import pandas as pd
import pytest
import torch
from fakes import Linear, fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import racing
from specdec_lib.measure.contenders import Contender, Continuation, Portions, our_contenders
from specdec_lib.measure.near_ties import ROUNDING, NearTie
from specdec_lib.measure.race_table import (
    COLUMNS,
    counterfactuals,
    ratio_table,
    stored_ledger,
    stored_race,
    write_table,
)
from specdec_lib.measure.racing import race
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import TargetText
from specdec_lib.measure.trial import Trial
from specdec_lib.measure.tuned_methods import tune_contenders

GREEDY = Sampler(0)
PROMPT = (1, 0, 2)


def timing(method: str, prompt: str, seconds: float, tokens: int = 10) -> Trial:
    return Trial(
        method=method,
        runtime="reference",
        setting="any",
        sampler=GREEDY,
        prompt=prompt,
        tokens=tokens,
        timed_tokens=tokens,
        seconds=seconds,
        rounds=5,
        repetition=0.0,
    )


TIMINGS = [
    timing("autoregressive", "a/1", 4.0, 10),
    timing("autoregressive", "b/1", 40.0, 30),
    timing("staged", "a/1", 1.0, 10),
    timing("staged", "b/1", 21.0, 30),
    timing("hf_generate", "a/1", 8.0, 9),
    timing("hf_generate", "b/1", 80.0, 31),
]


def table(timings: list[Trial]) -> pd.DataFrame:
    return ratio_table(timings, {(0.0, 0): "staged"})


def one(found: pd.DataFrame, method: str, domain: str = "all") -> pd.Series:
    """The row of a method against plain decoding."""
    rows = found[(found.method == method) & (found.domain == domain)]
    [row] = rows[(rows.baseline == "autoregressive") & (rows.runtime == "reference")].itertuples()
    return row


def test_domains_of_prompts_with_names_of_their_own_are_given():
    named = {"a/1": "first", "b/1": "second"}
    found = ratio_table(TIMINGS, {}, named)
    assert set(found.domain) == {"all", *named.values()}
    assert set(table(TIMINGS).domain) == {"all", "a", "b"}  # the control: from the names


def fake(name: str, seconds: float, tokens: tuple[int, ...] | None = None, log: list | None = None):
    """A contender that takes so many seconds per token."""

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        if log is not None:
            log.append((name, prompt, count, seed))
        written = (0,) * count if tokens is None else tokens
        return Continuation(written, count, seconds * count, count)

    return Contender("chain", "none", name, GREEDY, run, exact=False)


def text(name: str = "a", tokens: tuple[int, ...] = (0,) * 6) -> TargetText:
    return TargetText(name, "", GREEDY, 3, tokens, len(tokens), given=PROMPT)


def test_a_ratio_is_total_time_per_token_against_total_time_per_token() -> None:
    """Seconds count by the tokens that were timed, in all domains together and in each."""
    found = table(TIMINGS)
    row = one(found, "staged")
    assert row.ratio == pytest.approx((44 / 40) / (22 / 40))
    assert row.ratio != pytest.approx((4 / 1 + 40 / 21) / 2)  # the mean of ratios
    assert row.geometric_mean == pytest.approx(math.sqrt(4 * 40 / 21))
    assert math.isnan(row.ratio_low)  # two prompts
    assert (row.ms_per_token, row.tokens) == pytest.approx((550, 40))
    assert (row.tokens_per_round, row.prompts) == (4, 2) and row.chosen
    assert set(found.domain) == {"all", "a", "b"}
    assert one(found, "staged", "a").ratio == pytest.approx(4)
    halved = [replace(found, timed_tokens=found.tokens // 2) for found in TIMINGS]
    row = one(table(halved), "staged")
    assert (row.ms_per_token, row.ratio) == pytest.approx((1100, 2))


def test_the_baseline_is_the_fastest_plain_decoding_on_shared_prompts():
    """The fastest of any runtime; other programs may run fewer prompts."""
    fast = [timing("autoregressive", "a/1", 2.0), timing("autoregressive", "b/1", 30.0, 30)]
    found = table([*TIMINGS[:-1], *(replace(other, runtime="fast") for other in fast)])
    assert one(found, "staged").ratio == pytest.approx(32 / 22)
    assert one(found, "staged").baseline_runtime == "fast"
    assert one(found, "autoregressive").ratio == pytest.approx(32 / 44)
    rows = found.query("domain == 'all' and method == 'staged'").set_index("baseline")
    assert rows.prompts.to_dict() == {"autoregressive": 2, "hf_generate": 1}
    assert rows.ratio.hf_generate == pytest.approx((8 / 9) / (1 / 10))


def test_the_file_has_the_promised_columns_and_rows_of_other_editions_stay(tmp_path) -> None:
    path = tmp_path / "race_here.csv"
    whole = table(TIMINGS).assign(machine="here", threads=1, versions="")
    for edition in ("int8", "exact", "exact"):
        write_table(path, whole.assign(edition=edition), COLUMNS)
    lines = path.read_bytes().decode().split("\r\n")
    assert lines[0] == ",".join(COLUMNS) and len(lines) == 38
    assert list(tmp_path.iterdir()) == [path]
    for edition in ("exact", "int8"):
        read = stored_race("here", edition=edition, folder=tmp_path)
        assert len(read) == 18 and set(read.edition) == {edition} and read.margin.isna().all()
        assert set(read.baseline) == {"autoregressive", "hf_generate"}
    for machine, edition in (("there", "exact"), ("here", "half")):
        with pytest.raises(ValueError, match=f"{edition} edition on {machine} is stored in"):
            stored_race(machine, edition=edition, folder=tmp_path)


def test_counterfactuals_are_the_race_without_the_parts_that_are_free(tmp_path):
    """Plain decoding takes 10 ms a token, 1 of them the host's; a round of the tree yields three
    tokens in 20 ms: 10 verify, 6 draft, 4 the host's.
    """
    parts = [("autoregressive", "verify", 0.9), ("autoregressive", "host", 0.1)]
    parts += [("tree", "verify", 0.5), ("tree", "draft passes", 0.2), ("tree", "n-gram", 0.1)]
    ledger = pd.DataFrame([*parts, ("tree", "tree", 0.2)], columns=["method", "part", "share"])
    ledger = ledger.assign(temperature=0.0, top_k=0, edition="exact")
    raced = pd.DataFrame({"method": ["autoregressive", "tree"], "ratio": [1.0, 10 / (20 / 3)]})
    raced = raced.assign(temperature=0.0, top_k=0, domain="all", baseline="autoregressive")
    other = raced.assign(domain="code", ratio=9.0)  # is not read
    both = pd.concat([ledger, ledger.assign(edition="int8", share=0.0)])
    both.to_csv(tmp_path / "race_here_ledger.csv", index=False)
    stored = stored_ledger("here", folder=tmp_path)
    found = counterfactuals(stored, pd.concat([raced, other])).loc[(0.0, 0)]
    assert [*found.index] == ["tree"]
    wanted = {"verify": 0.5, "drafting": 0.3, "host": 0.2, "speed_up": 1.5}
    wanted |= {"free_host": 9 / (16 / 3), "free_drafting": 10 / (14 / 3), "both_free": 2.7}
    assert found.loc["tree"].to_dict() == pytest.approx(wanted)


def test_contenders_take_turns_in_an_order_that_follows_from_the_seed() -> None:
    def order(seed: int, name: str) -> list[str]:
        log: list[tuple] = []
        race([fake(place, 1.0, log=log) for place in "012345"], text(name), ZEROS, seed=seed)
        return [called for called, *_ in log]

    assert sorted(first := order(0, "a")) == list("012345")
    assert first == order(0, "a") != order(1, "a") != order(0, "b")


ZEROS = fixed_model([0.0])


def plain(model) -> Contender:
    [made] = our_contenders(model, [Setting("", NoDraft(), GREEDY, method="autoregressive")])
    return made


def test_wrong_tokens_stop_a_strict_race_and_are_reported_by_another() -> None:
    target = table_model(5, 1)
    own = decode(target, NoDraft(), PROMPT, Chance(3, GREEDY), max_new_tokens=6).tokens
    wrong, given = plain(table_model(5, 2)), text(tokens=own)
    [right] = race([plain(target)], given, target)
    assert right.same and right.margin is None and right.rounding is None
    with pytest.raises(ValueError, match="does not write what the target does: token 0 of a"):
        race([wrong], given, target)
    [found] = race([wrong], given, target, strict=False)
    assert (found.same, found.rounding) == (False, False) and found.margin > 0
    with pytest.raises(ValueError, match="wrote 2 tokens of a, 6 were asked for"):
        race([fake("short", 1.0, tokens=(0, 0))], text(), ZEROS)


def test_a_near_tie_is_reported_with_its_margin_and_not_hidden(monkeypatch) -> None:
    near, far = fixed_model([0.50002, 0.49998, 0.0]), fixed_model([0.6, 0.4, 0.0])
    asked = [replace(fake("x", 1.0, (0, 1)), exact=True)], text(tokens=(0, 0))
    [found] = race(*asked, near)
    assert found.margin == pytest.approx(8e-5, rel=1e-3) and found.rounding and not found.same
    with pytest.raises(ValueError, match=r"token 1 of a lies 0.405 nats below the best"):
        race(*asked, far)
    # rounding, but more than two programs make up
    tie = NearTie(1, (0, 1), ROUNDING, 0.02)
    monkeypatch.setattr(racing, "near_tie", lambda *given, **_: tie)
    with pytest.raises(ValueError, match=r"token 1 of a lies 0.02 nats below the best"):
        race(*asked, near)
    [told] = race(*asked, near, strict=False)
    assert (told.rounding, told.margin, told.same) == (True, 0.02, False)


def test_a_streamed_generation_is_timed_from_its_first_new_tokens_on(monkeypatch) -> None:
    # the prompt is handed on, read for 100 s, and two more portions follow
    times, portions = iter((0.0, 100.0, 103.0, 104.0, 104.5)), Portions()
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    for size in (7, 2, 3, 1):
        portions.put(torch.zeros(size))
    portions.end()
    monkeypatch.undo()
    tokens = (1, 2, 3, 4, 5, 6)
    assert portions.continuation(tokens) == Continuation(tokens, 4, 4.5, 3)
    with pytest.raises(ValueError, match="5 tokens were to be timed"):
        portions.continuation((1, 2, 3, 4, 5))


def test_our_loop_is_timed_without_reading_the_prompt(clock) -> None:
    begun = clock.now
    made = plain(Linear("target", clock)).run(PROMPT, 7, 0)
    assert (made.seconds, made.timed_tokens, made.rounds) == (7.0, 7, 7)
    assert clock.now == begun + 8


def test_tuning_finds_the_fastest_shows_the_slow_ones_little_and_passes_over_loops() -> None:
    log: list[tuple] = []
    contenders = [fake(f"{speed:g}", speed, log=log) for speed in (4.0, 2.0, 6.0, 1.0, 5.0, 3.0)]
    loops, *calm = text("loops", (1, 2) * 20), *(text(name, tuple(range(30))) for name in "abc")
    assert loops.loops and not any(one.loops for one in calm)
    ranked = tune_contenders(contenders, [loops, *calm], ZEROS, stages=(1, 2))
    assert [best.setting for best, _ in ranked] == ["1", "2"]
    assert ranked[0][1] == pytest.approx(1000)
    runs = [name for name, *_ in log]
    assert runs.count("6") == 2 and runs.count("1") == 4  # one of them is the warm-up
    assert {count for _, _, count, _ in log} == {12, 30}
