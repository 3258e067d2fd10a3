"""What was measured of the claims of Spector and Ré 2023."""

from specdec_lib.measure.bytes_moved import generation_bytes, model_shape
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import ratios, with_sampling
from specdec_lib.measure.scorecard.evidence import Evidence, evidence_of, read_measured, row_of
from specdec_lib.measure.scorecard.evidence_raced import raced_ideas
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, SCOUT, TREE
from specdec_lib.theory import pass_flops
from specdec_lib.workload import Ladder


def bytes_per_token(
    ladder: Ladder, draft: str, sampling: str, baseline: str = "target"
) -> Evidence:
    """Bytes per token of a draft ÷ those of another, by itself plain decoding; counted from passes,
    rows and context.
    """
    table = with_sampling(read_measured("staged"))
    shapes = {model.name: model_shape(model) for model in ladder.models}
    table["bytes"] = generation_bytes(table, shapes)
    found = ratios(table, "bytes", "tokens", baseline=baseline)
    return evidence_of(row_of(found, draft=draft, sampling=sampling))


def arithmetic_used(ladder: Ladder) -> Evidence:
    """Percent of the machine's arithmetic that plain decoding uses; the machine."""
    passes = read_measured(f"latency_{RACED}").query(
        "model == 'target' and runtime == 'fast' and rows == 1 and context_tokens == 256"
    )
    first = passes.iloc[0]
    shape = model_shape(ladder.target, bytes_per_number=4)
    share = pass_flops(shape, 1, 256) / first.seconds / first.flops_per_second
    return Evidence(100 * share, facts={"timed_on": first.machine})


def gain_on_a_prompt(ladder: Ladder, which: str) -> Evidence:
    """The largest or smallest gain of the staged tree on a prompt of the race, greedily."""
    greedy = raced_ideas("0")
    pace = greedy.assign(pace=greedy.tokens / greedy.seconds)
    by_method = pace.pivot(index="prompt", columns="method", values="pace")
    gains = by_method[TREE + SCOUT] / by_method[AUTOREGRESSIVE]
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
    """Percent of the staged tree's time outside the models, the most of the samplers."""
    own = raced_ideas().query("method == @TREE + @SCOUT")
    sums = own.groupby("temperature")[["outside", "seconds"]].sum()
    return Evidence(100 * (sums.outside / sums.seconds).max())


OF_STAGED = {
    "bytes_per_token": bytes_per_token,
    "arithmetic_used": arithmetic_used,
    "gain_on_a_prompt": gain_on_a_prompt,
    "lookup_time": lookup_time,
    "host_share": host_share,
}
