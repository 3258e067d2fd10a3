"""`specdec measure verifiers`: expected tokens per round of every verification rule at the same
contexts of the target's texts, on the same drafts, beside a bound that none can exceed.

The real rule runs once per branch of its coins, so that the expected tokens of a proposed tree are
exact; the draft's draws, and the shared noise of `look_up`, are averaged over a few seeds.
"""

import time
from collections import Counter, defaultdict
from dataclasses import astuple
from functools import partial
from itertools import product

import pandas as pd
import torch
from tqdm import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.core.verify import UNWARPED
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.rule_bench.rounds import RULES, verify_tree
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.measure.texts import every_domain, known_texts
from specdec_lib.workload import Ladder, Prompt, load_ladder, seeds

PLACE = DATA / "measured" / "verifiers.csv"
SAMPLERS = (Sampler(1.0), Sampler(1.0, top_k=50), Sampler(0.6))
SHAPES = {"chain of 4": (1, 1, 1, 1), "tree 2·2·1": (2, 2, 1)}
BY = ["sampling", "shape", "siblings", "rule"]
MOST_TOKENS = 96  # of a text


def main(arguments: list[str] | None = None) -> None:
    """Run the command; finished prompts are kept, and a run that was stopped goes on there."""
    about = __doc__.partition(": ")[2].partition("\n\n")[0]
    parser = Parser("measure verifiers", about, writes=[PLACE])
    parser.add_common("--limit", 15, "of each domain")
    for name, what in (("--contexts", "of each text"), ("--draws", "seeds per context")):
        parser.add_argument(name, type=int, default=2, help=f"{what} (default: 2)")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    sizes, rows = {"contexts": given.contexts, "draws": given.draws}, []
    for sampler in SAMPLERS:
        asked = fingerprint(sampler, sizes, SHAPES, ladder.models)
        kept = Kept(cache_folder() / "verifiers" / asked)
        for prompt in tqdm(every_domain("held-out", given.limit), sampling_of(*astuple(sampler))):
            rows += kept.rows(prompt, partial(verify_prompt, ladder, prompt, sampler, **sizes))
    table = pd.DataFrame(rows)
    print(summarise_rules(table).round(3).to_string(index=False))
    write_csv(table, PLACE, 6)


def verify_prompt(
    ladder: Ladder, prompt: Prompt, sampler: Sampler, *, contexts: int, draws: int, seed: int = 0
) -> list[dict]:
    """A row per shape, kind of siblings and rule: the expected tokens of one round, summed over
    evenly spaced contexts of the target's text and over draws.

    draws    seeds per context, which all rules share; "ranked" siblings, whose rule has only
             samples, have twice as many, and "top" ones one
    """
    context, text = Context.of(ladder.encode(prompt)), _text(ladder, prompt, sampler, seed)
    sums: dict[tuple[str, str, str], Counter] = defaultdict(Counter)
    numbers = {"ranked": 2 * draws, "top": 1, "iid": draws, "distinct": draws}
    for part, (shape, widths), siblings in product(range(contexts), SHAPES.items(), RULES):
        if siblings == "distinct" and max(widths) == 1:
            continue  # they are the same
        here = context.extended(text[: len(text) * (2 * part + 1) // (2 * contexts)])
        draft = TreeDraft(ladder.draft, widths=widths, siblings=siblings)
        for draw in range(numbers[siblings]):
            chance = Chance(seeds([prompt], seed + draw + 1)[0], sampler)
            tree, rows = draft.propose(here, chance), ladder.target.usage.rows
            started = time.process_time()
            logits = ladder.target.score(here, tree)
            seconds, rows = time.process_time() - started, ladder.target.usage.rows - rows
            fresh = int(tree.guesses <= rows <= len(tree))  # none known, none else read
            cost = {"passes": fresh, "pass_microseconds": fresh * 1e6 * seconds}
            for name, found in verify_tree(tree, logits, chance, siblings=siblings).items():
                sums[shape, siblings, name].update(found | cost)
    about = {
        "sampling": sampling_of(*astuple(sampler)),
        "domain": prompt.domain,
        "prompt": prompt.name,
    }
    keys = (dict(zip(BY[1:], key, strict=True)) for key in sums)
    return [about | key | found for key, found in zip(keys, sums.values(), strict=True)]


def _text(ladder: Ladder, prompt: Prompt, sampler: Sampler, seed: int) -> tuple[int, ...]:
    """The beginning of what the target writes after a prompt: the stored text, that of T = 1 where
    none is stored under this sampler, or one that is written now.
    """
    for one in (sampler, UNWARPED):
        for known in known_texts([one], seed, prompts=[prompt], max_new_tokens=MOST_TOKENS):
            if known.target == ladder.card.get("target"):
                return known.of(prompt)[:MOST_TOKENS]
    chance = Chance(seeds([prompt], seed)[0], sampler)
    limits = {"max_new_tokens": MOST_TOKENS, "stop_tokens": ladder.stop_tokens}
    return decode(ladder.target, NoDraft(), ladder.encode(prompt), chance, **limits).tokens


def summarise_rules(table: pd.DataFrame) -> pd.DataFrame:
    """Per sampler, shape, siblings and rule: tokens per round, their ratio to those of `reject` on
    independent siblings after the same prompts, and how often a child of the root is accepted, with
    intervals over prompts; median microseconds of a verification.
    """
    rows = []
    for key, own in table.groupby(BY, sort=False):
        plain = table[(table[BY] == [*key[:2], "iid", "reject"]).all(axis=1)].set_index("prompt")
        other, passes = plain.loc[own.prompt], own[own.passes > 0]
        ratio = bootstrap(own.tokens, own.rounds, other.tokens, other.rounds)
        rows.append(
            dict(zip(BY, key, strict=True))
            | named_interval("tokens_per_round", bootstrap(own.tokens, own.rounds))
            | named_interval("ratio", ratio)
            | named_interval("first_accepted", bootstrap(own.first_accepted, own.rounds))
            | {"prompts": len(own), "rounds": int(own.rounds.sum())}
            | {"microseconds": (own.microseconds / own.rounds).median()}
            | {"pass_microseconds": (passes.pass_microseconds / passes.passes).median()}
        )
    return pd.DataFrame(rows)
