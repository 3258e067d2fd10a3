"""Drafts without a network, and those that learn while they decode, by the clock. An interrupted
run goes on with the first prompt of the domain it was at.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.machine import clocked_here, machine_name
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import sampling_of, summarise_speeds
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.measure.settings.learning import SAMPLERS, learning_settings
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.target_text import by_domain
from specdec_lib.measure.trial import Trial, trial_table
from specdec_lib.workload import Ladder, Prompt, load_ladder

TOKENS = 128  # new ones per prompt, at most
COLUMNS = """sampling domain prompt draft tokens rounds seconds repetition cores date threads
    machine state""".split()


def time_learning(ladder: Ladder, sampler: Sampler, prompts: Sequence[Prompt]) -> list[Row]:
    """The timings of `learning_settings` on the prompts of a domain, in their order, as rows."""
    bar = tqdm(prompts, prompts[0].domain, mininterval=1)
    racing = our_contenders(ladder.target, learning_settings(ladder, sampler))
    raced = race_prompts(racing, ladder, bar, tokens=TOKENS)
    return [one.row() for trials in raced for one in trials]


def summarise_learning(table: pd.DataFrame) -> pd.DataFrame:
    """Per sampler, domain (and all together) and draft: tokens per round, milliseconds per token,
    and the speed-up over plain decoding of the same prompts, with 95 % intervals over prompts.
    """
    return summarise_speeds(table, ["sampling"], plain=AUTOREGRESSIVE)


def measure_learning(prompts: Sequence[Prompt], quiet: Quiet) -> pd.DataFrame:
    """A row per prompt, sampler and draft; each draft begins every domain knowing a few tokens of a
    development prompt, and reads the domain's prompts in their order. Nothing is timed again: a
    draft that learns would know the text by then; `cores` says how many were busy.
    """
    quiet.check()
    ladder = with_int8_drafts(load_ladder(device="cpu", runtime="fast"))
    rows = []
    pairs = [*product(SAMPLERS, by_domain(prompts).items())]
    for sampler, (domain, its) in tqdm(pairs, "samplers and domains"):
        same = fingerprint(machine_name(), sampler, its, TOKENS, ladder)
        kept = RowCache(cache_folder() / "learning" / same)
        timings = kept.rows("timings", partial(time_learning, ladder, sampler, its))
        sampling = sampling_of(sampler.temperature, sampler.top_k, sampler.top_p)
        table = trial_table(map(Trial.from_row, timings))
        rows.append(table.assign(domain=domain, sampling=sampling))
    found = pd.concat(rows).rename(columns={"setting": "draft"})
    return found.assign(**clocked_here())[COLUMNS]
