"""The benchmark's table: every method against every baseline, as total time per token ÷ total time
per token.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from specdec_lib.core.files import DATA
from specdec_lib.measure.intervals import LEAST_FOR_WORDS, bootstrap, named_interval
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.hugging import HF, LLAMA_CPP
from specdec_lib.measure.sweep.ratios import without_few

MEASURED = DATA / "measured"
ALL = "all"  # domains together
LEDGER = """method edition temperature top_k part model round_seconds share accounted
    watch_cost""".split()
KEY = ["method", "runtime"]


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
    """The stored race of a machine in one edition, without intervals from fewer than 10 prompts; of
    any, that of the machine which ran most in all editions together.  Raises ValueError if there is
    none.
    """
    paths = sorted(folder.glob(f"race_{machine or '*'}.csv"))
    tables = [pd.read_csv(one) for one in paths if not one.stem.endswith(("_prompts", "_ledger"))]
    having = [table for table in tables if edition in set(table.edition)]
    if not having:
        what = f"no race of the {edition} edition on {machine or 'any machine'}"
        raise ValueError(f"{what} is stored in {folder}; `specdec bench` makes one")
    found = max(having, key=lambda table: over_plain(table).prompts.sum())
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


def over_plain(raced: pd.DataFrame) -> pd.DataFrame:
    """The rows of a race over plain decoding, on all domains together."""
    whole = (raced.domain == ALL) & (raced.baseline == AUTOREGRESSIVE)
    return raced[whole].reset_index(drop=True)


def counterfactuals(ledger: pd.DataFrame, raced: pd.DataFrame) -> pd.DataFrame:
    """Per sampler and method of a race: the shares of a round that the target's pass ("verify"),
    drafting (draft passes and lookups) and the host's own code take; the measured speed-up over
    plain decoding; and by arithmetic on these shares what it would be if the host were free (for
    plain decoding too), if drafting were free, and if both were.

    Raises ValueError if the ledger lacks plain decoding, as where none was stored.
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
