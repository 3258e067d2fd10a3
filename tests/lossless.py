"""`make lossless`: speculative output equals plain decoding token for token on the ladder, for as
many tokens as wanted.

In float64, and on the fast runtime, one differing token is a bug and the command fails. In float32
on the reference runtime rounding may decide between two tokens that are nearly as good, so
differences there are counted and shown. Before that,
in float64, a staged tree is compared with the tree of its draft alone, node for node, at contexts
of texts that the target generated: one differing node fails too. Finished comparisons are kept in
data/cache/lossless.jsonl; a later run goes on from there.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from lossless_trees import SAMPLERS, node_comparisons, node_table, runs, scouts, shapes
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import cache_folder
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.workload import Ladder, load_ladder

FORMATS = {  # how the ladder is loaded
    "float64": {"dtype": "float64"},
    "float32": {"dtype": "float32"},
    "fast": {"dtype": "float32", "runtime": "fast"},
}
EXACT = ("float64", "fast")


def drafts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """One draft of each kind."""
    measured, guessed = ladder.match("draft", sampler), scouts(ladder)
    table, pair = guessed["n-gram"], (ladder.draft, ladder.max_gram)
    tree = partial(TreeDraft, ladder.draft)
    three = (ladder.middle, *pair), ((2, 1, 10), (0, 1, 10), (0, 0, 10))
    below = StagedTree(ChainDraft(ladder.draft, 4), table)
    staged = {
        f"{shape}, scout {scout}": StagedTree(plain, guessed[scout])
        for shape, plain in shapes(ladder.draft, MatchTable()).items()
        for scout in guessed
    }
    return {
        "chain": ChainDraft(ladder.draft, 5),
        "tree": tree(widths=(3, 2, 2, 1)),
        "best tree": tree(budget=16, depth=6),
        "drawn tree": tree(widths=(2, 2), siblings="iid"),
        "n-gram": NgramDraft(ladder.katz, widths=(2, 1, 1)),
        "Max-Gram": ladder.max_gram,
        "best tree by gap": tree(budget=16, depth=6, match=measured),
        **staged,
        "staged chain": StagedChain(ladder.draft, table, 5),
        "lenient cascade": from_matrix(*three, lenience=5.0, exempt_max_gram=False),
        "comb": from_matrix(pair, ((1, 3), (0, 1)), width=8),
        "drawn cascade": from_matrix(pair, ((2, 4), (0, 4)), lenience=2.0, siblings="iid"),
        "three stages": StagedTree(TreeDraft(ladder.middle, budget=8, depth=4), below),
    }


def comparisons(
    ladder: Ladder, dtype: str, *, done: frozenset[str] = frozenset(), max_new_tokens: int = 96
) -> Iterator[dict]:
    """One comparison after the other, without end; those in `done` are left out."""
    run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    for place, prompt, seed in runs():
        for name, sampler in SAMPLERS.items():
            guessers = drafts(ladder, sampler)
            keys = {draft: f"{dtype}/{place}/{name}/{draft}" for draft in guessers}
            if done.issuperset(keys.values()):
                continue
            tokens, chance = ladder.encode(prompt), Chance(seed, sampler)
            plain = decode(ladder.target, NoDraft(), tokens, chance, **run).tokens
            for draft, key in keys.items():
                if key in done:
                    continue
                found = decode(ladder.target, guessers[draft], tokens, chance, **run).tokens
                pairs = enumerate(zip(plain, found, strict=False))
                agreed = next((at for at, (one, other) in pairs if one != other), len(plain))
                about = {"key": key, "dtype": dtype, "sampler": name, "draft": draft}
                yield about | {"tokens": agreed, "equal": plain == found}


def table(rows: list[dict]) -> str:
    """Tokens compared and generations that differ, by number format and sampler."""
    groups = pd.DataFrame(rows).groupby(["dtype", "sampler"], sort=False)
    found = groups.agg(generations=("equal", "size"), tokens_equal=("tokens", "sum"))
    return found.assign(differ=found.generations - groups.equal.sum()).to_string()


def filled(
    goal: int, unit: str, kept: list[dict], fresh: Iterator[dict], *, path: Path, title: str
) -> list[dict]:
    """Kept comparisons and fresh ones, stored at once, until `unit` sums to the goal."""
    counted = sum(row[unit] for row in kept)
    bar = tqdm(total=goal, initial=counted, desc=title, unit=unit[:-1], mininterval=2)
    with path.open("a") as store, bar:
        while counted < goal:
            kept.append(next(fresh))
            store.write(json.dumps(kept[-1]) + "\n")
            store.flush()
            bar.update(kept[-1][unit])
            counted += kept[-1][unit]
    return kept


def main() -> int:
    """Compare until enough agrees; 1 if what has to be equal differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    add, formats = parser.add_argument, len(FORMATS)
    what = "tokens to compare per number format, those of earlier runs included"
    shown = {"nargs": formats, "metavar": tuple(FORMATS), "help": what}
    add("--tokens", type=int, default=(20_000,) * formats, **shown)
    what = "contexts for staged trees, a third per sampler, those of earlier runs included"
    add("--contexts", type=int, default=1_000, help=what)
    add("--store", type=Path, default=cache_folder() / "lossless.jsonl")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.store.parent.mkdir(parents=True, exist_ok=True)
    lines = given.store.read_text().splitlines() if given.store.exists() else []
    stored, rows, nodes = list(map(json.loads, lines)), [], []
    for (dtype, how), goal in zip(FORMATS.items(), given.tokens, strict=True):
        ladder = load_ladder(device="cpu", **how)
        weights = {"weights": hash_of(ladder.card["files"])}
        kept = [row for row in stored if row["dtype"] == dtype and weights.items() <= row.items()]
        done = frozenset(row["key"] for row in kept)
        for name in SAMPLERS if dtype == "float64" else ():
            there = [row for row in kept if "contexts" in row and row["sampler"] == name]
            fresh = (row | weights for row in node_comparisons(ladder, name, done=done))
            contexts, title = -(-given.contexts // len(SAMPLERS)), f"nodes, {name}"
            nodes += filled(contexts, "contexts", there, fresh, path=given.store, title=title)
        there = [row for row in kept if "tokens" in row]
        fresh = (row | weights for row in comparisons(ladder, dtype, done=done))
        rows += filled(goal, "tokens", there, fresh, path=given.store, title=dtype)
    different = [where for row in nodes for where in row["different"]]
    tables = [show(part) for show, part in ((node_table, nodes), (table, rows)) if part]
    print(*tables, *different, sep="\n")
    return int(bool(different) or any(not row["equal"] for row in rows if row["dtype"] in EXACT))


def hash_of(weights: dict[str, str]) -> str:
    """The ladder that a stored comparison was made with."""
    return "".join(digest[:4] for _, digest in sorted(weights.items()))


if __name__ == "__main__":
    sys.exit(main())
