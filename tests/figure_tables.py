"""One small table per figure function, and how it is drawn: what the tests of figures share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import nan

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import Shape
from specdec_lib.show import figures


@dataclass(frozen=True)
class Case:
    """A figure function with a table, and what its picture must name."""

    draw: Callable[[pd.DataFrame], go.Figure]
    table: pd.DataFrame
    series: str = ""  # divided by "|", as are panels
    panels: str = ""
    ends: str = ""  # the columns of an interval's low end, value and high end
    once: bool = True  # whether a row that is there twice is refused


def rows(columns: str, *values: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(values), columns=columns.split())


RATES = rows(
    "depth confidence kind rate low high at_risk series",
    (2, 0.5, "code", 0.5, 0.4, 0.6, 50, "draft"),
    (1, 0.8, "math", 0.75, 0.7, 0.8, 200, "draft"),
    (1, 0.8, "code", nan, nan, nan, 0, "n-gram"),
)
PAIRS = rows(
    "name predicted measured low high series sampling",
    ("$a", 2.0, 2.1, 2.0, 2.2, "<chain>", "greedy"),
    ("b", 3.0, 2.9, 2.8, 3.0, "tree", "T = 1"),
)
YIELDS = rows(
    "series rounds tokens_per_round tokens_per_round_low tokens_per_round_high"
    " accepted_per_round accepted_per_round_low accepted_per_round_high",
    ("chain", 90, 2.5, 2.4, 2.6, 1.5, 1.4, 1.6),
    ("tree", 80, 3.5, nan, nan, 2.5, nan, nan),
)
BUDGETS = rows(
    "budget tokens_per_round shape measured low high",
    (4, 2.5, "tree", False, nan, nan),
    (1, 1.5, "tree", False, nan, nan),
    (2, 2.0, "tree", True, 1.9, 2.1),
    (1, 1.4, "<chain>", False, nan, nan),
)
GROWN = rows("budget depth speed_up", (1, 1, 1.2), (2, 1, 1.3), (2, 2, 1.4), (4, 2, 0.9))
SHAPES = figures.slots(
    {"chain": Shape.chain(3), "wide": Shape.of_widths((1, 3))}, [[0.6, 0.2, 0.1]]
)
SQUARE = rows(
    "shape stages sampling value low high",
    ("chain", 2, "greedy", 2.0, 1.9, 2.1),
    ("chain", 1, "greedy", 1.5, 1.4, 1.6),
    ("tree", 1, "greedy", 1.5, 1.4, 1.6),
)
STACKS = rows(
    "levels stack metric value low high",
    (3, "target ← draft ← n-gram", "tokens per round", 2.5, 2.0, 3.0),
    (1, "target", "tokens per round", 1.0, 1.0, 1.0),
    (1, "target", "MB & more", 90.0, 89.0, 91.0),
)
PASSES = rows(
    "draft scout sampling passes low high",
    ("chain", "none", "greedy", 4.0, 4.0, 4.0),
    ("chain", "n-gram", "greedy", 1.5, 1.4, 1.6),
    ("tree", "none", "T = 1", 3.0, 2.9, 3.1),
)
BARS = rows(
    "sampling method paper ours ours_low ours_high",
    ("greedy", "plain", 1.0, 1.0, 1.0, 1.0),
    ("greedy", "<staged>", 3.16, 2.5, 2.25, 3.0),
    ("T = 1", "plain", nan, 1.0, nan, nan),
)
PROMPTS = rows(
    "sampling prompt method relative",
    *(("greedy", "abc"[at % 3], "staged", [3.0, 1.0, 2.0][at]) for at in range(3)),
    *(("greedy", "abc"[at % 3], "speculative", [0.5, 1.5, 2.5][at]) for at in range(3)),
)
POINTS = rows(
    "point intensity flops_per_second kind",
    ("50% $", 1, 5e11, "paper"),
    ("prompt", 100, 1e13, "ours"),
)
EWIF = rows(
    "data drafters lengths paper ours best best_lengths",
    ("CNNDM", "SMALL", "9", 2.65, 2.654, 2.654, "9"),
    ("CNNDM", "BASE + SMALL", "5, 3", 3.03, 3.027, 3.044, "5, 5"),
)
POSITION = rows(
    "domain drafter position at_risk rate low high",
    ("code", "middle", 2, 90, 0.5, 0.4, 0.6),
    ("code", "middle", 1, 100, 0.8, 0.7, 0.9),
    ("math", "Max-Gram", 1, 100, 0.4, 0.3, 0.5),
)
SWI = rows(
    "data prices method drafters paper ours ours_low ours_high",
    ("code", "parameters", "cascade", "middle + Max-Gram", nan, 2.0, 1.9, 2.2),
    ("code", "parameters", "speculative", "middle", nan, 1.5, 1.4, 1.6),
    ("GSM8K", "parameters", "speculative", "middle", 3.38, nan, nan, nan),
    ("GSM8K", "parameters", "autoregressive", "", 1.0, nan, nan, nan),
    ("code", "measured", "speculative", "middle", nan, 1.2, 1.1, 1.3),
)
WALLTIME = rows(
    "domain method paper ours ours_low ours_high ratio ratio_low ratio_high paper_ratio",
    ("code", "autoregressive", nan, 150.0, 149.0, 151.0, 1.0, 1.0, 1.0, nan),
    ("math", "cascade", 56.72, 270.0, 260.0, 280.0, 1.8, 1.7, 1.9, 1.7),
    ("MMLU", "cascade", 55.6, nan, nan, nan, nan, nan, nan, 1.68),
)
SENSITIVITY = rows(
    "domain k00 ours ours_low ours_high ours_relative paper paper_relative",
    ("code", 2, 1.8, 1.7, 1.9, 0.9, nan, nan),
    ("code", 1, 2.0, 1.9, 2.1, 1.0, nan, nan),
    ("GSM8K", 1, nan, nan, nan, nan, 56.16, 1.0),
)
ABLATION = rows(
    "domain variant change_percent low high paper",
    ("code", "full", 0.0, 0.0, 0.0, nan),
    ("code", "no horizontal", -3.0, -4.0, -2.0, nan),
    ("code", "no lenience", 1.0, 0.5, 2.0, nan),
    ("math", "no horizontal", -5.0, -6.0, -4.0, -4.6),
)
LENIENCE = rows(
    "domain lenience swi swi_low swi_high tokens_per_round",
    ("math", 2.0, 1.9, 1.8, 2.0, 3.5),
    ("math", 1.0, 1.7, 1.6, 1.8, 3.2),
    ("code", 1.0, 1.5, 1.4, 1.6, 2.8),
)
SURFACE = rows(
    "k1 k2 swi",
    *(
        (k1, k2, nan if k1 == k2 == 0 else 1 + k1 / 10 + k2 / 100)
        for k1, k2 in product(range(3), (0, 1))
    ),
)
RIVALS = rows(
    "setting swi low high tokens_per_round acceptance_rate"
    " target_passes target_price middle_passes middle_price",
    ("this setting", 2.4, 2.3, 2.5, 4.0, 0.8, 1.0, 1.0, 2.0, 0.5),
    ("the paper's K", 1.7, 1.5, 1.9, 7.0, nan, 1.0, 1.0, 3.0, 0.8),
)
CURVES = pd.DataFrame(
    product(("target", "draft"), ("reference", "fast"), (64, 256, 448), (1, 2, 3, 4)),
    columns=["model", "runtime", "context_tokens", "rows"],
).assign(
    seconds=lambda table: 1e-3 * table["rows"],
    low_seconds=lambda table: 0.9 * table.seconds,
    high_seconds=lambda table: 1.2 * table.seconds,
    roofline_seconds=lambda table: 0.1 * table.seconds,
)
ONE_CURVE = CURVES[(CURVES.model == "target") & (CURVES.runtime == "fast")]
BOOKED = rows(
    "draft sampling part model round_seconds share",
    ("plain", "greedy", "verify", "target", 0.01, 0.9),
    ("plain", "greedy", "host", nan, 0.001, 0.1),
    ("chain", "greedy", "draft passes", "draft", 0.004, 0.2),
    ("chain", "greedy", "draft passes", "middle", 0.002, 0.1),
)
GRID = rows(
    "budget depth width speed_up",
    *((b, d, w, 0.7 + 0.1 * d + 0.01 * b * w) for b, d, w in product((2, 4), (1, 2, 3), (1, 4))),
)
MAP = rows(
    "acceptance_rate cost speed_up",
    *((a, c, 0.5 + 2 * a - c) for a, c in product((0.2, 0.5, 0.8), (0.0, 0.5, 1.0))),
)
MAPPED = rows("pair acceptance_rate cost", ("target ← draft", 0.6, 0.3))
LENGTHS = rows("length speed_up tokens_per_round", (1, 1.2, 1.6), (2, 0.9, 2.0))
GAINS = rows(
    "draft sampling speed_up speed_up_low speed_up_high",
    *(
        (*name, sampling, *ends)
        for sampling in ("greedy", "T = 1")
        for name, *ends in (
            (("slow",), 0.7, 0.6, 0.8),
            (("even",), 1.0, 0.9, 1.1),
            (("fast",), 1.5, 1.2, 1.8),
        )
    ),
)
SWEPT = rows(
    "sweep value draft speed_up speed_up_low speed_up_high",
    ("temperature", 0.0, "chain", 1.2, 1.1, 1.3),
    ("temperature", 1.0, "chain", 0.9, 0.8, 1.0),
    ("domain", "code", "chain", 1.2, 1.1, 1.3),
)
VERSUS = rows(
    "method baseline temperature top_k prompt_set runtime ratio ratio_low ratio_high",
    ("tree", "autoregressive", 0.0, nan, "not looping", "fast", 1.4, 1.3, 1.5),
    ("tree", "hf_generate", 1.0, 50, "not looping", "fast", 5.0, 4.0, 6.0),
    ("hf_generate", "autoregressive", 0.0, nan, "not looping", "fast", 0.2, 0.1, 0.3),
    ("tree", "autoregressive", 0.0, nan, "all", "fast", 1.1, 1.0, 1.2),
)
LAWS = rows(
    "token distribution probability",
    (" a", "target", 0.75),
    ("\n", "target", 0.25),
    (" a", "draft", 1 / 3),
    ("\n", "draft", 2 / 3),
)
GAPS = rows("gap rank rate", ("0–1", 0, 0.5), ("1 and more", 0, 0.9), ("0–1", 1, 0.2))
ROOF = {"bytes_per_second": 10**12, "flops_per_second": 5e13, "name": "a <machine>"}

CASES = {
    "distributions": Case(figures.distributions, LAWS, "target|draft", once=False),
    "budget_curves": Case(figures.budget_curves, BUDGETS, "tree|&lt;chain&gt;", once=False),
    "speed_ups": Case(figures.speed_ups, GROWN, "depth ≤ 1|depth ≤ 2|the best"),
    "acceptance": Case(
        partial(figures.acceptance, x="depth", x_title="<d>"),
        RATES,
        "draft|n-gram",
        ends="low rate high",
        once=False,
    ),
    "kinds": Case(
        partial(figures.kinds, x_title="text"),
        RATES,
        "draft|n-gram",
        ends="low rate high",
        once=False,
    ),
    "calibration": Case(
        figures.calibration,
        RATES,
        "perfectly calibrated|draft|n-gram",
        ends="low rate high",
        once=False,
    ),
    "predictions": Case(
        figures.predictions,
        PAIRS,
        "within 5 %|as predicted|&lt;chain&gt;|tree",
        ends="low measured high",
        once=False,
    ),
    "gaps": Case(figures.gaps, GAPS),
    "yields": Case(
        figures.yields,
        YIELDS,
        "accepted guesses|the target's own token",
        ends="tokens_per_round_low tokens_per_round tokens_per_round_high",
    ),
    "ablation": Case(
        partial(figures.ablation, value_title="tokens"),
        SQUARE,
        "chain|tree",
        "greedy",
        ends="low value high",
    ),
    "stages": Case(
        figures.stages, STACKS, "", "tokens per round|MB &amp; more", ends="low value high"
    ),
    "passes": Case(figures.passes, PASSES, "none|n-gram", "greedy|T = 1", ends="low passes high"),
    "paper_and_ours": Case(
        partial(figures.paper_and_ours, y_title="speed"),
        BARS,
        "paper|ours",
        "greedy|T = 1",
        ends="ours_low ours ours_high",
    ),
    "relative_performance": Case(
        figures.relative_performance, PROMPTS, "staged|speculative", "greedy"
    ),
    "roofline": Case(partial(figures.roofline, **ROOF), POINTS, "paper|ours", once=False),
    "ewif": Case(
        figures.ewif,
        EWIF,
        "printed|recomputed for the same k|at the best k, where another is better",
        "CNNDM",
    ),
    "position": Case(
        figures.position, POSITION, "middle|Max-Gram", "code|math", ends="low rate high"
    ),
    "swi": Case(
        figures.swi,
        SWI,
        "code|paper, GSM8K",
        "prices: parameters|prices: measured",
        ends="ours_low ours ours_high",
    ),
    "walltime": Case(
        figures.walltime, WALLTIME, "code|math|paper", ends="ratio_low ratio ratio_high"
    ),
    "sensitivity": Case(
        figures.sensitivity,
        SENSITIVITY,
        "code|paper (tokens per second)",
        ends="ours_low ours ours_high",
    ),
    "cascade_ablation": Case(
        figures.cascade_ablation, ABLATION, "paper", "code|math", ends="low change_percent high"
    ),
    "lenience": Case(
        figures.lenience,
        LENIENCE,
        "math|code",
        "SWI (plain decoding is 1)|tokens per round",
        ends="swi_low swi swi_high",
    ),
    "surface": Case(partial(figures.surface, best=(2, 1), across="k1", down="k2"), SURFACE),
    "rivals": Case(
        figures.rivals,
        RIVALS,
        "target|middle",
        "SWI: yield ÷ price|tokens per round|price of a round|acceptance rate",
        ends="low swi high",
    ),
    "latency": Case(
        figures.latency,
        CURVES,
        "reference, context 64|reference, context 448|fast, context 64|fast, context 448|"
        "roofline, reference|roofline, fast",
        "target|draft",
        ends="low_seconds seconds high_seconds",
    ),
    "pass_at": Case(
        lambda table: figures.pass_at(table, ONE_CURVE[:4], rows=2),
        ONE_CURVE,
        "context 64|context 256|context 448|at the chosen context|what the machine would allow|"
        "this pass",
        ends="low_seconds seconds high_seconds",
    ),
    "ledger": Case(figures.ledger, BOOKED, "verify|draft passes|host", "greedy"),
    "predicted_speeds": Case(
        figures.predicted_speeds,
        PAIRS,
        "within 10 %|as predicted|&lt;chain&gt;|tree",
        "greedy|T = 1",
        ends="low measured high",
        once=False,
    ),
    "speed_surface": Case(figures.speed_surface, GRID, "", "width 1|width ≤ 4"),
    "setting_speed_ups": Case(
        figures.setting_speed_ups,
        GAINS,
        "slower than plain decoding|too close to tell|faster",
        "greedy|T = 1",
        ends="speed_up_low speed_up speed_up_high",
    ),
    "speed_sweep": Case(
        figures.speed_sweep,
        SWEPT,
        "chain",
        "by temperature|by domain",
        ends="speed_up_low speed_up speed_up_high",
    ),
    "versus": Case(
        figures.versus,
        VERSUS,
        "plain decoding|transformers generate",
        "greedy|T = 1, top-k 50",
        ends="ratio_low ratio ratio_high",
    ),
    "break_even": Case(
        lambda table: figures.break_even(table, MAPPED, here=(0.4, 0.5)),
        MAP,
        "break-even|our pairs|here",
    ),
    "chain_lengths": Case(partial(figures.chain_lengths, length=2), LENGTHS),
}
