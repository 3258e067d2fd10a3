"""`make lossless`: speculative output equals plain decoding token for token on the ladder, for as
many tokens as wanted. In float64, and on the fast runtime, one differing token is a bug and the
command fails; in float32 on the reference runtime rounding may decide, and differences are shown.
`--families` tries a small random model in float64 of every family that the fast runtime knows.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count, groupby
from operator import itemgetter
from random import Random

import pandas as pd
import torch
from decoders import DECODERS, decoder
from kinds import shaken
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.workload import (
    DOMAINS,
    Ladder,
    Prompt,
    load_ladder,
    load_prompts,
    seeds,
)

FORMATS = {  # how the ladder is loaded
    "float64": {"dtype": "float64"},
    "float32": {"dtype": "float32"},
    "fast": {"dtype": "float32", "runtime": "fast"},
}
EXACT = ("float64", "fast")
GROUP = itemgetter("prompt", "sampler")
SAMPLERS = {"T=0": Sampler(0), "T=1": Sampler(1.0), "top-k 50": Sampler(1.0, top_k=50)}


def drafts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """One draft of each kind."""
    pair, tree = (ladder.draft, ladder.max_gram), partial(TreeDraft, ladder.draft)
    heat = ladder.card["katz"]["temperature"]
    table = NgramDraft(ladder.katz, budget=16, depth=6, counted_at=heat)
    three = (ladder.middle, *pair), ((2, 1, 10), (0, 1, 10), (0, 0, 10))
    chain, best = ChainDraft(ladder.draft, 5), tree(budget=16, depth=6)
    reading = {}
    if ladder.reading is not None:
        copied = ladder.reading, ladder.max_gram
        reading = {
            "reading tree": TreeDraft(ladder.reading, budget=16, depth=6),
            "reading tree, drawn": TreeDraft(ladder.reading, widths=(2, 2), siblings="iid"),
            "reading cascade": from_matrix(copied, ((2, 4), (0, 4))),
        }
    return reading | {
        "chain": chain,
        "tree": tree(widths=(3, 2, 2, 1)),
        "best tree": best,
        "drawn tree": tree(widths=(2, 2), siblings="iid"),
        "n-gram": NgramDraft(ladder.katz, widths=(2, 1, 1)),
        "Max-Gram": ladder.max_gram,
        "best tree by gap": tree(budget=16, depth=6, match=ladder.match("draft", sampler)),
        "staged chain of 5": StagedTree(chain, table),
        "staged tree of 16": StagedTree(best, MergedDraft((MaxGram(None, 6), table))),
        "staged chain": StagedChain(ladder.draft, table, 5),
        "lenient cascade": from_matrix(*three, lenience=5.0, exempt_max_gram=False),
        "comb": from_matrix(pair, ((1, 3), (0, 1)), width=8),
        "drawn cascade": from_matrix(pair, ((2, 4), (0, 4)), lenience=2.0, siblings="iid"),
        "three stages": StagedTree(
            TreeDraft(ladder.middle, budget=8, depth=4), StagedTree(chain, table)
        ),
    }


def runs() -> Iterator[tuple[Prompt, int]]:
    """Every development prompt with its seed, domains in turn; then with another, without end."""
    sets = [load_prompts(domain, "development") for domain in DOMAINS]
    prompts = [prompt for turn in zip(*sets, strict=True) for prompt in turn]
    for seed in count():
        yield from zip(prompts, seeds(prompts, seed), strict=True)


def comparisons(ladder: Ladder, dtype: str, *, max_new_tokens: int = 96) -> Iterator[dict]:
    """One comparison after the other, without end."""
    run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    for prompt, seed in runs():
        for name, sampler in SAMPLERS.items():
            tokens, chance = ladder.encode(prompt), Chance(seed, sampler)
            plain = decode(ladder.target, NoDraft(), tokens, chance, **run).tokens
            for draft, guesser in drafts(ladder, sampler).items():
                found = decode(ladder.target, guesser, tokens, chance, **run).tokens
                pairs = enumerate(zip(plain, found, strict=False))
                agreed = next((at for at, (one, other) in pairs if one != other), len(plain))
                about = {"dtype": dtype, "sampler": name, "prompt": prompt.name, "seed": seed}
                yield about | {"draft": draft, "tokens": agreed, "equal": plain == found}


def whole_ladder(dtype: str) -> Ladder:
    """The ladder in a number format."""
    return load_ladder(device="cpu", **FORMATS[dtype])


def compare_format(dtype: str, goal: int) -> list[dict]:
    """Comparisons in one number format until so many tokens agree. A line is printed after the
    drafts on each prompt under a sampler: how many tokens agree, and how many texts differ, so far.
    """
    rows: list[dict] = []
    ladder = whole_ladder(dtype)
    differing = 0
    with tqdm(total=goal, desc=dtype, unit="token", mininterval=2) as bar:
        for (name, sampler), group in groupby(comparisons(ladder, dtype), GROUP):
            for row in group:
                rows.append(row)
                differing += not row["equal"]
                bar.update(row["tokens"])
                if bar.n >= goal:
                    break
            done = f"{bar.n:,} of {goal:,} tokens agree, {differing} of {len(rows)} texts differ"
            with tqdm.external_write_mode():
                print(f"{dtype}, {name}, {sampler}: {done}", flush=True)
            if bar.n >= goal:
                break
    return rows


def compare_families(goal: int) -> list[dict]:
    """Comparisons of a tree with plain decoding until so many tokens of each family agree."""
    rows: list[dict] = []
    for kind in tqdm(DECODERS, desc="families"):
        network = decoder(kind).double()
        target = CachedModel(network, "target")
        guesser = TreeDraft(CachedModel(shaken(network), "draft"), budget=8, depth=4)
        agreed = 0
        for seed in count():
            prompt = Random(seed).choices(range(target.vocabulary), k=12)
            for name, sampler in SAMPLERS.items():
                plain, found = (
                    decode(target, one, prompt, Chance(seed, sampler), max_new_tokens=96).tokens
                    for one in (NoDraft(), guesser)
                )
                same = sum(one == other for one, other in zip(plain, found, strict=True))
                about = {"dtype": f"float64, {kind}", "sampler": name}
                rows.append(about | {"tokens": same, "equal": plain == found})
                agreed += same
            if agreed >= goal:
                break
    return rows


def main(given: list[str] | None = None) -> int:
    """Compare until enough agrees; 1 if what has to be equal differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000, help="per number format")
    told = "run these alone (default: all)"
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=[*FORMATS], help=told)
    told = "small random models of all families instead, so many tokens of each"
    parser.add_argument("--families", action="store_true", help=told)
    asked = parser.parse_args(given)
    if asked.tokens < 1:
        raise SystemExit(f"--tokens counts from 1, got {asked.tokens}")
    torch.set_num_threads(1)
    if asked.families:
        rows = compare_families(asked.tokens)
    else:
        rows = [row for dtype in asked.format for row in compare_format(dtype, asked.tokens)]
    found = pd.DataFrame(rows).assign(generations=1)
    columns = ["generations", "equal", "tokens"]
    print(found.groupby(["dtype", "sampler"], sort=False)[columns].sum().to_string())
    return int(not found.equal[found["dtype"].str.startswith(EXACT)].all())


if __name__ == "__main__":
    sys.exit(main())
