"""What was measured of the claims of Chen et al. 2024."""

import math

import pandas as pd

from specdec_lib.measure.cascade.record import read_matrix
from specdec_lib.measure.cascade.variants import by_swi_and_clock
from specdec_lib.measure.price_map import timed_prices
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.scorecard.evidence import Evidence, evidence_of, read_measured, row_of
from specdec_lib.theory import relay_speed_up
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import published

ROLES = {"BASE": "middle", "SMALL": "draft", "MaG": "Max-Gram"}  # the paper's drafters, and ours
PRICES = {"MS": "parameters", "PW": "reported"}  # the paper's price lists and ours of their kind


def relay_ewif(ladder: Ladder, data: str, d1: str, d2: str) -> Evidence:
    """The EWIF that the formula gives for the printed rates, costs and lengths."""
    inputs = published("cascade.table1_inputs").set_index("model")
    table = published("cascade.table1").fillna({"d2": ""})
    row = table[(table.data == data) & (table.d1 == d1) & (table.d2 == d2)].iloc[0]
    names = [name for name in (d1, d2) if name]
    lengths = [int(length) for length in (row.k1, row.k2) if not math.isnan(length)]
    rates = inputs.loc[names, data.lower()].tolist()
    return Evidence(relay_speed_up(rates, inputs.loc[names, "cost"].tolist(), lengths))


def tuned_swi(ladder: Ladder, domain: str, prices: str, drafters: str) -> Evidence:
    """SWI of these drafters at the setting that was tuned here; the setting."""
    own = _tuned(domain, prices, drafters)
    facts = {"matrix": str(own.matrix), "lenience": f"{own.lenience:g}"}
    return Evidence(own.swi, own.low, own.high, float(own.texts), facts)


def tuned_entry(ladder: Ladder, domain: str, prices: str, drafters: str, entry: str) -> Evidence:
    """One entry of the tuned setting: k11, k12 (of the first row, summed), k22, or its lenience."""
    own = _tuned(domain, prices, drafters)
    matrix = read_matrix(str(own.matrix))
    values = {
        "k11": matrix[0][0],
        "k12": sum(matrix[0][:2]),
        "k22": matrix[1][1] if matrix[1:] else math.nan,
        "lenience": own.lenience,
    }
    return Evidence(float(values[entry]), facts={"matrix": str(own.matrix)})


def clocked(ladder: Ladder, domain: str, draft: str) -> Evidence:
    """Tokens per second of a draft ÷ plain decoding's."""
    clock = read_measured(f"walltime_{RACED}")
    own = clock[clock.domain == domain].assign(sampling="greedy")
    by = ["draft", "sampling"]
    found = ratios(own, "tokens", "seconds", baseline="autoregressive", by=by)
    return evidence_of(row_of(found, draft=draft))


def clocked_variant(ladder: Ladder, domain: str, variant: str) -> Evidence:
    """Tokens per second of a cascade with another K00, or without its horizontal part, ÷ those of
    the cascade with K00 = 1; and the same by SWI.
    """
    clock = read_measured(f"walltime_{RACED}")
    both = by_swi_and_clock(
        clock[clock.domain == domain],
        timed_prices(RACED),
        prefix="cascade, K00 = ",
        baseline="cascade, K00 = 1",
    )
    swi = row_of(both, by="SWI, counted", variant=variant).value
    timed_ratio = row_of(both, by="speed, measured", variant=variant)
    return evidence_of(timed_ratio, {"by_swi": f"{swi:.2f}"})


def accepted_up_to(ladder: Ladder, domain: str, drafter: str) -> Evidence:
    """No number, but how often a draft is accepted up to its first and its tenth position."""
    rates = _greedy("position").set_index(["domain", "drafter", "position"]).rate
    first, tenth = (rates[domain, drafter, position] for position in (1, 10))
    return Evidence(facts={"first": f"{first:.2f}", "tenth": f"{tenth:.2f}"})


def gain_over_one_drafter(ladder: Ladder, domain: str, data: str, key: str, price: str) -> Evidence:
    """Percent of SWI that a cascade gains over the single drafter that development prompts chose,
    which that is, and what the paper says of its own gain.
    """
    where = {"domain": domain, "prices": PRICES[price]}
    cascade = " + ".join(ROLES[name] for name in key.split(","))
    paired = row_of(_greedy("versus"), **where, cascade=cascade)
    texts = _tuned(**where, drafters=cascade).texts
    copies, alone = (_tuned(**where, drafters=name).swi for name in ("Max-Gram", paired.alone))
    claims = published("cascade.text.claims").set_index(["data", "cascade_drafters", "price"])
    percent = claims.claimed_as_percent[data, key, price]
    facts = {
        "chosen": paired.alone,
        "copies": f"{copies / alone:.2f}",
        "claimed": "" if math.isnan(percent) else f"The paper says {percent:g} %: points of SWI. ",
    }
    gain, low, high = (100 * (ratio - 1) for ratio in paired[["ratio", "low", "high"]])
    return Evidence(gain, low, high, float(texts), facts)


def _tuned(domain: str, prices: str, drafters: str) -> pd.Series:
    return row_of(_greedy("swi"), domain=domain, prices=prices, drafters=drafters)


def _greedy(name: str) -> pd.DataFrame:
    """A stored table's greedy rows."""
    return read_measured(f"cascade_{name}").query("sampling == 'greedy'")


OF_CASCADE = {
    "relay_ewif": relay_ewif,
    "tuned_swi": tuned_swi,
    "tuned_entry": tuned_entry,
    "clocked": clocked,
    "clocked_variant": clocked_variant,
    "accepted_up_to": accepted_up_to,
    "gain_over_one_drafter": gain_over_one_drafter,
}
