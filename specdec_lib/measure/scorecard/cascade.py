"""Claims of Chen et al. 2024, "Cascade speculative drafting for even faster LLM inference"."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from specdec_lib.measure.cascades.variants import by_swi_and_clock
from specdec_lib.measure.scorecard.claims import (
    NO_SIGN,
    NONE,
    Claim,
    Finding,
    millions,
    read_measured,
)
from specdec_lib.measure.sweep.ratios import relative
from specdec_lib.theory import relay_speed_up
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list, published

if TYPE_CHECKING:
    from pandas import DataFrame

PAPER = "cascade"
DOMAINS = {"GSM8K": "math", "MMLU": "chat"}  # our prompts nearest to the paper's data
CLOCKED = DOMAINS | {"GSM8K": "code"}  # where word problems were not timed
PRICES = {"ms": "parameters", "pw": "reported"}  # the paper's price lists and ours of their kind
PAPER_MODELS = ("t5-xxl", "t5-base", "t5-small")
ROLES = {"BASE": "middle", "SMALL": "draft", "MaG": "Max-Gram"}
COLUMNS = ["value", "low", "high", "prompts"]
OTHERS = (
    "Word problems for GSM8K, chat for MMLU; target and drafters of {target}, {middle} and {draft}"
    " parameters ({paper})"
)
VICUNA = (
    "Ours: a target of {target} on one core, {domain} prompts for {data}; Vicuna-7B on an A40 there"
)


def cascade_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of the paper, in its order."""
    theirs = (price_list("ms")[name] for name in PAPER_MODELS)
    sizes = millions(ladder) | {"paper": " : ".join(f"{size:,.0f}" for size in theirs) + " M"}
    others = OTHERS.format(**sizes)
    clocked = _walltime(sizes), _horizontal(sizes)
    return list(chain(_ewif(), _swi(others), *clocked, _lengths(others), _figures(), _texts()))


def _ewif() -> Iterator[Claim]:
    inputs = published("cascade.table1_inputs").set_index("model")
    for row in published("cascade.table1").itertuples():
        names = [name for name in (row.d1, row.d2) if isinstance(name, str)]
        lengths = [int(length) for length in (row.k1, row.k2) if length == length]
        rates = inputs.loc[names, row.data.lower()].tolist()
        found = Finding(relay_speed_up(rates, inputs.loc[names, "cost"].tolist(), lengths))
        claim, reason = f"{row.data}, {' + '.join(names)}", "A formula, of the paper's own inputs."
        yield Claim(PAPER, "Table 1", claim, "EWIF", "predicted", row.ewif, found, 1, reason)


def _swi(others: str) -> Iterator[Claim]:
    table = _greedy("swi").set_index(["domain", "prices", "drafters"])
    printed = published("cascade.table2")
    printed = printed[printed.method != "autoregressive"]
    for row in printed.to_dict("records"):
        drafters = " + ".join(ROLES[name] for name in row["drafters"])
        for column, prices in PRICES.items():
            one = table.loc[DOMAINS[row["data"]], prices, drafters]
            ours = Finding(one.swi, one.low, one.high, one.texts)
            claim = f"{row['data']}, {' + '.join(row['drafters'])}, {column.upper()}"
            reason = f"{others}; K {one.matrix}, lenience {one.lenience:g}, as tuned here."
            value, domain = row[column], DOMAINS[row["data"]]
            yield Claim(
                PAPER, "Table 2", claim, "SWI", "SWI", value, ours, 1, reason, domain=domain
            )


def _walltime(sizes: dict[str, str]) -> Iterator[Claim]:
    clock = _clock()
    methods = {
        "speculative": "speculative, chain of 4",
        "cascade": "cascade, K00 = 2",
        "cascade + tree attention": "cascade + tree",
    }
    printed = published("cascade.table3").set_index("method")
    unit = "tokens per second ÷ plain decoding's"
    for data, domain in _clocked(clock).items():
        own = clock[clock.domain == domain]
        by = ["draft", "sampling"]
        found = relative(own, "tokens", "seconds", baseline="autoregressive", by=by)
        found = found.set_index("draft")
        for method, value in printed[f"{data.lower()}_ratio"].drop("autoregressive").items():
            reason, ours = f"{VICUNA.format(domain=domain, data=data, **sizes)}.", Finding()
            way = "clock" if method in methods else "nothing"
            if method in methods:
                one = found.loc[methods[method]]
                ours = Finding(one.value, one.low, one.high, one.prompts)
                reason += " Copies that are wrong cost rows, which a core pays for."
            else:
                reason = "Medusa's heads are trained for one target; there are none for this one."
            claim = f"{data}, {method}"
            yield Claim(PAPER, "Table 3", claim, unit, way, value, ours, 1, reason, domain=domain)


def _horizontal(sizes: dict[str, str]) -> Iterator[Claim]:
    own, domain = _clock(), _clocked(_clock())["GSM8K"]
    prices = read_measured("prices").set_index("model").price.to_dict()
    both = {"prefix": "cascade, K00 = ", "baseline": "cascade, K00 = 1"}
    both = by_swi_and_clock(own[own.domain == domain], prices, **both).set_index(["by", "variant"])
    swi, found = both.value["SWI, counted"], both.loc["speed, measured"]
    unit = "tokens per second ÷ those of K00 = 1"
    reason = VICUNA.format(domain=domain, data="GSM8K", **sizes)
    printed = published("cascade.table4").set_index("K00").walltime
    for length in printed.index[1:]:
        ours, said = Finding(*found.loc[str(length), COLUMNS]), _by_swi(swi[str(length)])
        value = printed[length] / printed[1]
        claim, said = f"K00 = {length}", f"{reason}. {said}"
        yield Claim(PAPER, "Table 4", claim, unit, "clock", value, ours, 1, said, domain=domain)
    value = 1 + number("cascade.text.ablation", "no horizontal cascade", "change") / 100
    ours = Finding(*found.loc["1, no horizontal", COLUMNS])
    said = f"{_by_swi(swi['1, no horizontal'])} The tail of ten copies costs rows, and time where"
    said += " they are wrong."
    claim, said = "no horizontal", f"{reason}. {said}"
    yield Claim(PAPER, "Ablation", claim, unit, "clock", value, ours, 1, said, domain=domain)


def _clocked(clock: "DataFrame") -> dict[str, str]:
    return DOMAINS if set(DOMAINS.values()) <= set(clock.domain) else CLOCKED


def _by_swi(ratio: float) -> str:
    return f"By SWI, of the same rounds, {ratio:.2f}."


def _lengths(others: str) -> Iterator[Claim]:
    table = _greedy("swi").set_index(["domain", "prices", "drafters"])
    printed = published("cascade.table5")
    for row in printed[printed.method != "autoregressive"].to_dict("records"):
        drafters = " + ".join(ROLES[name] for name in row["drafters"])
        for column, prices in PRICES.items():
            one = table.loc[DOMAINS[row["data"]], prices, drafters]
            found = Finding(float(str(one.matrix).split()[0]))
            claim = f"{row['data']}, {' + '.join(row['drafters'])}, {column.upper()}"
            reason = f"{others}. The tuned K: {one.matrix}; a surer draft is asked for more."
            value, said = row[f"{column}_k11"], {"domain": DOMAINS[row["data"]]}
            claim = f"{claim}: k11"
            yield Claim(
                PAPER, "Table 5", claim, "tokens", "SWI", value, found, NO_SIGN, reason, **said
            )


def _figures() -> Iterator[Claim]:
    reason = "A diagram without data; `from_matrix` builds what it shows."
    yield Claim(PAPER, "Figure 1", "the two cascades", "", "nothing", NONE, Finding(), 0, reason)
    rates = _greedy("position").set_index(["domain", "drafter", "position"])
    for data, domain in DOMAINS.items():
        for drafter in ("middle", "draft"):
            first, later = (rates.loc[domain, drafter, position] for position in (1, 10))
            reason = f"No values are printed. It falls from {first.rate:.2f} to {later.rate:.2f}."
            claim, unit = f"{data}, {drafter}", "acceptance rate at position 10 minus at position 1"
            fall, apart = later.rate - first.rate, (later.low - first.high, later.high - first.low)
            found = Finding(fall, *apart)
            said = {"sign": -1, "domain": domain}
            yield Claim(PAPER, "Figure 2", claim, unit, "counted", NONE, found, 0, reason, **said)


def _texts() -> Iterator[Claim]:
    swi = _greedy("swi").set_index(["domain", "prices", "drafters"]).sort_index().swi
    for row in published("cascade.text.claims").to_dict("records"):
        prices, domain = PRICES[row["price"].lower()], DOMAINS[row["data"]]
        own = swi[domain, prices]
        alone = {name: own[name] for name in ("middle", "draft")}
        best = max(alone, key=alone.get)
        drafters = " + ".join(ROLES[name] for name in row["cascade_drafters"].split(","))
        found = Finding(100 * (own[drafters] / alone[best] - 1))
        claimed = row["claimed_as_percent"]
        said = f"The paper says {claimed:g} %: points of SWI. " if claimed == claimed else ""
        rival = own["Max-Gram"] / alone[best]
        reason = f"{said}Against the {best} alone; Max-Gram alone has {rival:.2f} times its SWI."
        claim = f"{row['data']}, {row['cascade_drafters'].replace(',', ' + ')}, {row['price']}"
        unit, value = "percent of SWI above the best single neural drafter", row["ratio_gain"]
        item, said = "Abstract and text", {"domain": domain}
        yield Claim(PAPER, item, claim, unit, "SWI", value, found, 0, reason, **said)


def _clock() -> "DataFrame":
    return read_measured("cascade_walltime").assign(sampling="greedy")


def _greedy(name: str) -> "DataFrame":
    """A stored table's greedy rows."""
    return read_measured(f"cascade_{name}").query("sampling == 'greedy'")
