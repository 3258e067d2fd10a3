"""Claims of Spector and Ré 2023, "Accelerating LLM inference with staged speculative decoding"."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, product

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.table import RACED, paired_speed, stored_ledger, stored_race
from specdec_lib.measure.scorecard.claims import (
    NO_SIGN,
    NONE,
    Claim,
    Finding,
    millions,
    read_measured,
)
from specdec_lib.measure.sweep.ratios import ratios, sampling_of, with_sampling
from specdec_lib.measure.sweep.traffic import generation_bytes, model_shape
from specdec_lib.theory import pass_flops
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, published

_claim = partial(Claim, "staged")
SAMPLERS = {"deterministic": Sampler(0), "top-k": Sampler(1.0, top_k=50)}  # by the paper's word
COUNTED = {"speculative": "chain of 5, none", "staged": "tree of 16, n-gram"}
PLAIN = {"speculative": "chain", "staged": "staged", "baseline": "autoregressive"}  # in the race
OTHERS = (
    "Other text (chat, code, summaries, word problems; the paper: HumanEval), a target of {target}"
    " and a distilled draft of {draft} parameters without embeddings ({paper}, whole)"
)
RACE = (
    "both at their fastest settings on development prompts, drafts in int8, one thread of a CPU,"
    " {runtime}"
)


def staged_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of the paper, in its order."""
    names = "oracle parameters, nominal", "draft parameters"
    theirs = " : ".join(f"{number('staged.text.setup', name):.0f}" for name in names)
    others = OTHERS.format(**millions(ladder), paper=f"{theirs} M")
    machine = RACED
    timings = read_measured(f"race_{machine}_prompts")
    timings = timings.query("edition == 'exact' and runtime == 'fast'")
    parts = _bytes(ladder, others), _speeds(timings, f"{others}; {RACE.format(runtime=machine)}")
    return list(chain(*parts, _utilisation(ladder), _figures(timings, others), _setup()))


def _bytes(ladder: Ladder, others: str) -> Iterator[Claim]:
    table = with_sampling(read_measured("staged"))
    shapes = {model.name: model_shape(model) for model in ladder.models}
    table["bytes"] = generation_bytes(table, shapes)
    found = ratios(table, "bytes", "tokens", baseline="target").set_index(["draft", "sampling"])
    printed = published("staged.table1").set_index("sampling")
    reason = f"{others}. Counted from passes, rows and context, as the paper's numbers behave."
    for (word, sampler), (method, draft) in product(SAMPLERS.items(), COUNTED.items()):
        ours = Finding.of(found.loc[draft, sampling_of(sampler.temperature, sampler.top_k)])
        claim, unit = f"{method}, {word}", "bytes per token ÷ plain decoding's"
        value = float(printed.loc[word, method])
        yield _claim("Table 1", claim, unit, "counted", value, ours, 1, reason)


def _speeds(timings: pd.DataFrame, raced: str) -> Iterator[Claim]:
    printed = published("staged.table2").set_index("sampling")
    pairs = ("speculative", "baseline"), ("staged", "baseline"), ("staged", "speculative")
    for (word, sampler), (method, base) in product(SAMPLERS.items(), pairs):
        timed = "; ".join(f"{name}: {_setting(PLAIN[name], sampler)}" for name in COUNTED)
        reason = f"{raced}: {timed}. The paper has no copies."
        value = printed.loc[word, method] / printed.loc[word, base]
        ours = paired_speed(_under(timings, sampler), PLAIN[method], PLAIN[base])
        against = "plain decoding" if base == "baseline" else base
        claim, unit = f"{method} against {against}, {word}", "tokens per second ÷ the other's"
        yield _claim("Table 2", claim, unit, "clock", value, Finding(*ours), 1, reason)


def _utilisation(ladder: Ladder) -> Iterator[Claim]:
    passes = read_measured("latency_*").query(
        "model == 'target' and runtime == 'fast' and rows == 1 and context_tokens == 256"
    )
    one, shape = passes.iloc[0], model_shape(ladder.target, bytes_per_number=4)
    share = Finding(100 * pass_flops(shape, 1, 256) / one.seconds / one.flops_per_second)
    reason = (
        "A core has few operations per byte where a GPU has many, so it is far better used, and"
        f" verifying is less free. In float32 on one thread of {one.machine}."
    )
    claim, unit = "plain decoding's share", "percent of the machine's arithmetic"
    value = number("staged.fig1", "compute utilisation")
    yield _claim("Figure 1", claim, unit, "clock", value, share, NO_SIGN, reason)


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
        claim, value = f"the {word} gain on a prompt", number("staged.fig2", key)
        found = Finding(gain, prompts=len(gains))
        yield _claim("Figure 2", claim, unit, "clock", value, found, 1, reason)
    reason = "The paper prints the colours of one text and no counts; notebook 03 colours one here."
    claim = "which level wrote a token"
    yield _claim("Figure 3", claim, "share", "nothing", NONE, Finding(), 0, reason)
    value = number("staged.fig3", "speed-up on that prompt, about")
    reason = "One prompt of HumanEval, which is not ours; single prompts stand under Figure 2."
    yield _claim("Figure 3", "the gain on its prompt", unit, "nothing", value, Finding(), 1, reason)


def _setup() -> Iterator[Claim]:
    times = read_measured("katz_growth").lookup_microseconds
    reason = (
        f"Katz tables of the draft's own samples, the median of {len(times)} (sizes, whole and"
        f" pruned, greedy and sampled); the quickest takes {times.min():.1f}, the slowest"
        f" {times.max():.1f}."
    )
    claim, unit = "an n-gram draft is as quick", "microseconds a lookup, at most"
    value = number("staged.text.setup", "draft2 latency goal, below")
    yield _claim("Text", claim, unit, "clock", value, Finding(times.median()), None, reason)
    ledger = stored_ledger(RACED).query("method == 'staged'")
    host = ledger[~ledger.part.isin(["verify", "draft passes"])]
    found = Finding(100 * host.groupby(["temperature", "top_k"]).share.sum().max())
    reason = (
        f"All that is not a model's pass, of the tuned staged tree on {RACED}, the most of its"
        " samplers; what the paper counts is not said in detail."
    )
    claim, value = "overhead of the host", number("staged.text.setup", "python overhead")
    yield _claim("Text", claim, "percent of the time", "clock", value, found, 0, reason)


def _setting(method: str, sampler: Sampler) -> str:
    """The setting at which the stored race timed a method."""
    table = stored_race(RACED).query("domain == 'all' and baseline == 'autoregressive'")
    own = _under(table, sampler).set_index("method").setting
    return own[[method]].iloc[0].partition(" [")[0]


def _under(table: pd.DataFrame, sampler: Sampler) -> pd.DataFrame:
    same = table.temperature == sampler.temperature
    return table[same & (table.top_k == (sampler.top_k or 0))]
