"""The benchmark's table: every method against every baseline, as total time per token ÷ total time
per token; and as pages show it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from specdec_lib.core.files import DATA, README
from specdec_lib.measure.intervals import LEAST_FOR_WORDS, bootstrap, named_interval, with_interval
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.hugging import HF, LLAMA_CPP
from specdec_lib.measure.sweep.ratios import sampling_of, without_few

MEASURED = DATA / "measured"
ALL = "all"  # domains together
LEDGER = """method edition temperature top_k part model round_seconds share accounted
    watch_cost""".split()
KEY = ["method", "runtime"]

FOREIGN = "Hugging Face"  # a runtime, followed by its precision
GUIDE = README.parent / "docs" / "guide.md"
MARKS = {  # by edition: the marks on pages, and of which machine; "" is the one that ran most
    "exact": {"speeds": (README, ""), "speeds_avx2": (GUIDE, "amd-epyc-avx2-1-threads")},
    "int8": {
        "speeds_int8": (GUIDE, ""),
        "speeds_int8_avx2": (GUIDE, "amd-epyc-avx2-1-threads"),
    },
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


def ratio_table(timings: Iterable[Timing]) -> pd.DataFrame:
    """A row per method, runtime, baseline and sampler, for all domains together; of the
    autoregressive contenders the fastest, of whatever runtime, is that baseline. `wrong` counts the
    texts that differ from the target's by more than rounding.
    """
    table = pd.DataFrame(map(asdict, timings)).sort_values("prompt", kind="stable")
    samplers = table.groupby(["temperature", "top_k"], sort=False)
    return pd.DataFrame(row for _, own in samplers for row in _rows(own)).assign(domain=ALL)


def stored_race(
    machine: str = "", *, edition: str = "exact", folder: Path = MEASURED
) -> pd.DataFrame:
    """The stored race of a machine (of any, of that which ran most) in one edition, without
    intervals from fewer than 10 prompts.  Raises ValueError if there is none.
    """
    paths = sorted(folder.glob(f"race_{machine or '*'}.csv"))
    tables = [pd.read_csv(one) for one in paths if not one.stem.endswith(("_prompts", "_ledger"))]
    having = [table for table in tables if edition in set(table.edition)]
    if not having:
        what = f"no race of the {edition} edition on {machine or 'any machine'}"
        raise ValueError(f"{what} is stored in {folder}; `specdec bench` makes one")
    found = max(having, key=lambda table: table.prompts.sum())
    return without_few(found[found.edition == edition])


def timed_machine(*, folder: Path = MEASURED) -> str:
    """The first machine whose pass times are stored: what is timed is told of one machine."""
    return min(folder.glob("latency_*.csv")).stem.removeprefix("latency_")


def stored_ledger(machine: str, *, edition: str = "exact", folder: Path = MEASURED) -> pd.DataFrame:
    """Where the seconds of the tuned methods of a machine's race go; empty where it did not say."""
    path = folder / f"race_{machine}_ledger.csv"
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=LEDGER)
    return table[table.edition == edition]


def over_plain(raced: pd.DataFrame) -> pd.DataFrame:
    """The rows of a race over plain decoding, on all domains together."""
    whole = (raced.domain == ALL) & (raced.baseline == AUTOREGRESSIVE)
    return raced[whole].reset_index(drop=True)


def counterfactuals(ledger: pd.DataFrame, raced: pd.DataFrame) -> pd.DataFrame:
    """Per sampler and method of a race: the shares of a round that the target's pass ("verify"),
    drafting (draft passes and lookups) and the host's own code take; the measured speed-up over
    plain decoding; and by arithmetic what it would be if the host were free (for plain decoding
    too), if drafting were free, and if both were.  Raises ValueError if there is no plain decoding.
    """
    if AUTOREGRESSIVE not in set(ledger.method):
        got = ", ".join(dict.fromkeys(ledger.method)) or "no row"
        raise ValueError(f"the ledger lacks plain decoding, has {got}; `specdec bench` makes one")
    parts = {"verify": "verify", "draft passes": "drafting", "n-gram": "drafting"}
    kinds, keys = ledger.part.map(parts).fillna("host"), ["temperature", "top_k", "method"]
    shares = ledger.groupby([*keys, kinds], sort=False).share.sum().unstack(fill_value=0.0)
    shares = shares.reindex(columns=["verify", "drafting", "host"], fill_value=0.0)
    shares = shares.div(shares.sum(axis=1), axis=0)
    ratios = over_plain(raced).set_index(keys).ratio
    found = shares.join(ratios.rename("speed_up"), how="inner")
    plain = shares.xs(AUTOREGRESSIVE, level="method").verify
    plain = found.index.droplevel("method").map(plain).to_numpy()
    return found.assign(
        free_host=found.speed_up * plain / (1 - found.host),
        free_drafting=found.speed_up / (1 - found.drafting),
        both_free=found.speed_up * plain / found.verify,
    ).drop(index=AUTOREGRESSIVE, level="method")


def _rows(timings: pd.DataFrame) -> Iterator[dict[str, object]]:
    contenders = {key: own.set_index("prompt") for key, own in timings.groupby(KEY, sort=False)}
    plain = [key for key in contenders if key[0] == AUTOREGRESSIVE]
    fastest = min(plain, key=lambda key: _per_token(contenders[key]), default=None)
    bases = [key for key in contenders if key[0] in (*HF, LLAMA_CPP) or key == fastest]
    for key, own in contenders.items():
        for base in bases:
            names = dict(zip(KEY, key, strict=True)) | {"baseline": base[0]}
            yield names | _row(own, contenders[base].loc[own.index])


def _row(own: pd.DataFrame, base: pd.DataFrame) -> dict[str, object]:
    columns = (base.seconds, base.timed_tokens, own.seconds, own.timed_tokens)
    same, there = ["temperature", "top_k", "setting"], ["runtime", "setting"]
    return {
        **own.iloc[0][same],
        **base.iloc[0][there].add_prefix("baseline_"),
        "prompts": len(own),
        "tokens": own.tokens.sum(),
        "repetition": float(np.average(own.repetition, weights=own.tokens)),
        "ms_per_token": 1000 * _per_token(own),
        **named_interval("ratio", bootstrap(*columns, least=LEAST_FOR_WORDS)),
        "tokens_per_round": own.tokens.sum() / own["rounds"].sum(),
        "divergences": own.margin.notna().sum(),
        "wrong": own.wrong.sum(),
        "margin": own.margin.max(),
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
    whole = over_plain(table)
    sizes = whole.groupby(["temperature", "top_k"]).method.transform("size")
    whole = whole[sizes == sizes.max()]  # samplers under which all methods ran
    parts = {
        sampling_of(heat, k or None): own.set_index(["method", "runtime"])
        for (heat, k), own in whole.groupby(["temperature", "top_k"], sort=False)
    }
    heads = [f"{name}: ms per token | speed ÷ plain decoding's | setting" for name in parts]
    lines = [_conditions(whole, parts), "", f"| method | {' | '.join(heads)} |"]
    lines.append(f"|---|{'---|---|---|' * len(parts)}")
    for method, name in NAMES.items():
        runtimes = whole[whole.method == method].runtime.unique()
        for runtime in runtimes:
            cells = " | ".join(_cells(own.loc[method, runtime]) for own in parts.values())
            said = f", {runtime} runtime" if len(runtimes) > 1 else ""
            lines.append(f"| {name}{said} | {cells} |")
    return "\n".join(lines)


def _conditions(whole: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> str:
    """Where, on what and in which arithmetic it was measured, in words."""
    first, fewer = whole.iloc[0], whole.prompts.min()
    most = {name: own.loc[own.prompts.idxmax()] for name, own in parts.items()}
    counts = "; ".join(
        f"{name}: {row.prompts} prompts, {row.tokens:,} tokens, repetition {row.repetition:.2f}"
        for name, row in most.items()
    )
    threads = f"{first.threads} thread{'s' if first.threads > 1 else ''}"
    said = (
        f"Measured by `make bench` on {threads} ({first.machine}), on held-out prompts, a quarter"
        f" of each domain ({counts}). Every method is tuned on development prompts and timed on"
        " held-out ones, interleaved; intervals are 95 %, by bootstrap over prompts."
    )
    if fewer < whole.prompts.max():  # in older races
        said += f" Other programs and runtimes ran on {fewer} prompts, on which their ratios stand,"
        said += " too few for an interval."
    if "int8" in set(whole.runtime):
        model = "The target is the int8 edition: another model"
        return f"{said} {model}, whose plain decoding is the baseline."
    said += " The target is in float32, and our drafts are in the int8 edition."
    for runtime in whole.runtime[whole.runtime.str.startswith(FOREIGN)].head(1):
        precision = runtime.removeprefix(FOREIGN).strip()
        said += f" {FOREIGN} runs in {precision}, which is its faster one here."
    return said


def _cells(row: pd.Series) -> str:
    ratio = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    setting = row.setting.partition(" [")[0]  # older races say how it was chosen
    return f"{row.ms_per_token:.2f} | {ratio} | {setting}"
