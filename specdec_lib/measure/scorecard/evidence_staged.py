"""What was measured of the claims of Spector and Ré 2023."""

import pandas as pd

from specdec_lib.measure.bytes_moved import generation_bytes, model_shape
from specdec_lib.measure.race_table import RACED, paired_speed, stored_ledger, stored_race
from specdec_lib.measure.ratios import ratios, with_sampling
from specdec_lib.measure.scorecard.evidence import Evidence, evidence_of, read_measured, row_of
from specdec_lib.theory import pass_flops
from specdec_lib.workload import Ladder


def bytes_per_token(ladder: Ladder, draft: str, sampling: str) -> Evidence:
    """Bytes per token of a draft ÷ plain decoding's, counted from passes, rows and context."""
    table = with_sampling(read_measured("staged"))
    shapes = {model.name: model_shape(model) for model in ladder.models}
    table["bytes"] = generation_bytes(table, shapes)
    found = ratios(table, "bytes", "tokens", baseline="target")
    return evidence_of(row_of(found, draft=draft, sampling=sampling))


def raced_speed(
    ladder: Ladder, method: str, baseline: str, temperature: str, top_k: str
) -> Evidence:
    """Tokens per second of a tuned method ÷ another's in the race; the tuned settings."""
    sampler = f"temperature == {temperature} and top_k == {top_k}"
    race = stored_race(RACED).query("domain == 'all' and baseline == 'autoregressive'")
    tuned = race.query(sampler).set_index("method").setting.str.partition(" [")[0]
    facts = {"chain_setting": tuned["chain"], "staged_setting": tuned["staged"]}
    return Evidence(*paired_speed(_timings().query(sampler), method, baseline), facts)


def arithmetic_used(ladder: Ladder) -> Evidence:
    """Percent of the machine's arithmetic that plain decoding uses; the machine."""
    passes = read_measured("latency_*").query(
        "model == 'target' and runtime == 'fast' and rows == 1 and context_tokens == 256"
    )
    first = passes.iloc[0]
    shape = model_shape(ladder.target, bytes_per_number=4)
    share = pass_flops(shape, 1, 256) / first.seconds / first.flops_per_second
    return Evidence(100 * share, facts={"timed_on": first.machine})


def gain_on_a_prompt(ladder: Ladder, which: str) -> Evidence:
    """The largest or smallest gain of the tuned staged tree on a prompt of the race, greedily."""
    timings = _timings()
    greedy = timings[timings.temperature == 0]
    pace = greedy.assign(pace=greedy.timed_tokens / greedy.seconds)
    by_method = pace.pivot(index="prompt", columns="method", values="pace")
    gains = (by_method["staged"] / by_method["autoregressive"]).dropna()
    gain = gains.max() if which == "largest" else gains.min()
    return Evidence(float(gain), prompts=len(gains), facts={"prompts": str(len(gains))})


def lookup_time(ladder: Ladder) -> Evidence:
    """Microseconds of a lookup in Katz tables of several sizes, the median."""
    times = read_measured("katz_growth").lookup_microseconds
    facts = {
        "tables": str(len(times)),
        "quickest": f"{times.min():.1f}",
        "slowest": f"{times.max():.1f}",
    }
    return Evidence(times.median(), facts=facts)


def host_share(ladder: Ladder) -> Evidence:
    """Percent of the tuned staged tree's time that is no model's pass, the most of its samplers."""
    ledger = stored_ledger(RACED).query("method == 'staged'")
    host = ledger[~ledger.part.isin(["verify", "draft passes"])]
    return Evidence(100 * host.groupby(["temperature", "top_k"]).share.sum().max())


def _timings() -> pd.DataFrame:
    """The race's timings of our methods in the exact edition."""
    timings = read_measured(f"race_{RACED}_prompts")
    return timings.query("edition == 'exact' and runtime == 'fast'")


OF_STAGED = {
    "bytes_per_token": bytes_per_token,
    "raced_speed": raced_speed,
    "arithmetic_used": arithmetic_used,
    "gain_on_a_prompt": gain_on_a_prompt,
    "lookup_time": lookup_time,
    "host_share": host_share,
}
