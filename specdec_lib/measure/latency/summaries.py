"""What the tables of `measuring` say, as notebooks print it and as figures take it."""

from collections.abc import Sequence
from itertools import product

import pandas as pd

from specdec_lib.measure.latency.passes import MODEL, fit_lines
from specdec_lib.measure.race_table import counterfactuals
from specdec_lib.measure.ratios import ALL, sampling_of
from specdec_lib.measure.settings.latency import setting_in_words
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.theory import Overhead

INSIDE = ("verify", "draft passes")  # parts of a round in which a model runs
SIDES = ("stored", "here")


def with_words(table: pd.DataFrame) -> pd.DataFrame:
    """A table "ledger", "speeds" or "sweeps" with `sampling`, the sampler in words, and with its
    `draft` (and its `kind`, if it has one) as figures write them.
    """
    columns = [name for name in ("draft", "kind") if name in table]
    words = {name: table[name].map(setting_in_words) for name in columns}
    return table.assign(**words, sampling=[sampling_of(one, None) for one in table.temperature])


def pass_multiples(curves: pd.DataFrame) -> pd.DataFrame:
    """A row per runtime and model of the table "latency", after its longest context: by number of
    rows, a pass ÷ the pass over one row; the milliseconds of that one, alone and ÷ the target's;
    its roofline ÷ its seconds; and the largest error of a straight line through all of its passes
    (a share).
    """
    longest = curves[curves.context_tokens == curves.context_tokens.max()]
    by = MODEL[::-1]
    multiples = longest.pivot(index=by, columns="rows", values="seconds")
    one = longest[longest.rows == 1].set_index(by)
    target = one.seconds.xs("target", level="model")
    return multiples.div(multiples[1], axis=0).assign(
        **{
            "one row, ms": 1e3 * one.seconds,
            "÷ the target's": (one.seconds / target).reindex(one.index),
            "roofline ÷ it": one.roofline_seconds / one.seconds,
            "error of a line": fit_lines(curves).set_index(by).largest_error,
        }
    )


def ledger_costs(ledger: pd.DataFrame) -> pd.DataFrame:
    """A row per runtime, sampling and draft of the table "ledger": milliseconds per token, the
    share of a round in which no model runs, all parts ÷ the wall time, and what the wrappers add to
    the wall time (a share).

    ledger    of `with_words`
    """
    groups = ledger.assign(
        ms_per_token=1e3 * ledger.token_seconds,
        outside_models=ledger.share.mask(ledger.part.isin(INSIDE), 0.0),
    ).groupby(["runtime", "sampling", "draft"], sort=False)
    sums = groups[["ms_per_token", "outside_models"]].sum()
    return sums.join(groups[["accounted", "watch_cost"]].first())


def host_overheads(speeds: pd.DataFrame, temperature: float = 0.0) -> dict[str, Overhead]:
    """By kind of draft, the seconds outside the models that were fitted to the table "speeds"."""
    own = speeds[speeds.temperature == temperature].groupby("kind", sort=False).first()
    parts = own[["round_overhead", "guess_overhead", "pass_overhead"]]
    return {str(kind): Overhead(*map(float, one)) for kind, *one in parts.itertuples()}


def prediction_errors(speeds: pd.DataFrame) -> pd.DataFrame:
    """Per sampling and kind of draft of the table "speeds" the median and the largest error of the
    predicted speed (without its sign, a share), and how many settings there are.

    speeds    of `with_words`
    """
    sizes = speeds.assign(size=speeds.error.abs())
    found = sizes.groupby(["sampling", "kind"], sort=False)["size"].agg(["median", "max", "size"])
    return found.rename(columns={"max": "largest", "size": "settings"})


def sweep_rows(sweeps: pd.DataFrame) -> pd.DataFrame:
    """The table "sweeps" as `figures.speed_sweep` takes it: the first domain at every temperature,
    and every domain at the lowest one, without plain decoding.

    sweeps    of `with_words`
    """
    drafts = sweeps[sweeps.kind != setting_in_words(AUTOREGRESSIVE)]
    first = drafts[drafts.domain == sweeps.domain.iloc[0]]
    coldest = drafts[drafts.temperature == sweeps.temperature.min()]
    by_temperature = first.assign(sweep="temperature", value=first.temperature)
    return pd.concat([by_temperature, coldest.assign(sweep="domain", value=coldest.domain)])


def beside_here(
    here: pd.DataFrame, stored: pd.DataFrame, keys: Sequence[str], values: Sequence[str]
) -> pd.DataFrame:
    """What was measured here beside what is stored: a row per row of `here`, called by its keys,
    and per value the column "stored" (NaN where nothing is) and the column "here".

    keys    columns that tell the rows of either table apart; ValueError if they do not
    """
    tables = dict(zip(SIDES, (stored, here), strict=True))
    for name, one in tables.items():
        if one.duplicated([*keys]).any():
            raise ValueError(f"{', '.join(keys)} must tell the rows of the table {name} apart")
        tables[name] = one.set_index([*keys])
    rows = tables["here"].index
    both = pd.concat({name: one.reindex(rows)[[*values]] for name, one in tables.items()}, axis=1)
    return both.swaplevel(axis=1)[[*product(values, SIDES)]]


def free_parts(ledger: pd.DataFrame, speeds: pd.DataFrame) -> pd.DataFrame:
    """`counterfactuals` of the tables "ledger" and "speeds", of the runtime of the latter, by
    sampling and draft in words.
    """
    spent = ledger[ledger.runtime == speeds.runtime.iloc[0]]
    gains = speeds.assign(domain=ALL, baseline=AUTOREGRESSIVE)
    found = counterfactuals(
        spent.rename(columns={"draft": "method"}).assign(top_k=0),
        gains.rename(columns={"draft": "method", "speed_up": "ratio"}).assign(top_k=0),
    ).reset_index()
    named = with_words(found.rename(columns={"method": "draft"}))
    return named.drop(columns=["temperature", "top_k"]).set_index(["sampling", "draft"])
