"""The benchmark's table: every method against every baseline, as total time per token ÷ total time
per token; as it is stored, and as the page of results shows it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from specdec_lib.core.files import DATA, write_whole
from specdec_lib.measure.pages import EARLIER_RACES
from specdec_lib.measure.ratios import (
    ALL,
    LEAST_FOR_WORDS,
    LEAST_PROMPTS,
    interval,
    named_interval,
    sampling_of,
    with_interval,
    without_few,
)
from specdec_lib.measure.settings.names import AUTOREGRESSIVE, HF, LLAMA_CPP
from specdec_lib.measure.trial import Trial, trial_table

MEASURED = DATA / "measured"
RACED = "amd-epyc-zen-5-avx512-bf16-1-threads"  # whose race README, notebook 03b and scorecard show
EARLIER_RACED = "amd-epyc-avx512-bf16-1-threads"  # when names told no generation
FOREIGN = "Hugging Face"  # a runtime, followed by its precision
COLUMNS = """method baseline edition temperature top_k domain prompts tokens repetition
    ms_per_token ratio ratio_low ratio_high geometric_mean chosen
    tokens_per_round least_ms_per_token divergences margin runtime setting
    baseline_runtime baseline_setting load machine threads versions""".split()
PER_PROMPT = """method edition runtime temperature top_k prompt tokens timed_tokens
    seconds least_seconds rounds repetition margin load""".split()
LEDGER = """method edition temperature top_k part model round_seconds share accounted
    watch_cost""".split()
MARKS = {  # by edition, the marks around its tables: page and machine
    "exact": {"speeds": (EARLIER_RACES, EARLIER_RACED)},
    "int8": {"speeds_int8": (EARLIER_RACES, EARLIER_RACED)},
}
NAMES = {  # of the methods of `ratio_table`
    "hf_generate": "Hugging Face `generate`",
    "hf_assisted": "Hugging Face assisted, same draft",
    "hf_prompt_lookup": "Hugging Face prompt lookup",
    "llama.cpp": "llama.cpp, plain decoding",
    "autoregressive": "plain decoding",
    "n-gram": "n-grams and copies alone",
    "chain": "chain",
    "tree": "tree",
    "staged chain": "staged chain",
    "staged": "staged tree",
    "cascade": "cascade with reviewers",
    "comb": "the same as a comb",
    "copies first": "copies first, else a tree",
}


def race_files(folder: Path, machine: str) -> dict[Path, list[str]]:
    """The files of a machine's race and their columns: its table, its timings, its ledger."""
    ends = {"": COLUMNS, "_prompts": PER_PROMPT, "_ledger": LEDGER}
    return {folder / f"race_{machine}{end}.csv": [*columns] for end, columns in ends.items()}


def ratio_table(
    trials: Sequence[Trial],
    chosen: Mapping[tuple[float, int], str],
    domains: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """A row per method, runtime, baseline, sampler and domain, and for all domains together, on the
    prompts that method and baseline share; of the autoregressive contenders the fastest, of
    whatever runtime, is that baseline.

    chosen     per temperature and top-k, which finalist was fastest on development prompts
    domains    by a prompt's name; without, what stands before the "/" of it
    """
    found = []
    table = race_rows(trials).sort_values("prompt", kind="stable")
    named = table.prompt.str.partition("/")[0]
    table["domain"] = named if domains is None else table.prompt.map(domains)
    for sampler, raced in table.groupby(["temperature", "top_k"], sort=False):
        finalist = chosen.get(cast(tuple[float, int], sampler))
        for domain in (ALL, *dict.fromkeys(raced.domain)):
            part = raced if domain == ALL else raced[raced.domain == domain]
            groups = part.set_index("prompt").groupby(["method", "runtime"], sort=False)
            by = dict(list(groups))
            plain = {key: _per_token(by[key]) for key in by if key[0] == AUTOREGRESSIVE}
            fastest = min(plain, key=plain.__getitem__, default=None)
            bases = [key for key in by if key[0] in (*HF, LLAMA_CPP) or key == fastest]
            for (method, runtime), (other, its) in product(by, bases):
                own = by[method, runtime]
                base = by[other, its]
                shared = own.index.intersection(base.index)
                if shared.empty:
                    raise ValueError(
                        f"{method}, {runtime} and {other}, {its} share no prompt: a ratio is of"
                        " prompts that both ran"
                    )
                names = {"method": method, "runtime": runtime, "baseline": other}
                names |= {"domain": domain, "chosen": method == finalist}
                found.append(names | _row(own.loc[shared], base.loc[shared]))
    return pd.DataFrame(found)


def race_rows(trials: Sequence[Trial]) -> pd.DataFrame:
    """The columns of `trial_table`, with a top_k of 0 where there is none."""
    table = trial_table(trials)
    return table.assign(top_k=table.top_k.astype(float).fillna(0).astype(int))


def write_table(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Write a CSV file, whole or not at all, in which rows of other editions stay."""
    if path.is_file():
        before = pd.read_csv(path)
        others = before[~before.edition.isin(set(table.edition))]
        table = pd.concat([one for one in (others, table) if len(one)])
    form = {"index": False, "float_format": "%.6g", "lineterminator": "\r\n"}
    write_whole(path, table.to_csv(columns=list(columns), **form).encode())


def stored_race(machine: str, *, edition: str = "exact", folder: Path = MEASURED) -> pd.DataFrame:
    """The stored race of a machine in one edition, without intervals from fewer than 10 prompts;
    raises ValueError if there is none.
    """
    path = folder / f"race_{machine}.csv"
    found = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=COLUMNS)
    found = found[found.edition == edition]
    if found.empty:
        raise ValueError(
            f"no race of the {edition} edition on {machine} is stored in {folder};"
            " `specdec bench` makes one"
        )
    return without_few(found)


def stored_ledger(machine: str, *, folder: Path = MEASURED) -> pd.DataFrame:
    """Where the seconds of the tuned methods of a machine's race go, in the exact edition; raises
    ValueError if that is not stored.
    """
    path = folder / f"race_{machine}_ledger.csv"
    if not path.is_file():
        raise ValueError(f"{path} is missing; `specdec bench` makes it")
    return pd.read_csv(path).query("edition == 'exact'")


def paired_speed(
    timings: pd.DataFrame, method: str, baseline: str
) -> tuple[float, float, float, int]:
    """Tokens per second of a method ÷ another's on the prompts of one sampler that both ran, its 95
    % interval over prompts, and their number; from the rows of one edition and runtime.
    """
    some = timings.set_index("prompt")
    columns = ["timed_tokens", "seconds"]
    own, base = (some[some.method == name][columns] for name in (method, baseline))
    both = own.merge(base, left_index=True, right_index=True)
    return *interval(*(both[name] for name in both)), len(both)


def over_plain(raced: pd.DataFrame) -> pd.DataFrame:
    """The rows of a race over plain decoding, on all domains together."""
    whole = (raced.domain == ALL) & (raced.baseline == AUTOREGRESSIVE)
    return raced[whole].reset_index(drop=True)


def beside_plain(raced: pd.DataFrame) -> pd.DataFrame:
    """The rows of a race over plain decoding, as `figures.versus` takes them."""
    whole = over_plain(raced)
    return whole.assign(
        family="all domains",
        sampling=list(map(sampling_of, whole.temperature, whole.top_k)),
        name=whole.method.replace(NAMES),
        whose=whole.runtime,
    )


def counterfactuals(ledger: pd.DataFrame, raced: pd.DataFrame) -> pd.DataFrame:
    """Per sampler and method of a race: the shares of a round that the target's pass ("verify"),
    drafting (draft passes and lookups) and the host's own code take; the measured speed-up over
    plain decoding; and by arithmetic on these shares what it would be if the host were free (for
    plain decoding too), if drafting were free, and if both were.

    Raises ValueError if the ledger lacks plain decoding.
    """
    if AUTOREGRESSIVE not in set(ledger.method):
        got = ", ".join(ledger.method.unique()) or "no row"
        raise ValueError(f"the ledger lacks plain decoding, has {got}; `specdec bench` makes one")
    parts = {"verify": "verify", "draft passes": "drafting", "n-gram": "drafting"}
    kinds = ledger.part.map(parts).fillna("host")
    keys = ["temperature", "top_k", "method"]
    shares = ledger.groupby([*keys, kinds], sort=False).share.sum().unstack(fill_value=0)
    shares = shares.reindex(columns=["verify", "drafting", "host"], fill_value=0.0)
    shares = shares.div(shares.sum(axis=1), axis=0)
    plain = shares.xs(AUTOREGRESSIVE, level="method").verify
    ratios = over_plain(raced).set_index(keys).ratio
    found = shares.join(ratios.rename("speed_up"), how="inner")
    verified = plain.reindex(found.reset_index("method").index).to_numpy()
    return found.assign(
        free_host=found.speed_up * verified / (1 - found.host),
        free_drafting=found.speed_up / (1 - found.drafting),
        both_free=found.speed_up * verified / found.verify,
    ).drop(index=AUTOREGRESSIVE, level="method")


def _row(own: pd.DataFrame, base: pd.DataFrame) -> dict[str, object]:
    columns = (base.seconds, base.timed_tokens, own.seconds, own.timed_tokens)
    ratio = interval(*columns, least=LEAST_FOR_WORDS)
    each = base.seconds * own.timed_tokens / (own.seconds * base.timed_tokens)
    each = each[(each > 0) & (each < math.inf)]
    first = own.iloc[0]
    milliseconds = 1000 * _per_token(own)
    return {
        "temperature": first.temperature,
        "top_k": first.top_k,
        "prompts": len(own),
        "tokens": own.tokens.sum(),
        "repetition": float(np.average(own.repetition, weights=own.tokens)),
        "ms_per_token": milliseconds,
        **named_interval("ratio", ratio),
        "geometric_mean": math.exp(np.log(each).mean()),
        "tokens_per_round": own.tokens.sum() / own["rounds"].sum(),
        "least_ms_per_token": milliseconds,  # older files have the fastest of several repeats
        "divergences": own.margin.notna().sum(),
        "margin": own.margin.max(),
        "setting": first.setting,
        "baseline_runtime": base.iloc[0].runtime,
        "baseline_setting": base.iloc[0].setting,
        "load": own.load.mean(),
    }


def _per_token(timings: pd.DataFrame) -> float:
    return timings.seconds.sum() / timings.timed_tokens.sum()


def shown_races(edition: str) -> Iterator[tuple[str, Path, pd.DataFrame]]:
    """The stored races of an edition that pages show: mark, page and table."""
    for mark, (page, machine) in MARKS[edition].items():
        yield mark, page, stored_race(machine, edition=edition)


def speeds(table: pd.DataFrame) -> str:
    """Milliseconds per token of every method, and its speed ÷ plain decoding's in the fastest
    runtime, by sampler, from the `ratio_table` of one edition.
    """
    whole = table[(table.domain == ALL) & (table.baseline == AUTOREGRESSIVE)]
    sizes = whole.groupby(["temperature", "top_k"]).method.transform("size")
    whole = whole[sizes == sizes.max()]  # samplers under which all methods ran
    parts = {
        sampling_of(heat, k): part
        for (heat, k), part in whole.groupby(["temperature", "top_k"], sort=False)
    }
    heads = [f"{name}: ms per token | speed ÷ plain decoding's | setting" for name in parts]
    lines = [_conditions(whole, parts), "", f"| method | {' | '.join(heads)} |"]
    lines.append(f"|---|{'---|---|---|' * len(parts)}")
    for method, name in NAMES.items():
        cells: dict[str, list[str]] = {}
        for one in whole[whole.method == method].itertuples():
            # Hugging Face may have run in another precision under each sampler
            runtime = one.runtime.partition(" ")[0]
            setting = one.setting.partition(" [")[0]
            ratio = with_interval(one.ratio, one.ratio_low, one.ratio_high)
            own = f"{one.ms_per_token:.2f} | {ratio} | {setting}"
            cells.setdefault(runtime, []).append(own)
        for runtime, own in cells.items():
            said = f", {runtime} runtime" if len(cells) > 1 else ""
            lines.append(f"| {name}{said} | {' | '.join(own)} |")
    return "\n".join(lines)


def _conditions(whole: pd.DataFrame, parts: dict[str, pd.DataFrame]) -> str:
    """Where, on what and in which numbers it was measured, in words."""
    first = whole.iloc[0]
    fewer = whole.prompts.min()
    most = {name: part.iloc[part.prompts.argmax()] for name, part in parts.items()}
    counts = "; ".join(
        f"{name}: {row.prompts} prompts, {row.tokens:,} tokens, repetition {row.repetition:.2f},"
        f" load {row.load:.1f}"
        for name, row in most.items()
    )
    threads = f"{first.threads} thread{'s' if first.threads > 1 else ''}"
    said = (
        f"Measured by `make bench` on {threads} ({first.machine}), on held-out prompts, a quarter"
        f" of each domain ({counts}; a load above 1: other processes ran too). Every method is"
        " tuned on development prompts and timed on held-out ones, interleaved; intervals are 95 %,"
        " by Student's t over prompts."
    )
    if fewer < whole.prompts.max():
        said += f" Other programs and runtimes ran on {fewer} prompts, on which their ratios stand"
        said += ", too few for an interval." if fewer < LEAST_PROMPTS else "."
    if LLAMA_CPP in set(whole.method):
        said += " llama.cpp ran as `llama-bench`: as many tokens after as long a context, of no"
        said += " text and without sampling, from the file of four bits."
    if "int8" in set(whole.runtime):
        baseline = "another model, whose plain decoding is the baseline"
        return f"{said} The target is the int8 edition: {baseline}."
    said += " The target is in float32, and our drafts are in the int8 edition."
    for runtime in whole.runtime[whole.runtime.str.startswith(FOREIGN)].head(1):
        precision = runtime.removeprefix(FOREIGN).strip()
        said += f" Hugging Face runs in {precision}, which is its faster one here."
    return said
