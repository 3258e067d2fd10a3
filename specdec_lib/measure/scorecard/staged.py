"""Claims of Spector and Ré 2023, "Accelerating LLM inference with staged speculative decoding"."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.intervals import bootstrap
from specdec_lib.measure.race.table import stored_race
from specdec_lib.measure.scorecard.claims import (
    NO_SIGN,
    NONE,
    Claim,
    Finding,
    millions,
    read_measured,
)
from specdec_lib.measure.sweep.ratios import relative, sampling_of, with_sampling
from specdec_lib.measure.sweep.traffic import generation_bytes, model_shape
from specdec_lib.theory import pass_flops
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, published

if TYPE_CHECKING:
    from pandas import DataFrame

PAPER = "staged"
SAMPLERS = {"deterministic": Sampler(0), "top-k": Sampler(1.0, top_k=50)}  # by the paper's word
COUNTED = {"speculative": "chain of 5, none", "staged": "tree of 16, n-gram"}
PLAIN = {"speculative": "chain", "staged": "staged", "baseline": "autoregressive"}  # in the race
OTHERS = (
    "Other text (chat, code, summaries, word problems; the paper: HumanEval), a target of {target}"
    " and a distilled draft of {draft} parameters ({paper})"
)
RACE = "both at their fastest settings on development prompts, one thread of a CPU, {runtime}"


def staged_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of the paper, in its order."""
    names = "oracle parameters, nominal", "draft parameters"
    theirs = " : ".join(f"{number('staged.text.setup', name):.0f}" for name in names)
    others = OTHERS.format(**millions(ladder), paper=f"{theirs} M")
    parts = _bytes(ladder, others), _speeds(others), _figures(ladder, others), _setup()
    return list(chain(*parts))


def _bytes(ladder: Ladder, others: str) -> Iterator[Claim]:
    table = with_sampling(read_measured("staged"))
    shapes = {model.name: model_shape(model) for model in ladder.models}
    table["bytes"] = generation_bytes(table, shapes)
    found = relative(table, "bytes", "tokens", baseline="target").set_index(["draft", "sampling"])
    printed = published("staged.table1").set_index("sampling")
    reason = f"{others}. Counted from passes, rows and context, as the paper's numbers behave."
    for word, sampler in SAMPLERS.items():
        for method, draft in COUNTED.items():
            one = found.loc[draft, sampling_of(sampler.temperature, sampler.top_k)]
            ours = Finding(one.value, one.low, one.high, one.prompts)
            claim, unit = f"{method}, {word}", "bytes per token ÷ plain decoding's"
            value = float(printed.loc[word, method])
            yield Claim(PAPER, "Table 1", claim, unit, "counted", value, ours, 1, reason)


def _speeds(others: str) -> Iterator[Claim]:
    timings, runtime = _timings()
    printed = published("staged.table2").set_index("sampling")
    for word, sampler in SAMPLERS.items():
        timed = "; ".join(f"{name}: {_setting(PLAIN[name], sampler)}" for name in COUNTED)
        reason = f"{others}; {RACE.format(runtime=runtime)}: {timed}. The paper has no copies."
        plain = printed.loc[word, "baseline"]
        for method, base in (
            ("speculative", "baseline"),
            ("staged", "baseline"),
            ("staged", "speculative"),
        ):
            value = printed.loc[word, method] / (
                plain if base == "baseline" else printed.loc[word, base]
            )
            ours = _paired(timings, word, PLAIN[method], PLAIN[base])
            against = "plain decoding" if base == "baseline" else base
            unit = "tokens per second ÷ the other's"
            claim = f"{method} against {against}, {word}"
            yield Claim(PAPER, "Table 2", claim, unit, "clock", value, ours, 1, reason)


def _figures(ladder: Ladder, others: str) -> Iterator[Claim]:
    unit = "percent of the machine's arithmetic"
    passes = read_measured("latency_*").query(
        "model == 'target' and runtime == 'fast' and rows == 1 and context_tokens == 256"
    )
    one, shape = passes.iloc[0], model_shape(ladder.target, bytes_per_number=4)
    share = 100 * pass_flops(shape, 1, 256) / one.seconds / one.flops_per_second
    reason = (
        "A core has few operations per byte where a GPU has many, so it is far better used, and"
        f" verifying is less free. In float32 on one thread of {one.machine}."
    )
    value = number("staged.fig1", "compute utilisation")
    found = Finding(share)
    yield Claim(
        PAPER, "Figure 1", "plain decoding's share", unit, "clock", value, found, NO_SIGN, reason
    )
    timings, _ = _timings()
    own = timings[timings.temperature == 0].pivot(index="prompt", columns="method", values="pace")
    gains = (own["staged"] / own["autoregressive"]).dropna()
    unit, reason = "tokens per second ÷ plain decoding's", f"{others}; indentation pays there."
    for claim, key, gain in (
        ("the largest gain on a prompt", "largest gain on realistic prompts, up to", gains.max()),
        ("the smallest gain on a prompt", "sometimes only", gains.min()),
    ):
        found = Finding(gain, prompts=len(gains))
        yield Claim(
            PAPER, "Figure 2", claim, unit, "clock", number("staged.fig2", key), found, 1, reason
        )
    reason = "The paper prints the colours of one text and no counts; notebook 03 colours one here."
    yield Claim(
        PAPER,
        "Figure 3",
        "which level wrote a token",
        "share",
        "nothing",
        NONE,
        Finding(),
        0,
        reason,
    )


def _setup() -> Iterator[Claim]:
    growth = read_measured("katz_growth")
    times = growth.lookup_microseconds
    printed = number("staged.text.setup", "draft2 latency goal, below")
    reason = (
        f"Katz tables of the draft's own samples, the median of {len(times)} sizes; the quickest"
        f" takes {times.min():.1f}, the slowest {times.max():.1f}."
    )
    found, unit = Finding(times.median()), "microseconds a lookup, at most"
    yield Claim(
        PAPER, "Text", "an n-gram draft is as quick", unit, "clock", printed, found, None, reason
    )
    ledgers = read_measured("ledger_*")
    own = ledgers[(ledgers.runtime == "fast") & ledgers.draft.str.startswith("staged")]
    models = own.part.isin(["verify", "draft passes"])
    shares = own[~models].groupby(["draft", "temperature"]).share.sum()
    reason = "All that is not a model's pass, in compiled code; the paper's host is Python."
    printed = number("staged.text.setup", "python overhead")
    found, unit = Finding(100 * shares.max()), "percent of the time"
    yield Claim(PAPER, "Text", "overhead of the host", unit, "clock", printed, found, 0, reason)


def _timings() -> "tuple[DataFrame, str]":
    """The greedy and sampled timings of the stored race, fast runtime, with `pace` in tokens per
    second, and what it ran on.
    """
    machine = stored_race().machine.iloc[0]
    table = read_measured(f"race_{machine}_prompts").query(
        "edition == 'exact' and runtime == 'fast'"
    )
    return table.assign(pace=table.timed_tokens / table.seconds), machine


def _setting(method: str, sampler: Sampler) -> str:
    """The setting at which the stored race timed a method."""
    table = stored_race().query("domain == 'all' and baseline == 'autoregressive'")
    own = table[(table.method == method) & (table.temperature == sampler.temperature)]
    return own[own.top_k == (sampler.top_k or 0)].setting.iloc[0].partition(" [")[0]


def _paired(timings: "DataFrame", word: str, method: str, baseline: str) -> Finding:
    """Tokens per second of a method ÷ those of another on the same prompts."""
    temperature = SAMPLERS[word].temperature
    some = timings[timings.temperature == temperature]
    some = some[some.top_k == (SAMPLERS[word].top_k or 0)]
    own, base = (some[some.method == name].set_index("prompt") for name in (method, baseline))
    base = base.loc[own.index.intersection(base.index)]
    own = own.loc[base.index]
    columns = (own.timed_tokens, own.seconds, base.timed_tokens, base.seconds)
    return Finding(*bootstrap(*columns), len(own))
