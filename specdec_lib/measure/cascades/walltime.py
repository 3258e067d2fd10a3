"""`specdec measure walltime`: cascades by the clock, data/measured/cascade_walltime.csv; run it
where nothing else runs. Finished prompts are kept, so that an interrupted run goes on.

The settings are the cascade paper's own (its tables 3 and 4: one draft and Max-Gram) and those of
`variants`, on the fast runtime with drafts in the int8 edition.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.cascades.variants import variants
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race.contenders import our_contenders
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.harness import race_prompts
from specdec_lib.measure.replay import CascadeSetting, record
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import DOMAINS, Ladder, load_ladder, load_prompts

PLACE = DATA / "measured" / "cascade_walltime.csv"
TOKENS = 128  # new ones per prompt, at most
DEVELOPMENT = 12  # prompts of each domain that variants are tuned on
COLUMNS = """draft prompt tokens rounds target_passes middle_passes draft_passes seconds repetition
    domain drafters matrix lenience exempt""".split()


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


def time_cascades(
    ladder: Ladder,
    domain: str,
    prompts: int,
    settings: Mapping[str, CascadeSetting],
    keep: Path | None = None,
) -> pd.DataFrame:
    """A row per prompt of a domain and method: tokens, passes and seconds; equal settings are timed
    once, and finished prompts are kept.
    """
    first = {one: name for name, one in reversed(settings.items())}
    racing = paper_drafts(ladder) | {name: one.draft(ladder) for one, name in first.items()}
    drafts = {name: ("cascade", draft) for name, draft in racing.items()}
    asked = (machine_name(), list(settings.items()), TOKENS, ladder.models)
    options = {"tokens": TOKENS, "folder": keep and keep / fingerprint(*asked)}
    bar = tqdm(load_prompts(domain, "held-out", prompts), desc=domain, mininterval=1)
    racing = our_contenders(ladder.target, drafts, Sampler(0))
    timings = chain.from_iterable(race_prompts(racing, ladder, bar, **options))
    table = pd.DataFrame(map(vars, timings))
    for name in ("target", "middle", "draft"):
        table[f"{name}_passes"] = [passes.get(name) for passes in table.passes]
    table = table.rename(columns={"setting": "draft"}).assign(domain=domain)
    own = [
        table[table.draft == first[one]].assign(draft=name, **one.labels)
        for name, one in settings.items()
    ]
    theirs = table[~table.draft.isin(settings)]
    return pd.concat([theirs, *own], ignore_index=True).reindex(columns=COLUMNS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the table."""
    parser = Parser("measure walltime", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 12, "of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder, parts = load_ladder(device="cpu", runtime="fast"), []
    prices = pd.read_csv(PLACE.with_name("prices.csv")).set_index("model").price.to_dict()
    options = {"max_new_tokens": TOKENS, "texts": Texts.stored((Sampler(0),))[0]}
    racing = with_int8_drafts(ladder)
    for domain in tqdm(DOMAINS, desc="domains"):
        prompts = load_prompts(domain, "development", DEVELOPMENT)
        tuned = variants(record(prompts, ladder, Sampler(0), **options), prices)
        parts.append(time_cascades(racing, domain, given.limit, tuned, cache_folder() / "walltime"))
    write_csv(pd.concat(parts), PLACE, 5)
