"""`specdec measure walltime`: cascades by the clock, data/measured/cascade_walltime.csv; run it
where nothing else runs.

The settings are the cascade paper's own (its tables 3 and 4: one draft and Max-Gram), racing on the
fast runtime with drafts in the int8 edition, so that ratios are worth something and absolute times
little.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.harness import race_drafts
from specdec_lib.workload import Ladder, load_ladder, load_prompts

PLACE = DATA / "measured" / "cascade_walltime.csv"
DOMAINS = ("chat", "code")
COLUMNS = """draft prompt tokens rounds target_passes draft_passes seconds repetition
    domain""".split()


def paper_drafts(ladder: Ladder) -> Mapping[str, Draft]:
    """The methods of the paper's tables 3 and 4 with our draft, and speculative decoding."""
    parts = (ladder.draft, ladder.max_gram)
    return {
        "autoregressive": NoDraft(),
        **{f"speculative, chain of {k}": ChainDraft(ladder.draft, k) for k in (2, 4)},
        "Max-Gram alone": ladder.max_gram,
        **{f"cascade, K00 = {k00}": from_matrix(parts, ((k00, 10), (0, 10))) for k00 in (1, 2, 3)},
        "cascade, K00 = 1, no horizontal": from_matrix(parts, ((1, 0), (0, 10))),
        "cascade + tree": from_matrix(parts, ((1, 3), (0, 1)), width=8),
        "cascade + tree, a tail of 10": from_matrix(parts, ((1, 10), (0, 10)), width=8),
    }


def time_cascades(ladder: Ladder, prompts: int) -> pd.DataFrame:
    """A row per domain, prompt and method: tokens, passes and seconds."""
    drafts = {name: ("cascade", draft) for name, draft in paper_drafts(ladder).items()}
    chosen = [one for domain in DOMAINS for one in load_prompts(domain, "held-out", prompts)]
    raced = race_drafts(ladder, drafts, Sampler(0), chosen, tokens=128)
    table = pd.DataFrame(vars(one) for made in raced for one in made)
    for name in ("target", "draft"):
        table[f"{name}_passes"] = [passes.get(name) for passes in table.passes]
    table["domain"] = table.prompt.str.partition("/")[0]
    return table.rename(columns={"setting": "draft"})[COLUMNS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the table."""
    parser = Parser("measure walltime", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 8, "of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = with_int8_drafts(load_ladder(device="cpu", runtime="fast"))
    write_csv(time_cascades(ladder, given.limit), PLACE, 5)
