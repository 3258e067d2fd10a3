"""`make lossless`: speculative output equals plain decoding token for token on the ladder, for as many tokens as wanted.

In float64 one differing token is a bug and the command fails. In float32 rounding may decide between two tokens that are nearly as good,
so differences there are counted and shown. Finished generations are kept in data/cache/lossless.jsonl; a later run goes on from there.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tqdm.auto import tqdm

from specdec_lib.chance import Chance, Sampler
from specdec_lib.decode import decode
from specdec_lib.draft import ChainDraft, Draft, NoDraft, TreeDraft
from specdec_lib.ngram import NgramDraft
from specdec_lib.workload import DATA, Ladder, load_ladder, load_prompts, seeds

SAMPLERS = {"T=0": Sampler(0), "T=1": Sampler(1.0), "top-k 50": Sampler(1.0, top_k=50)}


def drafts(ladder: Ladder) -> dict[str, Draft]:
    """One draft of each kind."""
    return {
        "chain": ChainDraft(ladder.draft, 5),
        "tree": TreeDraft(ladder.draft, widths=(3, 2, 2, 1)),
        "best tree": TreeDraft(ladder.draft, budget=16, depth=6),
        "drawn tree": TreeDraft(ladder.draft, widths=(2, 2), siblings="iid"),
        "n-gram": NgramDraft(ladder.katz, widths=(2, 1, 1)),
        "Max-Gram": ladder.max_gram,
    }


def comparisons(ladder: Ladder, dtype: str, *, done: frozenset[str] = frozenset(), max_new_tokens: int = 96) -> Iterator[dict]:
    """One comparison after the other, without end: what, how many tokens agree, and whether all do; those in `done` are left out."""
    prompts = load_prompts("code", "development") + load_prompts("prose", "development")
    seed = 0
    while True:
        for prompt, prompt_seed in zip(prompts, seeds(prompts, seed), strict=True):
            for name, sampler in SAMPLERS.items():
                keys = {draft: f"{dtype}/{prompt.name}/{seed}/{name}/{draft}" for draft in drafts(ladder)}
                if done.issuperset(keys.values()):
                    continue
                run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
                tokens, chance = ladder.encode(prompt), Chance(prompt_seed, sampler)
                plain = decode(ladder.target, NoDraft(), tokens, chance, **run).tokens
                for draft, key in keys.items():
                    found = decode(ladder.target, drafts(ladder)[draft], tokens, chance, **run).tokens
                    agreed = next((place for place, pair in enumerate(zip(plain, found, strict=False)) if pair[0] != pair[1]), len(plain))
                    yield {"key": key, "dtype": dtype, "sampler": name, "draft": draft, "tokens": agreed, "equal": plain == found}
        seed += 1


def table(rows: list[dict]) -> str:
    """Tokens compared and generations that differ, by number format and sampler."""
    lines = ["dtype     sampler   generations   tokens equal   generations that differ"]
    for dtype in sorted({row["dtype"] for row in rows}):
        for name in SAMPLERS:
            part = [row for row in rows if (row["dtype"], row["sampler"]) == (dtype, name)]
            tokens, wrong = sum(row["tokens"] for row in part), sum(not row["equal"] for row in part)
            lines.append(f"{dtype:9} {name:9} {len(part):11,} {tokens:14,} {wrong:25,}")
    return "\n".join(lines)


def main() -> int:
    """Compare until enough tokens agree; 1 if a float64 generation differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000, help="tokens to compare per number format, those of earlier runs included")
    parser.add_argument("--store", type=Path, default=DATA / "cache" / "lossless.jsonl")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.store.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    for dtype in ("float64", "float32"):
        ladder = load_ladder(device="cpu", dtype=dtype)
        weights = ladder.card["files"]
        stored = [json.loads(line) for line in given.store.read_text().splitlines()] if given.store.exists() else []
        kept = [row for row in stored if row["dtype"] == dtype and row["weights"] == hash_of(weights)]
        counted = sum(row["tokens"] for row in kept)
        with given.store.open("a") as store, tqdm(total=given.tokens, initial=counted, desc=dtype, unit="token", mininterval=2) as bar:
            for row in comparisons(ladder, dtype, done=frozenset(row["key"] for row in kept)) if counted < given.tokens else ():
                kept.append(row | {"weights": hash_of(weights)})
                store.write(json.dumps(kept[-1]) + "\n")
                store.flush()
                bar.update(row["tokens"])
                counted += row["tokens"]
                if counted >= given.tokens:
                    break
        rows += kept
    print(table(rows))
    return int(any(not row["equal"] for row in rows if row["dtype"] == "float64"))


def hash_of(weights: dict[str, str]) -> str:
    """The ladder that a stored comparison was made with."""
    return "".join(digest[:4] for _, digest in sorted(weights.items()))


if __name__ == "__main__":
    sys.exit(main())
