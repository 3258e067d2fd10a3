"""`specdec measure learning`: drafts without a network, and those that learn while they decode, by
the clock, into data/measured/learning.csv: a row per held-out prompt, sampler and draft. Run it
where nothing else runs.

Each draft begins every domain knowing a few tokens of a development prompt, and reads its held-out
prompts in one order: an interrupted run goes on with the first prompt of the domain it was at.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.earlier import EarlierAnswers
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.recycling import TokenRecycling
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.commands.commandline import parse_limit, write_csv
from specdec_lib.measure.contenders import AUTOREGRESSIVE, our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race_table import ALL
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import Ratio, sampling_of, summarise
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.settings.grids import with_int8_drafts
from specdec_lib.measure.trial import Trial, trial_table
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_ladder, load_prompts

PLACE = DATA / "measured" / "learning.csv"
SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
TOKENS = 128  # new ones per prompt, at most
RECYCLED, HALF = {"budget": 6, "depth": 4, "floor": 0.02}, {"budget": 3}
COLUMNS = "sampling domain prompt draft tokens rounds seconds repetition load".split()


def learning_drafts(ladder: Ladder, sampler: Sampler) -> Mapping[str, Draft]:
    """Plain decoding; copies, recycled tokens, earlier answers and the draft model's tree alone;
    and what each adds to another one.
    """
    copies, match = MaxGram(None, 8, least=2), ladder.match("draft", sampler)
    tree = TreeDraft(ladder.draft, budget=6, depth=4, floor=0.05, match=match)
    options = RECYCLED | {"match": match}
    return {
        AUTOREGRESSIVE: NoDraft(),
        "Max-Gram": copies,
        "Token Recycling": TokenRecycling(**options),
        "earlier answers": EarlierAnswers(8, least=3),
        "Max-Gram, else earlier answers": FirstDraft((copies, EarlierAnswers(8, least=3))),
        "Max-Gram, else recycled": FirstDraft((copies, TokenRecycling(**options))),
        "Max-Gram beside recycled": without_network(match),
        "draft model's tree": tree,
        "Max-Gram, else the tree": FirstDraft((copies, tree), 2),
        "tree beside recycled": MergedDraft((tree, TokenRecycling(**options | HALF))),
    }


def without_network(match: MatchTable = MatchTable()) -> MergedDraft:
    """Copies beside recycled tokens: the fastest of these drafts that need no draft model."""
    recycled = TokenRecycling(**RECYCLED | HALF, match=match)
    return MergedDraft((MaxGram(None, 4, least=2), recycled))


def time_learning(ladder: Ladder, sampler: Sampler, prompts: Sequence[Prompt]) -> list[Row]:
    """The timings of `learning_drafts` on the prompts of a domain, in their order, as rows."""
    drafts = {name: (name, one) for name, one in learning_drafts(ladder, sampler).items()}
    bar = tqdm(prompts, prompts[0].domain, mininterval=1)
    racing = our_contenders(ladder.target, drafts, sampler)
    raced = race_prompts(racing, ladder, bar, tokens=TOKENS)
    return [one.row() for trials in raced for one in trials]


def summarise_learning(table: pd.DataFrame) -> pd.DataFrame:
    """Per sampler, domain (and all together) and draft: tokens per round, milliseconds per token,
    and the speed-up over plain decoding of the same prompts, with 95 % intervals over prompts.
    """
    ratios = {
        "tokens_per_round": Ratio("tokens", "rounds"),
        "ms_per_token": Ratio("seconds", "tokens", times=1000, ends=False),
        "speed_up": Ratio("tokens", "seconds", relative=True),
    }
    within = ["sampling", "domain"]
    plain = {"draft": AUTOREGRESSIVE}
    whole = pd.concat([table, table.assign(domain=ALL)])
    found = summarise(whole, [*within, "draft"], ratios, baseline=plain, within=within)
    found.insert(3, "prompts", found.pop("prompts"))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, and write the table."""
    limit = parse_limit("measure learning", __doc__, [PLACE], arguments, 10)
    ladder, rows = with_int8_drafts(load_ladder(device="cpu", runtime="fast")), []
    for sampler, domain in tqdm([*product(SAMPLERS, DOMAINS)], "samplers and domains"):
        prompts = load_prompts(domain, "held-out", limit)
        same = fingerprint(machine_name(), sampler, prompts, TOKENS, ladder)
        kept = RowCache(cache_folder() / "learning" / same)
        timings = kept.rows("timings", partial(time_learning, ladder, sampler, prompts))
        sampling = sampling_of(sampler.temperature, sampler.top_k, sampler.top_p)
        table = trial_table(map(Trial.from_row, timings))
        rows.append(table.assign(domain=domain, sampling=sampling))
    table = pd.concat(rows).rename(columns={"setting": "draft"})
    write_csv(table[COLUMNS], PLACE, 6)
    print(summarise_learning(table).round(3).to_string(index=False))
