"""Claims of Spector and Ré 2023, "Accelerating LLM inference with staged speculative decoding"."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, product

import pandas as pd

from specdec_lib.measure.bytes_moved import STAGED, generation_bytes, model_shape
from specdec_lib.measure.race_table import RACED, paired_speed, stored_ledger, stored_race
from specdec_lib.measure.ratios import ratios, with_sampling
from specdec_lib.measure.scorecard.claims import NO_SIGN, RATIO, Claim, millions, read_measured
from specdec_lib.theory import pass_flops
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, published

_claim = partial(Claim, "staged")
# by the paper's word: ours, and its rows of a race
SAMPLERS = {
    "deterministic": ("greedy", "temperature == 0"),
    "top-k": ("T = 1, top-k 50", "temperature == 1 and top_k == 50"),
}
COUNTED = {"speculative": "chain of 5, none", "staged": "tree of 16, n-gram"}
PLAIN = {"speculative": "chain", "staged": "staged", "baseline": "autoregressive"}  # in the race
OTHERS = (
    "Other text (chat, code, summaries, word problems; the paper: HumanEval), a target of {target}"
    " and a distilled draft of {draft} parameters without embeddings ({paper}, whole)"
)
SETTINGS = (
    "both at their fastest settings on development prompts, drafts in int8, one thread of a CPU,"
    f" {RACED}"
)


def staged_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of the paper, in its order."""
    theirs = " : ".join(f"{number('staged.text.setup', name):.0f}" for name in STAGED.values())
    others = OTHERS.format(**millions(ladder), paper=f"{theirs} M")
    timings = read_measured(f"race_{RACED}_prompts")
    timings = timings.query("edition == 'exact' and runtime == 'fast'")
    parts = _bytes(ladder, others), _speeds(timings, others), _utilisation(ladder)
    return list(chain(*parts, _figures(timings, others), _setup()))


def _bytes(ladder: Ladder, others: str) -> Iterator[Claim]:
    table = with_sampling(read_measured("staged"))
    shapes = {model.name: model_shape(model) for model in ladder.models}
    table["bytes"] = generation_bytes(table, shapes)
    found = ratios(table, "bytes", "tokens", baseline="target").set_index(["draft", "sampling"])
    printed = published("staged.table1").set_index("sampling")
    reason = f"{others}. Counted from passes, rows and context, as the paper's numbers behave."
    about = "bytes per token ÷ plain decoding's", reason
    for (word, (sampling, _)), (method, draft) in product(SAMPLERS.items(), COUNTED.items()):
        value, ours = float(printed.loc[word, method]), found.loc[(draft, sampling), RATIO]
        yield _claim("Table 1", f"{method}, {word}", *about, value, "counted", *ours)


def _speeds(timings: pd.DataFrame, others: str) -> Iterator[Claim]:
    printed = published("staged.table2").set_index("sampling")
    pairs = ("speculative", "baseline"), ("staged", "baseline"), ("staged", "speculative")
    race = stored_race(RACED).query("domain == 'all' and baseline == 'autoregressive'")
    for (word, (_, rows)), (method, base) in product(SAMPLERS.items(), pairs):
        tuned = race.query(rows).set_index("method").setting.str.partition(" [")[0]
        timed = "; ".join(f"{name}: {tuned[PLAIN[name]]}" for name in COUNTED)
        reason = f"{others}; {SETTINGS}: {timed}. The paper has no copies."
        value = printed.loc[word, method] / printed.loc[word, base]
        ours = paired_speed(timings.query(rows), PLAIN[method], PLAIN[base])
        against = "plain decoding" if base == "baseline" else base
        about = f"{method} against {against}, {word}", "tokens per second ÷ the other's", reason
        yield _claim("Table 2", *about, value, "clock", *ours)


def _utilisation(ladder: Ladder) -> Iterator[Claim]:
    passes = read_measured("latency_*").query(
        "model == 'target' and runtime == 'fast' and rows == 1 and context_tokens == 256"
    )
    one, shape = passes.iloc[0], model_shape(ladder.target, bytes_per_number=4)
    share = 100 * pass_flops(shape, 1, 256) / one.seconds / one.flops_per_second
    reason = (
        "A core has few operations per byte where a GPU has many, so it is far better used, and"
        f" verifying is less free. In float32 on one thread of {one.machine}."
    )
    about = "plain decoding's share", "percent of the machine's arithmetic", reason
    value = number("staged.fig1", "compute utilisation")
    yield _claim("Figure 1", *about, value, "clock", share, no_effect=NO_SIGN)


def _figures(timings: pd.DataFrame, others: str) -> Iterator[Claim]:
    greedy = timings[timings.temperature == 0].assign(pace=lambda t: t.timed_tokens / t.seconds)
    own = greedy.pivot(index="prompt", columns="method", values="pace")
    gains = (own["staged"] / own["autoregressive"]).dropna()
    unit = "tokens per second ÷ plain decoding's"
    ours = f"the tuned staged tree, which copies too; of {len(gains)} prompts"
    reason = f"{others}; {ours}. Indentation pays there."
    for word, key, gain in (
        ("largest", "largest gain on realistic prompts, up to", gains.max()),
        ("smallest", "sometimes only", gains.min()),
    ):
        about = f"the {word} gain on a prompt", unit, reason, number("staged.fig2", key)
        yield _claim("Figure 2", *about, "clock", gain, prompts=len(gains))
    reason = "The paper prints the colours of one text and no counts; notebook 03 colours one here."
    yield _claim("Figure 3", "which level wrote a token", "share", reason, no_effect=0)
    value = number("staged.fig3", "speed-up on that prompt, about")
    reason = "One prompt of HumanEval, which is not ours; single prompts stand under Figure 2."
    yield _claim("Figure 3", "the gain on its prompt", unit, reason, value)


def _setup() -> Iterator[Claim]:
    times = read_measured("katz_growth").lookup_microseconds
    reason = (
        f"Katz tables of the draft's own samples, the median of {len(times)} (sizes, whole and"
        f" pruned, greedy and sampled); the quickest takes {times.min():.1f}, the slowest"
        f" {times.max():.1f}."
    )
    about = "an n-gram draft is as quick", "microseconds a lookup, at most", reason
    value = number("staged.text.setup", "draft2 latency goal, below")
    yield _claim("Text", *about, value, "clock", times.median(), no_effect=None)
    ledger = stored_ledger(RACED).query("method == 'staged'")
    host = ledger[~ledger.part.isin(["verify", "draft passes"])]
    found = 100 * host.groupby(["temperature", "top_k"]).share.sum().max()
    reason = (
        f"All that is not a model's pass, of the tuned staged tree on {RACED}, the most of its"
        " samplers; what the paper counts is not said in detail."
    )
    value = number("staged.text.setup", "python overhead")
    about = "overhead of the host", "percent of the time", reason, value
    yield _claim("Text", *about, "clock", found, no_effect=0)
