"""Staged trees against the trees of their drafts alone, node for node, at contexts of texts that
the target generated: the second half of `make lossless`.
"""

from collections.abc import Iterator
from itertools import count

import pandas as pd
import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts, seeds

SAMPLERS = {"T=0": Sampler(0), "T=1": Sampler(1.0), "top-k 50": Sampler(1.0, top_k=50)}
SIBLINGS = ("ranked", "top", "iid", "distinct")
ALONE = "alone"
SAME = 1e-9  # scores and rows of two trees that are the same: float64 sums in another order


def scouts(ladder: Ladder, siblings: str = "ranked") -> dict[str, Draft]:
    """The scouts by name; they rank their guesses where the draft does, else take the likeliest."""
    chosen = "ranked" if siblings == "ranked" else "top"
    options = {"siblings": chosen, "counted_at": ladder.card["katz"]["temperature"]}
    table = NgramDraft(ladder.katz, budget=16, depth=6, **options)
    return {"n-gram": table, "Max-Gram + n-gram": MergedDraft((MaxGram(None, 6), table))}


def shapes(
    model: LanguageModel, match: MatchTable, siblings: str = "ranked"
) -> dict[str, ChainDraft | TreeDraft]:
    """The drafts that are staged, by name."""
    return {
        "chain of 5": ChainDraft(model, 5, siblings=siblings, match=match),
        "best tree of 8": TreeDraft(model, budget=8, depth=6, siblings=siblings, match=match),
        "best tree of 16": TreeDraft(model, budget=16, depth=6, siblings=siblings, match=match),
    }


def runs() -> Iterator[tuple[str, Prompt, int]]:
    """Every development prompt with its seed, domains in turn; then with another, without end."""
    sets = [load_prompts(domain, "development") for domain in DOMAINS]
    prompts = [prompt for turn in zip(*sets, strict=True) for prompt in turn]
    for seed in count():
        for prompt, prompt_seed in zip(prompts, seeds(prompts, seed), strict=True):
            yield f"{prompt.name}/{seed}", prompt, prompt_seed


def node_comparisons(
    ladder: Ladder,
    name: str,
    *,
    done: frozenset[str] = frozenset(),
    every: int = 8,
    max_new_tokens: int = 96,
) -> Iterator[dict]:
    """One text of the target after the other, without end, under the sampler of that name; the
    texts in `done` are left out.

    Each says at how many contexts (every so many tokens of the text) staged trees were compared,
    where they differ, and the draft's passes.
    """
    sampler = SAMPLERS[name]
    run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    for place, prompt, seed in runs():
        key = f"nodes/{place}/{name}"
        if key in done:
            continue
        given, chance = ladder.encode(prompt), Chance(seed, sampler)
        text = decode(ladder.target, NoDraft(), given, chance, **run).context.tokens
        lengths = range(len(given), len(text), every)
        contexts = [Context(text[:length], len(given)) for length in lengths]
        different, passes = [], {}
        for siblings in SIBLINGS:
            top = siblings == "top"
            match = MatchTable() if top else ladder.match("draft", sampler, siblings=siblings)
            for shape in shapes(ladder.draft, match, siblings):
                kind = f"{siblings}/{shape}"
                how = {"shape": shape, "match": match, "siblings": siblings}
                trees, passes[kind] = proposals(ladder, contexts, chance, **how)
                for scout in trees.keys() - {ALONE}:
                    pairs = zip(lengths, trees[ALONE], trees[scout], strict=True)
                    wrong = [length for length, *pair in pairs if not same(*pair)]
                    different += [f"{key}/{kind}/{scout}/{length}" for length in wrong]
        about = {"key": key, "dtype": "float64", "sampler": name, "contexts": len(contexts)}
        yield about | {"different": different, "passes": passes}


def proposals(
    ladder: Ladder,
    contexts: list[Context],
    chance: Chance,
    *,
    shape: str,
    match: MatchTable,
    siblings: str,
) -> tuple[dict[str, list[TokenTree]], dict[str, int]]:
    """The trees at each context and the draft's passes for all of them, of the draft alone and with
    each scout.

    Each has a cache of its own, or one would know what another has read; it goes along the text, as
    in a generation.
    """
    trees, passes = {}, {}
    for scout, guesser in {ALONE: None, **scouts(ladder, siblings)}.items():
        model = CachedModel(ladder.draft.model, ladder.draft.name)
        plain = shapes(model, match, siblings)[shape]
        draft = plain if guesser is None else StagedTree(plain, guesser)
        trees[scout] = [draft.propose(context, chance) for context in contexts]
        passes[scout] = model.usage.passes
    return trees, passes


def same(one: TokenTree, other: TokenTree) -> bool:
    """Whether two trees are equal node for node, their scores and rows up to rounding."""
    shapes = [(tree.root_position, tree.tokens, tree.parents) for tree in (one, other)]
    if shapes[0] != shapes[1]:
        return False
    rows = all(
        a is b if a is None or b is None else torch.allclose(a, b, rtol=0, atol=SAME)
        for a, b in zip(one.rows, other.rows, strict=True)
    )
    return rows and all(abs(a - b) <= SAME for a, b in zip(one.scores, other.scores, strict=True))


def node_table(rows: list[dict]) -> str:
    """Contexts, differing trees, and the draft's passes per proposal by scout."""
    found = pd.DataFrame(
        {
            "sampler": row["sampler"],
            "kind": kind,
            "contexts": row["contexts"],
            "different": sum(f"/{kind}/" in where for where in row["different"]),
            **passes,
        }
        for row in rows
        for kind, passes in row["passes"].items()
    )
    found = found.groupby(["sampler", "kind"], sort=False).sum()
    passes = found.columns[2:]
    found[passes] = found[passes].div(found.contexts, axis=0).round(2)
    return found.to_string()
