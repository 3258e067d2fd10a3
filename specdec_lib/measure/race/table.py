"""The benchmark's table: every method against every baseline, as total time per token ÷ total time
per token.
"""

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import transformers

from specdec_lib.core.files import DATA, write_whole
from specdec_lib.measure.intervals import LEAST_FOR_WORDS, bootstrap, named_interval
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.hugging import HF, LLAMA_CPP
from specdec_lib.measure.sweep.ratios import without_few

MEASURED = DATA / "measured"
ALL = "all"  # domains together
RACED = "amd-epyc-avx512-bf16-1-threads"  # whose race README, notebook 03 and scorecard show
COLUMNS = """method baseline edition temperature top_k domain prompts tokens repetition
    ms_per_token ratio ratio_low ratio_high geometric_mean chosen
    tokens_per_round least_ms_per_token divergences margin runtime setting
    baseline_runtime baseline_setting load machine threads versions""".split()
PER_PROMPT = """method edition runtime temperature top_k prompt tokens timed_tokens
    seconds least_seconds rounds repetition margin load""".split()
LEDGER = """method edition temperature top_k part model round_seconds share accounted
    watch_cost""".split()
KEY = ["method", "runtime"]


def ratio_table(timings: Sequence[Timing], chosen: Mapping[tuple[float, int], str]) -> pd.DataFrame:
    """A row per method, runtime, baseline, sampler and domain, and for all domains together, on the
    prompts that method and baseline share; of the autoregressive contenders the fastest, of
    whatever runtime, is that baseline.

    chosen    per temperature and top-k, which finalist was fastest on development prompts

    Raises ValueError if two contenders share no prompt.
    """
    found = []
    table = pd.DataFrame(map(asdict, timings)).sort_values("prompt", kind="stable")
    table["domain"] = table.prompt.str.partition("/")[0]
    for sampler, own in table.groupby(["temperature", "top_k"], sort=False):
        for name in (ALL, *dict.fromkeys(own.domain)):
            for row in _rows(own if name == ALL else own[own.domain == name]):
                mark = row["method"] == chosen.get(sampler)
                found.append({"domain": name, "chosen": mark} | row)
    return pd.DataFrame(found)


def write_table(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Write a CSV file, whole or not at all, in which rows of other editions stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        before = pd.read_csv(path)
        others = before[~before.edition.isin(set(table.edition))]
        table = pd.concat([one for one in (others, table) if len(one)])
    form = {"index": False, "float_format": "%.6g", "lineterminator": "\r\n"}
    write_whole(path, table.to_csv(columns=list(columns), **form).encode())


def stored_race(
    machine: str = "", *, edition: str = "exact", folder: Path = MEASURED
) -> pd.DataFrame:
    """The stored race of a machine in one edition, without intervals from fewer than 10 prompts; of
    any, that of the machine which ran most in all editions together.  Raises ValueError if there is
    none.
    """
    paths = sorted(folder.glob(f"race_{machine or '*'}.csv"))
    beside = ("_prompts", "_ledger")
    tables = [pd.read_csv(path) for path in paths if not path.stem.endswith(beside)]
    having = [table for table in tables if edition in set(table.edition)]
    found = max(having, key=lambda table: table.prompts.sum(), default=None)
    if found is None:
        what = f"no race of the {edition} edition on {machine or 'any machine'}"
        raise ValueError(f"{what} is stored in {folder}; `specdec bench` makes one")
    return without_few(found[found.edition == edition])


def timed_machine(*, folder: Path = MEASURED) -> str:
    """The machine whose pass times are stored, the first where there are several: what is timed is
    told of one machine.
    """
    return min(folder.glob("latency_*.csv")).stem.removeprefix("latency_")


def stored_ledger(machine: str, *, edition: str = "exact", folder: Path = MEASURED) -> pd.DataFrame:
    """Where the seconds of the tuned methods of a machine's race go; empty where it did not say."""
    path = folder / f"race_{machine}_ledger.csv"
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=LEDGER)
    return table[table.edition == edition]


def paired_speed(
    timings: pd.DataFrame, method: str, baseline: str
) -> tuple[float, float, float, int]:
    """Tokens per second of a method ÷ another's on the prompts of one sampler that both ran, its 95
    % interval over prompts, and their number; from the rows of one edition and runtime.
    """
    some, columns = timings.set_index("prompt"), ["timed_tokens", "seconds"]
    own, base = (some[some.method == name][columns] for name in (method, baseline))
    both = own.merge(base, left_index=True, right_index=True)
    return *bootstrap(*(both[name] for name in both)), len(both)


def over_plain(raced: pd.DataFrame) -> pd.DataFrame:
    """The rows of a race over plain decoding, on all domains together."""
    whole = (raced.domain == ALL) & (raced.baseline == AUTOREGRESSIVE)
    return raced[whole].reset_index(drop=True)


def counterfactuals(ledger: pd.DataFrame, raced: pd.DataFrame) -> pd.DataFrame:
    """Per sampler and method of a race: the shares of a round that the target's pass ("verify"),
    drafting (draft passes and lookups) and the host's own code take; the measured speed-up over
    plain decoding; and by arithmetic on these shares what it would be if the host were free (for
    plain decoding too), if drafting were free, and if both were.

    Raises ValueError if the ledger lacks plain decoding, as that of a machine where none was stored
    does.
    """
    if AUTOREGRESSIVE not in set(ledger.method):
        got = ", ".join(dict.fromkeys(ledger.method)) or "no row"
        raise ValueError(f"the ledger lacks plain decoding, has {got}; `specdec bench` makes one")
    parts = {"verify": "verify", "draft passes": "drafting", "n-gram": "drafting"}
    kinds = ledger.part.map(parts).fillna("host")
    keys = ["temperature", "top_k", "method"]
    shares = ledger.groupby([*keys, kinds], sort=False).share.sum().unstack(fill_value=0.0)
    shares = shares.reindex(columns=["verify", "drafting", "host"], fill_value=0.0)
    shares = shares.div(shares.sum(axis=1), axis=0)
    plain = shares.xs(AUTOREGRESSIVE, level="method").verify
    ratios = over_plain(raced).set_index(keys).ratio
    found = shares.join(ratios.rename("speed_up"), how="inner")
    verified = found.index.droplevel("method").map(plain).to_numpy()
    drafted, host = found.drafting, found.host
    return found.assign(
        free_host=found.speed_up * verified / (1 - host),
        free_drafting=found.speed_up / (1 - drafted),
        both_free=found.speed_up * verified / found.verify,
    ).drop(index=AUTOREGRESSIVE, level="method")


def where() -> dict[str, object]:
    """What the times depend on besides the machine: threads and versions, as columns."""
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    versions += f", transformers {transformers.__version__}"
    return {"threads": torch.get_num_threads(), "versions": versions}


def _rows(timings: pd.DataFrame) -> Iterator[dict[str, object]]:
    contenders = {key: own.set_index("prompt") for key, own in timings.groupby(KEY, sort=False)}
    plain = [key for key in contenders if key[0] == AUTOREGRESSIVE]
    fastest = min(plain, key=lambda key: _per_token(contenders[key]), default=None)
    for key, own in contenders.items():
        for other, base in contenders.items():
            if other[0] in (*HF, LLAMA_CPP) or other == fastest:
                shared = own.index.intersection(base.index)
                if shared.empty:
                    raise ValueError(f"{', '.join(key)} and {', '.join(other)} share no prompt")
                names = dict(zip(KEY, key, strict=True)) | {"baseline": other[0]}
                yield names | _row(own.loc[shared], base.loc[shared])


def _row(own: pd.DataFrame, base: pd.DataFrame) -> dict[str, object]:
    columns = (base.seconds, base.timed_tokens, own.seconds, own.timed_tokens)
    a, b, c, d = (column.to_numpy(float) for column in columns)
    both = (b > 0) & (d > 0)
    logs = np.log(a[both] * d[both] / (c[both] * b[both]))
    first, milliseconds = own.iloc[0], 1000 * _per_token(own)
    return {
        "temperature": first.temperature,
        "top_k": first.top_k,
        "prompts": len(own),
        "tokens": own.tokens.sum(),
        "repetition": float(np.average(own.repetition, weights=own.tokens)),
        "ms_per_token": milliseconds,
        **named_interval("ratio", bootstrap(*columns, least=LEAST_FOR_WORDS)),
        "geometric_mean": math.exp(logs.mean()) if len(logs) else math.nan,
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
