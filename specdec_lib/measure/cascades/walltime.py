"""`specdec measure walltime`: cascades by the clock, data/measured/cascade_walltime.csv; run it
where nothing else runs.

The settings are the cascade paper's own (its tables 3 and 4: one draft and Max-Gram), racing on the
fast runtime with drafts in the int8 edition, so that ratios are worth something and absolute times
little.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.race.contenders import ours
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.harness import race, target_texts
from specdec_lib.workload import Ladder, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured" / "cascade_walltime.csv"
DOMAINS = ("chat", "code")
GREEDY = Sampler(0)


def paper_drafts(ladder: Ladder) -> Mapping[str, Draft]:
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


def time_cascades(ladder: Ladder, prompts: int, *, max_new_tokens: int = 128) -> "DataFrame":
    """A row per domain, prompt and method: tokens, passes and seconds."""
    import pandas as pd

    found = []
    contenders = [
        ours(ladder.target, draft, GREEDY, method="cascade", setting=name)
        for name, draft in paper_drafts(ladder).items()
    ]
    for domain in DOMAINS:
        chosen = load_prompts(domain, "held-out", prompts)
        texts = target_texts(ladder, chosen, GREEDY, tokens=max_new_tokens, seed=0)
        for timings in race(contenders, texts, ladder.target):
            for one in timings:
                row = {"draft": one.setting, "prompt": one.prompt, "tokens": one.tokens}
                row |= {"rounds": one.rounds}
                row |= {f"{name}_passes": one.passes.get(name) for name in ("target", "draft")}
                row |= {"seconds": one.seconds, "repetition": one.repetition}
                found.append(row | {"domain": domain})
    return pd.DataFrame(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the table."""
    parser = Parser("measure walltime", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 8, "of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = with_int8_drafts(load_ladder(device="cpu", runtime="fast"))
    write_csv(time_cascades(ladder, given.limit), PLACE, 5)
