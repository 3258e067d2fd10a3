"""Claims of Chen et al. 2024, "Cascade speculative drafting for even faster LLM inference"."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import chain, product

import pandas as pd

from specdec_lib.measure.bytes_moved import CASCADE
from specdec_lib.measure.cascade.variants import by_swi_and_clock
from specdec_lib.measure.latency import stored_tables
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.scorecard.claims import NO_SIGN, RATIO, Claim, millions, read_measured
from specdec_lib.theory import relay_speed_up
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list, published

_claim = partial(Claim, "cascade")
DOMAINS = {"GSM8K": "math", "MMLU": "chat"}  # our prompts nearest to the paper's data
PRICES = {"ms": "parameters", "pw": "reported"}  # the paper's price lists and ours of their kind
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
    theirs = (price_list("ms")[name] for name in CASCADE.values())
    about = millions(ladder) | {"paper": " : ".join(f"{size:,.0f}" for size in theirs) + " M"}
    about["machine"] = stored_tables()["latency"].machine[0]
    clock = read_measured("cascade_walltime")
    vicuna = {data: VICUNA.format(domain=DOMAINS[data], data=data, **about) for data in DOMAINS}
    swi, lengths = _tuned(OTHERS.format(**about))
    parts = _ewif(), swi, _walltime(clock, vicuna), _horizontal(clock, vicuna["GSM8K"]), lengths
    return list(chain(*parts, _figures(), _texts()))


def _ewif() -> Iterator[Claim]:
    inputs = published("cascade.table1_inputs").set_index("model")
    reason = (
        "A formula: rates of Leviathan et al. 2023, and costs inferred from FLAN-T5's sizes,"
        " which the paper does not print."
    )
    for row in published("cascade.table1").itertuples():
        names = [name for name in (row.d1, row.d2) if isinstance(name, str)]
        lengths = [int(length) for length in (row.k1, row.k2) if length == length]
        rates = inputs.loc[names, row.data.lower()].tolist()
        found = relay_speed_up(rates, inputs.loc[names, "cost"].tolist(), lengths)
        about = f"{row.data}, {' + '.join(names)}", "EWIF", reason
        yield _claim("Table 1", *about, row.ewif, "predicted", found)


def _tuned(others: str) -> tuple[list[Claim], list[Claim]]:
    """SWI (table 2), and the lengths and lenience behind it (table 5), as tuned here."""
    stored, swi, lengths = _greedy("swi").set_index(["domain", "prices", "drafters"]), [], []
    printed = published("cascade.table5").query("method != 'autoregressive'").to_dict("records")
    for row, (column, prices) in product(printed, PRICES.items()):
        domain, drafters = DOMAINS[row["data"]], row["drafters"]
        own = stored.loc[domain, prices, " + ".join(ROLES[name] for name in drafters)]
        claim = f"{row['data']}, {' + '.join(drafters)}, {column.upper()}"
        reason = f"{others}; K {own.matrix}, lenience {own.lenience:g}, as tuned here."
        about = claim, "SWI", reason, row[column], "SWI"
        found = own[["swi", "low", "high", "texts"]]
        swi.append(_claim("Table 2", *about, *found, domain=domain))
        matrix = [list(map(float, line.split())) for line in str(own.matrix).split("/")]
        second = matrix[1][1] if matrix[1:] else math.nan
        values = {"k11": matrix[0][0], "k12": sum(matrix[0][:2]), "k22": second}
        reason = f"{others}. The tuned K, without sums: {own.matrix}; a surer draft is asked more."
        for name, value in (values | {"lenience": own.lenience}).items():
            if (theirs := row[f"{column}_{name}"]) == theirs:
                unit = "factor" if name == "lenience" else "tokens"
                about = f"{claim}: {name}", unit, reason, theirs, "SWI", value
                lengths.append(_claim("Table 5", *about, no_effect=NO_SIGN, domain=domain))
    return swi, lengths


def _walltime(clock: pd.DataFrame, vicuna: dict[str, str]) -> Iterator[Claim]:
    printed = published("cascade.table3").set_index("method").drop("autoregressive")
    unit, by = "tokens per second ÷ plain decoding's", ["draft", "sampling"]
    for data, domain in DOMAINS.items():
        own = clock[clock.domain == domain].assign(sampling="greedy")
        found = ratios(own, "tokens", "seconds", baseline="autoregressive", by=by)
        found = found.set_index("draft")[RATIO]
        for method, value in printed[f"{data.lower()}_ratio"].items():
            way, ours = "nothing", ()
            reason = "Medusa's heads are trained for one target; there are none for this one."
            if method in METHODS:
                way, ours = "clock", found.loc[METHODS[method]]
                reason = f"{vicuna[data]}. Timed here: {METHODS[method]}."
                if method != "speculative":
                    reason += " Wrong copies of its tail cost rows, which a core pays for."
            about = f"{data}, {method}", unit, reason, value
            yield _claim("Table 3", *about, way, *ours, domain=domain)


def _horizontal(clock: pd.DataFrame, vicuna: str) -> Iterator[Claim]:
    prices = read_measured("prices").set_index("model").price.to_dict()
    domain, kind = DOMAINS["GSM8K"], {"prefix": "cascade, K00 = ", "baseline": "cascade, K00 = 1"}
    both = by_swi_and_clock(clock[clock.domain == domain], prices, **kind)
    both = both.set_index(["by", "variant"])
    swi, found = both.value["SWI, counted"], both.loc["speed, measured", RATIO]
    printed = published("cascade.table4").set_index("K00").walltime
    change = 1 + number("cascade.text.ablation", "no horizontal cascade", "change") / 100
    tail = " The tail of ten copies costs rows, and time where they are wrong."
    rows = [
        ("Table 4", f"K00 = {length}", "K00 = 1", str(length), printed[length] / printed[1], "")
        for length in printed.index[1:]
    ]
    removed = "Ablation", "no horizontal", "the full cascade", "1, no horizontal", change, tail
    for item, claim, whole, variant, value, more in (*rows, removed):
        reason = f"{vicuna}. By SWI, of the same rounds, {swi[variant]:.2f}.{more}"
        about = claim, f"tokens per second ÷ those of {whole}", reason, value
        yield _claim(item, *about, "clock", *found.loc[variant], domain=domain)


def _figures() -> Iterator[Claim]:
    reason = "A diagram without data; `from_matrix` builds what it shows."
    yield _claim("Figure 1", "the two cascades", "", reason, no_effect=0)
    rates = _greedy("position").set_index(["domain", "drafter", "position"])
    for (data, domain), drafter in product(DOMAINS.items(), ("middle", "draft")):
        first, later = (rates.rate[domain, drafter, position] for position in (1, 10))
        reason = (
            "No values are printed, and a product of rates can only fall; ours, the probability of"
            f" being accepted up to position 1 and 10, from {first:.2f} to {later:.2f}."
        )
        about = f"{data}, {drafter}", "probability", reason
        yield _claim("Figure 2", *about, no_effect=0, domain=domain)


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
        found = 100 * (own[cascade] / own[best] - 1), *(100 * (ends - 1))
        claimed = row["claimed_as_percent"]
        said = f"The paper says {claimed:g} %: points of SWI. " if claimed == claimed else ""
        rival = f"Max-Gram alone has {own['Max-Gram'] / own[best]:.2f} times its SWI."
        reason = f"{said}Against the {best} alone; {rival}"
        about = f"{row['data']}, {' + '.join(names)}, {row['price']}", unit, reason
        found = row["ratio_gain"], "SWI", *found, swi.texts[(*where, cascade)]
        yield _claim("Abstract and text", *about, *found, no_effect=0, domain=domain)


def _greedy(name: str) -> pd.DataFrame:
    """A stored table's greedy rows."""
    return read_measured(f"cascade_{name}").query("sampling == 'greedy'")
