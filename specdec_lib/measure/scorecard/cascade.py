"""Claims of Chen et al. 2024, "Cascade speculative drafting for even faster LLM inference"."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, product

import pandas as pd

from specdec_lib.measure.cascades.variants import by_swi_and_clock
from specdec_lib.measure.latency import stored_tables
from specdec_lib.measure.scorecard.claims import (
    NO_SIGN,
    NONE,
    Claim,
    Finding,
    millions,
    read_measured,
)
from specdec_lib.measure.sweep.ratios import ratios
from specdec_lib.theory import relay_speed_up
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list, published

_claim = partial(Claim, "cascade")
DOMAINS = {"GSM8K": "math", "MMLU": "chat"}  # our prompts nearest to the paper's data
CLOCKED = DOMAINS | {"GSM8K": "code"}  # where word problems were not timed
PRICES = {"ms": "parameters", "pw": "reported"}  # the paper's price lists and ours of their kind
PAPER_MODELS = ("t5-xxl", "t5-base", "t5-small")
METHODS = {
    "speculative": "speculative, chain of 4",
    "cascade": "cascade, K00 = 2",
    "cascade + tree attention": "cascade + tree",
}
ROLES = {"BASE": "middle", "SMALL": "draft", "MaG": "Max-Gram"}
OTHERS = (
    "Word problems for GSM8K, chat for MMLU; target and drafters of {target}, {middle} and {draft}"
    " parameters without embeddings ({paper}, whole)"
)
VICUNA = (
    "Ours: a target of {target} on one core ({machine}), drafts distilled from it and in int8,"
    " {domain} prompts for {data}; Vicuna-7B on an A40 there"
)


def cascade_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of the paper, in its order."""
    theirs = (price_list("ms")[name] for name in PAPER_MODELS)
    sizes = millions(ladder) | {"paper": " : ".join(f"{size:,.0f}" for size in theirs) + " M"}
    sizes["machine"] = stored_tables()["latency"].machine[0]
    others, clock = OTHERS.format(**sizes), read_measured("cascade_walltime")
    clocked = DOMAINS if set(DOMAINS.values()) <= set(clock.domain) else CLOCKED
    vicuna = {
        data: VICUNA.format(domain=domain, data=data, **sizes) for data, domain in clocked.items()
    }
    parts = _ewif(), _tuned(2, others), _walltime(clock, clocked, vicuna)
    rest = _horizontal(clock, clocked["GSM8K"], vicuna["GSM8K"]), _tuned(5, others)
    return list(chain(*parts, *rest, _figures(), _texts()))


def _ewif() -> Iterator[Claim]:
    inputs = published("cascade.table1_inputs").set_index("model")
    for row in published("cascade.table1").itertuples():
        names = [name for name in (row.d1, row.d2) if isinstance(name, str)]
        lengths = [int(length) for length in (row.k1, row.k2) if length == length]
        rates = inputs.loc[names, row.data.lower()].tolist()
        found = Finding(relay_speed_up(rates, inputs.loc[names, "cost"].tolist(), lengths))
        claim = f"{row.data}, {' + '.join(names)}"
        reason = (
            "A formula: rates of Leviathan et al. 2023, and costs inferred from FLAN-T5's sizes,"
            " which the paper does not print."
        )
        yield _claim("Table 1", claim, "EWIF", "predicted", row.ewif, found, 1, reason)


def _tuned(table: int, others: str) -> Iterator[Claim]:
    """SWI (table 2), and the lengths and lenience behind it (table 5), as tuned here."""
    stored = _greedy("swi").set_index(["domain", "prices", "drafters"])
    printed = published(f"cascade.table{table}").query("method != 'autoregressive'")
    for row, (column, prices) in product(printed.to_dict("records"), PRICES.items()):
        domain, drafters = DOMAINS[row["data"]], row["drafters"]
        one = stored.loc[domain, prices, " + ".join(ROLES[name] for name in drafters)]
        claim = f"{row['data']}, {' + '.join(drafters)}, {column.upper()}"
        if table == 2:
            found = Finding(one.swi, one.low, one.high, one.texts)
            reason = f"{others}; K {one.matrix}, lenience {one.lenience:g}, as tuned here."
            rest = "SWI", "SWI", row[column], found, 1, reason
            yield _claim("Table 2", claim, *rest, domain=domain)
            continue
        matrix = [list(map(float, line.split())) for line in str(one.matrix).split("/")]
        second = matrix[1][1] if len(matrix) > 1 else NONE
        own = {"k11": matrix[0][0], "k12": sum(matrix[0][:2]), "k22": second}
        own["lenience"] = one.lenience
        reason = f"{others}. The tuned K, without sums: {one.matrix}; a surer draft is asked more."
        for name, value in own.items():
            if (printed_value := row[f"{column}_{name}"]) == printed_value:
                unit = "factor" if name == "lenience" else "tokens"
                rest = unit, "SWI", printed_value, Finding(value), NO_SIGN, reason
                yield _claim("Table 5", f"{claim}: {name}", *rest, domain=domain)


def _walltime(
    clock: pd.DataFrame, clocked: dict[str, str], vicuna: dict[str, str]
) -> Iterator[Claim]:
    printed = published("cascade.table3").set_index("method")
    unit, by = "tokens per second ÷ plain decoding's", ["draft", "sampling"]
    for data, domain in clocked.items():
        own = clock[clock.domain == domain].assign(sampling="greedy")
        found = ratios(own, "tokens", "seconds", baseline="autoregressive", by=by)
        found = found.set_index("draft")
        for method, value in printed[f"{data.lower()}_ratio"].drop("autoregressive").items():
            way, ours = "nothing", Finding()
            reason = "Medusa's heads are trained for one target; there are none for this one."
            if method in METHODS:
                way, ours = "clock", Finding.of(found.loc[METHODS[method]])
                reason = f"{vicuna[data]}. Timed here: {METHODS[method]}."
                if method != "speculative":
                    reason += " Wrong copies of its tail cost rows, which a core pays for."
            claim = f"{data}, {method}"
            yield _claim("Table 3", claim, unit, way, value, ours, 1, reason, domain=domain)


def _horizontal(clock: pd.DataFrame, domain: str, vicuna: str) -> Iterator[Claim]:
    prices = read_measured("prices").set_index("model").price.to_dict()
    both = {"prefix": "cascade, K00 = ", "baseline": "cascade, K00 = 1"}
    both = by_swi_and_clock(clock[clock.domain == domain], prices, **both)
    both = both.set_index(["by", "variant"])
    swi, found = both.value["SWI, counted"], both.loc["speed, measured"]
    printed = published("cascade.table4").set_index("K00").walltime
    change = 1 + number("cascade.text.ablation", "no horizontal cascade", "change") / 100
    tail = " The tail of ten copies costs rows, and time where they are wrong."
    rows = [
        ("Table 4", f"K00 = {length}", str(length), printed[length] / printed[1], "")
        for length in printed.index[1:]
    ]
    rows.append(("Ablation", "no horizontal", "1, no horizontal", change, tail))
    for item, claim, variant, value, more in rows:
        reason = f"{vicuna}. By SWI, of the same rounds, {swi[variant]:.2f}.{more}"
        given = value, Finding.of(found.loc[variant]), 1, reason
        whole = "K00 = 1" if item == "Table 4" else "the full cascade"
        unit = f"tokens per second ÷ those of {whole}"
        yield _claim(item, claim, unit, "clock", *given, domain=domain)


def _figures() -> Iterator[Claim]:
    reason = "A diagram without data; `from_matrix` builds what it shows."
    yield _claim("Figure 1", "the two cascades", "", "nothing", NONE, Finding(), 0, reason)
    rates = _greedy("position").set_index(["domain", "drafter", "position"])
    for (data, domain), drafter in product(DOMAINS.items(), ("middle", "draft")):
        first, later = (rates.rate[domain, drafter, position] for position in (1, 10))
        reason = (
            "No values are printed, and a product of rates can only fall; ours, the probability of"
            f" being accepted up to position 1 and 10, from {first:.2f} to {later:.2f}."
        )
        given = f"{data}, {drafter}", "probability", "nothing", NONE, Finding(), 0, reason
        yield _claim("Figure 2", *given, domain=domain)


def _texts() -> Iterator[Claim]:
    swi = _greedy("swi").set_index(["domain", "prices", "drafters"]).sort_index()
    pairs = _greedy("versus").set_index(["domain", "prices", "cascade", "alone"]).sort_index()
    unit = "percent of SWI above the best single neural drafter"
    for row in published("cascade.text.claims").to_dict("records"):
        domain, names = DOMAINS[row["data"]], row["cascade_drafters"].split(",")
        where = domain, PRICES[row["price"].lower()]
        own = swi.loc[where].swi
        best, cascade = own[["middle", "draft"]].idxmax(), " + ".join(ROLES[one] for one in names)
        ends = pairs.loc[(*where, cascade, best), ["low", "high"]]
        values = 100 * (own[cascade] / own[best] - 1), *(100 * (ends - 1))
        found = Finding(*values, swi.texts[(*where, cascade)])
        claimed = row["claimed_as_percent"]
        said = f"The paper says {claimed:g} %: points of SWI. " if claimed == claimed else ""
        rival = f"Max-Gram alone has {own['Max-Gram'] / own[best]:.2f} times its SWI."
        reason = f"{said}Against the {best} alone; {rival}"
        claim = f"{row['data']}, {' + '.join(names)}, {row['price']}"
        given = row["ratio_gain"], found, 0, reason
        yield _claim("Abstract and text", claim, unit, "SWI", *given, domain=domain)


def _greedy(name: str) -> pd.DataFrame:
    """A stored table's greedy rows."""
    return read_measured(f"cascade_{name}").query("sampling == 'greedy'")
