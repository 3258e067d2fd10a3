"""The race of ideas and counted SWI beside what both papers print, as figures take them."""

from collections.abc import Mapping, Sequence

import pandas as pd

from specdec_lib.measure.idea_tables import EMBEDDED, EXACT, idea_table
from specdec_lib.measure.price_map import raced_work
from specdec_lib.measure.ratios import (
    ALL,
    interval,
    named_interval,
    ratios,
    sampling_of,
    without_few,
)
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, SPECULATIVE
from specdec_lib.workload.published import published

BEST_ALONE = "best drafter alone"
BY_SWI = "SWI, counted"
PAPER_SETS = ("GSM8K", "MMLU")


def clocked_speed_ups(
    stored: pd.DataFrame, methods: Mapping[str, str], base: str = AUTOREGRESSIVE
) -> pd.DataFrame:
    """Speed ÷ that of `base` by the clock, as `figures.paper_speed_ups` takes it: per sampler,
    method and `whose` (an edition and a kind of prompts).

    stored     as `stored_ideas` gives it
    methods    of the race, by the names that they are to have, in their order
    base       the method to compare with

    Raises ValueError for a method that the race does not pair with it.
    """
    table = idea_table(stored)
    table = table[(table.part == ALL) & (table.base == base)]
    own = table[table.method.isin(methods.values())]
    if unpaired := sorted({*methods.values()} - {*own.method}):
        raise ValueError(f"the race pairs {base} with no {', '.join(unpaired)}")
    names = {raced: called for called, raced in methods.items()}
    own = own.sort_values(
        "method", key=lambda some: some.map([*methods.values()].index), kind="stable"
    )
    return pd.DataFrame(
        {
            "sampling": own.sampling,
            "method": own.method.map(names),
            "whose": own.edition + ", " + own.family,
            "speed_up": own.ratio,
            "low": own.ratio_low,
            "high": own.ratio_high,
            "prompts": own.prompts,
        }
    )


def gains_by_prompt(
    stored: pd.DataFrame, before: str, after: str, edition: str = "exact"
) -> pd.DataFrame:
    """Speed ÷ plain decoding's of two methods on every prompt of a stored race, as
    `figures.prompt_gains` takes it; published prompts are one kind.
    """
    own = stored[stored.edition == edition]
    keys = ["temperature", "top_k", "family", "prompt"]
    pace = own.assign(pace=own.tokens / own.seconds)
    pace = pace.pivot(index=keys, columns="method", values="pace")
    about = own[own.method == AUTOREGRESSIVE].set_index(keys)
    gains = (
        pace[[before, after]]
        .div(pace[AUTOREGRESSIVE], axis=0)
        .set_axis(["before", "after"], axis=1)
    )
    found = gains.join(about[["domain", "repetition", "machine"]]).reset_index()
    found["kind"] = found.domain.where(found.family == EMBEDDED, "published")
    found["sampling"] = list(map(sampling_of, found.temperature, found.top_k))
    return found.sort_values(["temperature", "family", "kind"], kind="stable")


def cascade_parts(
    stored: pd.DataFrame,
    methods: Mapping[str, str],
    prices: Mapping[str, float],
    base: str = SPECULATIVE,
) -> pd.DataFrame:
    """What each part of a cascade brings over `base`, as `figures.idea_ratios` takes it: by SWI of
    the counted passes in float32, and by the clock in both editions, per sampler and kind of
    prompts.

    methods    of the race, by the names that they are to have, from the top
    prices     of a pass of each model
    base       the method to compare with
    """
    clock = clocked_speed_ups(stored, methods, base)
    edition, family = clock.whose.str.split(", ", expand=True).to_numpy().T
    named = {"speed_up": "ratio", "low": "ratio_low", "high": "ratio_high"}
    timed = clock.rename(columns=named).assign(way="speed, " + edition, family=family)
    exact = stored[stored.edition.replace(EXACT) == EXACT["exact"]]
    charged = exact.assign(
        cost=[
            sum(
                count * prices[model]
                for (model, _, _), count in raced_work(exact[at : at + 1]).passes.items()
            )
            for at in range(len(exact))
        ]
    )
    rows = []
    for (heat, top_k, kind), own in charged.groupby(["temperature", "top_k", "family"], sort=False):
        both = own.pivot(index="prompt", columns="method", values=["tokens", "cost"])
        other = (both["tokens", base], both["cost", base])
        for called, method in methods.items():
            ratio = interval(both["tokens", method], both["cost", method], *other)
            head = {"sampling": sampling_of(float(str(heat)), int(str(top_k))), "method": called}
            head |= {"family": kind, "way": BY_SWI, "prompts": len(both)}
            rows.append(head | named_interval("ratio", ratio))
    found = pd.concat([pd.DataFrame(rows), timed.drop(columns="whose")], ignore_index=True)
    order = list(dict.fromkeys(found.sampling))
    found = found.sort_values("sampling", key=lambda own: own.map(order.index), kind="stable")
    panel = found.sampling + ": " + found.way
    return found.assign(panel=panel, pair=found.method, idea="cascade")


def swi_of_sets(table: pd.DataFrame, kept: Mapping[str, str], alone: Sequence[str]) -> pd.DataFrame:
    """The SWI of some sets of drafters, and of the best drafter alone, as `figures.swi_by_prices`
    takes it.

    table    a row per data, list of prices and set of drafters: `data`, `prices`, `drafters`,
             `ours` with `ours_low` and `ours_high`, and `paper`; of the last two kinds one is NaN
    kept     sets of drafters, by the names that they are to have
    alone    the drafters of which the best one counts
    """
    found = table.assign(
        data=table.data.where(table.paper.isna(), "paper, " + table.data),
        printed=table.paper.notna(),
        swi=table.ours.fillna(table.paper),
        low=table.ours_low,
        high=table.ours_high,
    ).dropna(subset="swi")
    single = found[found.drafters.isin(alone)]
    best = single.loc[single.groupby(["data", "prices", "printed"]).swi.idxmax()]
    parts = [best.assign(drafters=BEST_ALONE)]
    for called, drafters in kept.items():
        parts.append(found[found.drafters == drafters].assign(drafters=called))
    order = list(dict.fromkeys(table.prices))
    both = pd.concat(parts, ignore_index=True)
    rank = both.prices.map(order.index)
    columns = ["data", "prices", "drafters", "swi", "low", "high", "printed", "prompts"]
    return both.assign(rank=rank).sort_values("rank", kind="stable")[columns]


def clocked_cascades(clock: pd.DataFrame, methods: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """The cascade paper's Table 3 and ours, as `figures.walltimes` takes them: speed ÷ plain
    decoding's by method and kind of text, or data set of the paper.

    clock      as `specdec measure walltime` gives it
    methods    by the name that each is to have, our draft and the paper's method ("": none)
    """
    by = ("draft", "sampling")
    timed = clock.assign(sampling="greedy")
    rows = []
    for domain, own in timed.groupby("domain", sort=False):
        ratio = without_few(ratios(own, "tokens", "seconds", baseline=AUTOREGRESSIVE, by=by))
        speed = ratios(own, "tokens", "seconds", by=by).set_index("draft").value
        ratio = ratio.set_index("draft")
        for name, (draft, _) in methods.items():
            found = {end: ratio[end][draft] for end in ("low", "high", "prompts")}
            found |= {"ratio": ratio.value[draft], "tokens_per_second": speed[draft]}
            rows.append({"method": name, "data": domain, "printed": False} | found)
    printed = published("cascade.table3").set_index("method")
    for data in PAPER_SETS:
        for name, (_, theirs) in methods.items():
            if theirs:
                found = {"ratio": printed[f"{data.lower()}_ratio"][theirs]}
                found |= {"tokens_per_second": printed[data.lower()][theirs]}
                rows.append({"method": name, "data": f"paper, {data}", "printed": True} | found)
    return pd.DataFrame(rows)
