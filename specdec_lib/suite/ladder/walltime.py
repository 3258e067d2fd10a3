"""`specdec measure walltime`: cascades by the clock, into
data/measured/cascade_walltime.csv; run it where nothing else runs.

The settings are the cascade paper's own (its tables 3 and 4: one draft and Max-Gram), interleaved
within each prompt, on the float32 reference path, so that ratios are worth something and absolute
times little.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.suite.ladder.cascades import store
from specdec_lib.workload import Ladder, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured" / "cascade_walltime.csv"
DOMAINS = ("math", "code")
KEPT = [
    "draft",
    "prompt",
    "tokens",
    "rounds",
    "target_passes",
    "draft_passes",
    "seconds",
    "repetition",
]


def drafts(ladder: Ladder) -> Mapping[str, Draft]:
    """The paper's methods with our draft: Table 3's, Table 4's K00 and the ablation, and
    speculative decoding at lengths of its own.
    """
    parts = (ladder.draft, ladder.max_gram)
    return {
        "autoregressive": NoDraft(),
        **{
            f"speculative, chain of {length}": ChainDraft(ladder.draft, length) for length in (2, 4)
        },
        "Max-Gram alone": ladder.max_gram,
        **{f"cascade, K00 = {k00}": from_matrix(parts, ((k00, 10), (0, 10))) for k00 in (1, 2, 3)},
        "cascade, K00 = 1, no horizontal": from_matrix(parts, ((1, 0), (0, 10))),
        "cascade + tree": from_matrix(parts, ((1, 3), (0, 1)), width=8),
        "cascade + tree, a tail of 10": from_matrix(parts, ((1, 10), (0, 10)), width=8),
    }


def timed(ladder: Ladder, prompts: int, *, max_new_tokens: int = 128) -> "DataFrame":
    """A row per domain, method and held-out prompt: tokens, passes and seconds."""
    import pandas as pd

    settings = [Setting(name, draft) for name, draft in drafts(ladder).items()]
    found = []
    for domain in DOMAINS:
        asked = load_prompts(domain, "held-out", prompts)
        sweep(settings, asked[:1], ladder, max_new_tokens=16, progress=False)  # warm
        found.append(
            sweep(settings, asked, ladder, max_new_tokens=max_new_tokens)[KEPT].assign(
                domain=domain
            )
        )
    return pd.concat(found, ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the table."""
    parser = Parser("measure walltime", __doc__.partition(": ")[2])
    parser.add_argument(
        "--prompts", type=int, default=20, help="the first so many held-out prompts of each domain"
    )
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    store(timed(load_ladder(device="cpu"), given.prompts).round(5), PLACE)
