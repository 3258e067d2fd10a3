"""Expected tokens per round of every verification rule at the same
contexts of the target's texts, on the same drafts, beside a bound that none can exceed.

The real rule runs once per branch of its coins (`draw_once`, which tosses none, has a formula), so
that the expected tokens of a proposed tree are exact; the draft's draws, and the shared noise of
`look_up`, are averaged over a few seeds.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, EveryBranch, Sampler, Slots, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.core.protocols import Rule
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import UNWARPED, look_up, reject
from specdec_lib.drafts.trees.growing import Siblings, TreeDraft
from specdec_lib.measure.cluster import Cluster, LadderRecipe, spread_rows
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.ratios import Ratio, sampling_of, summarise
from specdec_lib.measure.row_cache import RowCache, key_of
from specdec_lib.measure.rule_bench.rules import draw_once, k_seq, traverse
from specdec_lib.measure.settings.setting import rule_name
from specdec_lib.measure.target_text import find_text, known_texts, write_text
from specdec_lib.theory.bounds import best_acceptance, best_acceptance_of_two, proposed
from specdec_lib.workload import Ladder, Prompt, seeds

LADDER = LadderRecipe(device="cpu", runtime="fast")
PLACE = DATA / "measured" / "verifiers.csv"
SAMPLERS = (Sampler(1.0), Sampler(1.0, top_k=50), Sampler(0.6))
SHAPES = {"chain of 4": (1, 1, 1, 1), "tree 2·2·1": (2, 2, 1)}
RULES: Mapping[Siblings, tuple[Rule, ...]] = {  # by siblings
    "ranked": (look_up,),
    "top": (draw_once,),
    "iid": (draw_once, reject, k_seq, traverse),
    "distinct": (draw_once, reject, traverse),
}
BY = ["sampling", "shape", "siblings", "rule"]
MOST_TOKENS = 96  # of a text
SIZES = {"contexts": 2, "draws": 2}  # of each text, and seeds per context


def measure_rules(prompts: Sequence[Prompt], cluster: Cluster | None = None) -> pd.DataFrame:
    """The rows of `verify_prompt` of these prompts under `SAMPLERS`; finished prompts are kept, and
    a run that was stopped goes on there.
    """
    ladder = LADDER.load()
    items = [(key_of(prompt), prompt) for prompt in prompts]
    rows: list[dict] = []
    for sampler in SAMPLERS:
        asked = fingerprint(sampler, SIZES, SHAPES, ladder.models)
        rows += spread_rows(
            verify_prompt,
            items,
            ladder,
            {"sampler": sampler, **SIZES},
            RowCache(cache_folder() / "verifiers" / asked),
            cluster=cluster,
            label=sampling_of(*astuple(sampler)),
        )
    return pd.DataFrame(rows)


def verify_prompt(
    ladder: Ladder, prompt: Prompt, sampler: Sampler, *, contexts: int, draws: int, seed: int = 0
) -> list[dict]:
    """A row per shape, kind of siblings and rule: the expected tokens of one round, summed over
    evenly spaced contexts of the target's text and over draws.

    draws    seeds per context, which all rules share; "ranked" siblings, whose rule has only
             samples, have twice as many, and "top" ones one
    """
    context = Context.of(ladder.encode(prompt))
    text = _text(ladder, prompt, sampler, seed)
    sums: dict[tuple[str, str, str], Counter] = defaultdict(Counter)
    numbers = {"ranked": 2 * draws, "top": 1, "iid": draws, "distinct": draws}
    for part, (shape, widths), siblings in product(range(contexts), SHAPES.items(), RULES):
        if siblings == "distinct" and max(widths) == 1:
            continue  # they are the same
        here = context.extended(text[: len(text) * (2 * part + 1) // (2 * contexts)])
        draft = TreeDraft(ladder.draft, widths=widths, siblings=siblings)
        for draw in range(numbers[siblings]):
            chance = Chance(seeds([prompt], seed + draw + 1)[0], sampler)
            tree = draft.propose(here, chance)
            rows = ladder.target.usage.rows
            started = time.process_time()
            logits = ladder.target.score(here, tree)
            seconds = time.process_time() - started
            rows = ladder.target.usage.rows - rows
            fresh = int(tree.guesses <= rows <= len(tree))  # none known, none else read
            cost = {"passes": fresh, "pass_microseconds": fresh * 1e6 * seconds}
            for name, found in verify_tree(tree, logits, chance, siblings=siblings).items():
                sums[shape, siblings, name].update(found | cost)
    about = (sampling_of(*astuple(sampler)), prompt.domain, prompt.name)
    columns = ["sampling", "domain", "prompt", *BY[1:]]
    return [dict(zip(columns, about + key, strict=True)) | sums[key] for key in sums]


def _text(ladder: Ladder, prompt: Prompt, sampler: Sampler, seed: int) -> tuple[int, ...]:
    """The beginning of what the target writes after a prompt: the stored text, that of T = 1 where
    none is stored under this sampler, or one that is written now.
    """
    for one in (sampler, UNWARPED):
        known = known_texts((one,), ladder, seed, prompts=[prompt], max_new_tokens=MOST_TOKENS)
        if known:
            return find_text(known, prompt).tokens[:MOST_TOKENS]
    return write_text(ladder, prompt, sampler, seed=seed, max_new_tokens=MOST_TOKENS).tokens


def summarise_rules(table: pd.DataFrame) -> pd.DataFrame:
    """Per sampler, shape, siblings and rule: tokens per round, their ratio to those of `reject` on
    independent siblings after the same prompts, and how often a child of the root is accepted, with
    intervals over prompts; median microseconds of a verification.
    """
    ratios = {
        "tokens_per_round": Ratio("tokens", "rounds"),
        "ratio": Ratio("tokens", "rounds", relative=True),
        "first_accepted": Ratio("first_accepted", "rounds", share=True),
    }
    plain = {"siblings": "iid", "rule": "reject"}
    found = summarise(table, BY, ratios, baseline=plain, within=BY[:2]).set_index(BY)
    timed = table.assign(
        microseconds=table.microseconds / table.rounds,
        pass_microseconds=table.pass_microseconds / table.passes.where(table.passes > 0),
    )
    groups = timed.groupby(BY, sort=False)
    found["rounds"] = groups.rounds.sum().astype(int)
    medians = groups[["microseconds", "pass_microseconds"]].median()
    return found.join(medians).reset_index()


def verify_tree(
    tree: TokenTree,
    target_logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    *,
    siblings: Siblings,
) -> dict[str, dict[str, float]]:
    """Per rule that takes such siblings, and for the bound: rounds (1), expected tokens, the
    probability that a child of the root is accepted, microseconds of a processor.
    """
    probs = torch.stack([chance.sampler.probs(logits) for logits in target_logits]).double()
    probs /= probs.sum(dim=-1, keepdim=True)
    rows = (None if row is None else row.double() / row.double().sum() for row in tree.rows)
    precise = replace(tree, rows=tuple(rows))
    log_probs = probs.log()
    found = {}
    for rule in RULES[siblings]:
        if rule is k_seq and max(tree.depths) == tree.guesses:
            continue  # on a chain it is `reject`
        started = time.process_time()
        lengths = {_accepted(rule, tree, target_logits, chance): 1.0}
        cost = {"microseconds": 1e6 * (time.process_time() - started)}
        if rule not in (look_up, draw_once):  # which toss no coins
            play = partial(_accepted, rule, precise, log_probs)
            lengths = every_outcome(play, UNWARPED, _EveryCoin)
        own = {"tokens": sum((1 + length) * share for (length,), share in lengths.items())}
        own["first_accepted"] = 1 - lengths.get((0,), 0.0)
        if rule is draw_once:  # of any siblings it accepts what can be accepted of chosen ones
            own = bounds(precise, probs, "top")
        found[rule_name(rule)] = {"rounds": 1} | own | cost
    if siblings != "ranked":  # which has that of distinct siblings
        found["bound"] = {"rounds": 1} | bounds(precise, probs, siblings)
    return found


class _EveryCoin(EveryBranch):
    """Every branch of a round's coins; a draw ends the round, and what is drawn does not count."""

    def draw(
        self, use: str, probs: Float[Tensor, " vocab"], root_position: int, slots: Slots
    ) -> int:
        return int(probs.argmax())


def _accepted(rule: Rule, tree: TokenTree, logits: Tensor, chance: Chance) -> tuple[int]:
    return (len(rule(tree, logits, chance).path),)


def bounds(
    tree: TokenTree, probs: Float[Tensor, "nodes vocab"], siblings: Siblings
) -> dict[str, float]:
    """`first_accepted`, the largest probability with which any rule can accept a child of the root,
    and `tokens`: 1 + Σ over the distinct paths of a tree of min(1, the target's probability of the
    path ÷ that of its being proposed). No rule's expected tokens exceed its mean over drawn trees.
    """
    tokens = 1.0
    paths = {tree.path_tokens(node): tree.path(node) for node in range(1, len(tree))}
    for path_tokens, path in paths.items():
        above = [tree.parents[node] for node in path]
        ratio = math.prod(probs[above, list(path_tokens)].tolist())
        if siblings != "top":
            below = [tree.children(node) for node in above]
            rows = [_offered(tree, children) for children in below]
            ratio /= proposed(rows, path_tokens, list(map(len, below)), siblings)
        tokens += min(1.0, ratio)
    children = tree.children(ROOT)
    wanted = probs[ROOT].numpy()
    if siblings == "top":
        first = float(wanted[[*{tree.tokens[child] for child in children}]].sum())
    elif siblings == "iid" or len(children) == 1:
        first = best_acceptance(wanted, _offered(tree, children), len(children))
    else:
        first = best_acceptance_of_two(wanted, _offered(tree, children))
    return {"tokens": tokens, "first_accepted": first}


def _offered(tree: TokenTree, children: Sequence[int]) -> np.ndarray:
    """The distribution that the first of these drawn siblings came from."""
    row = tree.rows[children[0]]
    assert row is not None  # the siblings were drawn
    return row.numpy()
