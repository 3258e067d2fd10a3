"""`make lossless`: speculative output equals plain decoding token for token on the ladder, for as
many tokens as wanted.

In float64 one differing token is a bug and the command fails. In float32 rounding may decide
between two tokens that are nearly as good, so differences there are counted and shown. Before that,
in float64, a staged tree is compared with the tree of its draft alone, node for node, at contexts
of texts that the target wrote: one differing node fails too. Finished comparisons are kept in
data/cache/lossless.jsonl; a later run goes on from there.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.workload import Ladder, Prompt, load_ladder, load_prompts, seeds

SAMPLERS = {"T=0": Sampler(0), "T=1": Sampler(1.0), "top-k 50": Sampler(1.0, top_k=50)}
SIBLINGS = ("ranked", "top", "iid", "distinct")
ALONE = "alone"
SAME = 1e-9  # scores and rows of two trees that are the same: float64 sums in another order


def scouts(ladder: Ladder, siblings: str = "ranked") -> dict[str, Draft]:
    """Who guesses for the draft: ranked where it ranks, else the likeliest."""
    chosen = "ranked" if siblings == "ranked" else "top"
    table = NgramDraft(
        ladder.katz,
        budget=16,
        depth=6,
        siblings=chosen,
        counted_at=ladder.card["katz"]["temperature"],
    )
    return {"n-gram": table, "Max-Gram + n-gram": MergedDraft((MaxGram(None, 6), table))}


def shapes(
    model: LanguageModel, match: MatchTable, siblings: str = "ranked"
) -> dict[str, ChainDraft | TreeDraft]:
    """What is staged."""
    return {
        "chain of 5": ChainDraft(model, 5, siblings=siblings, match=match),
        "best tree of 8": TreeDraft(model, budget=8, depth=6, siblings=siblings, match=match),
        "best tree of 16": TreeDraft(model, budget=16, depth=6, siblings=siblings, match=match),
    }


def drafts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """One draft of each kind."""
    measured, guessed = ladder.match("draft", sampler), scouts(ladder)
    table = guessed["n-gram"]
    staged = {
        f"{shape}, scout {scout}": StagedTree(plain, guessed[scout])
        for shape, plain in shapes(ladder.draft, MatchTable()).items()
        for scout in guessed
    }
    return {
        "chain": ChainDraft(ladder.draft, 5),
        "tree": TreeDraft(ladder.draft, widths=(3, 2, 2, 1)),
        "best tree": TreeDraft(ladder.draft, budget=16, depth=6),
        "drawn tree": TreeDraft(ladder.draft, widths=(2, 2), siblings="iid"),
        "n-gram": NgramDraft(ladder.katz, widths=(2, 1, 1)),
        "Max-Gram": ladder.max_gram,
        "best tree by gap": TreeDraft(ladder.draft, budget=16, depth=6, match=measured),
        **staged,
        "staged chain": StagedChain(ladder.draft, table, 5),
        "lenient cascade": from_matrix(
            (ladder.middle, ladder.draft, ladder.max_gram),
            ((2, 1, 10), (0, 1, 10), (0, 0, 10)),
            lenience=5.0,
            exempt_max_gram=False,
        ),
        "comb": from_matrix((ladder.draft, ladder.max_gram), ((1, 3), (0, 1)), width=8),
        "drawn cascade": from_matrix(
            (ladder.draft, ladder.max_gram), ((2, 4), (0, 4)), lenience=2.0, siblings="iid"
        ),
        "three stages": StagedTree(
            TreeDraft(ladder.middle, budget=8, depth=4),
            StagedTree(ChainDraft(ladder.draft, 4), table),
        ),
    }


def runs(prompts: list[Prompt]) -> Iterator[tuple[str, Prompt, int]]:
    """Every prompt with a seed of its own, then all with another seed, without end."""
    for seed in count():
        for prompt, prompt_seed in zip(prompts, seeds(prompts, seed), strict=True):
            yield f"{prompt.name}/{seed}", prompt, prompt_seed


def comparisons(
    ladder: Ladder, dtype: str, *, done: frozenset[str] = frozenset(), max_new_tokens: int = 96
) -> Iterator[dict]:
    """One comparison after the other, without end: what, how many tokens agree, and whether all do;
    those in `done` are left out.
    """
    run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    for place, prompt, seed in runs(
        load_prompts("code", "development") + load_prompts("prose", "development")
    ):
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
                agreed = next(
                    (
                        place
                        for place, pair in enumerate(zip(plain, found, strict=False))
                        if pair[0] != pair[1]
                    ),
                    len(plain),
                )
                yield {
                    "key": key,
                    "dtype": dtype,
                    "sampler": name,
                    "draft": draft,
                    "tokens": agreed,
                    "equal": plain == found,
                }


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
    for place, prompt, seed in runs(load_prompts("code", "development")):
        key = f"nodes/{place}/{name}"
        if key in done:
            continue
        given, chance = ladder.encode(prompt), Chance(seed, sampler)
        text = decode(
            ladder.target,
            NoDraft(),
            given,
            chance,
            max_new_tokens=max_new_tokens,
            stop_tokens=ladder.stop_tokens,
        ).context.tokens
        contexts = [
            Context(text[:length], len(given)) for length in range(len(given), len(text), every)
        ]
        different, passes = [], {}
        for siblings in SIBLINGS:
            match = (
                MatchTable()
                if siblings == "top"
                else ladder.match("draft", sampler, siblings=siblings)
            )
            for shape in shapes(ladder.draft, match, siblings):
                trees, passes[f"{siblings}/{shape}"] = proposals(
                    ladder, contexts, chance, shape=shape, match=match, siblings=siblings
                )
                for scout in trees.keys() - {ALONE}:
                    pairs = zip(contexts, trees[ALONE], trees[scout], strict=True)
                    different += [
                        f"{key}/{siblings}/{shape}/{scout}/{len(context)}"
                        for context, *pair in pairs
                        if not same(*pair)
                    ]
        yield {
            "key": key,
            "dtype": "float64",
            "sampler": name,
            "contexts": len(contexts),
            "different": different,
            "passes": passes,
        }


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
    if (one.root_position, one.tokens, one.parents) != (
        other.root_position,
        other.tokens,
        other.parents,
    ):
        return False
    rows = all(
        a is b if a is None or b is None else torch.allclose(a, b, rtol=0, atol=SAME)
        for a, b in zip(one.rows, other.rows, strict=True)
    )
    return rows and all(abs(a - b) <= SAME for a, b in zip(one.scores, other.scores, strict=True))


def table(rows: list[dict]) -> str:
    """Tokens compared and generations that differ, by number format and sampler."""
    lines = ["dtype     sampler   generations   tokens equal   generations that differ"]
    for dtype in sorted({row["dtype"] for row in rows}):
        for name in SAMPLERS:
            part = [row for row in rows if (row["dtype"], row["sampler"]) == (dtype, name)]
            tokens, wrong = (
                sum(row["tokens"] for row in part),
                sum(not row["equal"] for row in part),
            )
            lines.append(f"{dtype:9} {name:9} {len(part):11,} {tokens:14,} {wrong:25,}")
    return "\n".join(lines)


def node_table(rows: list[dict]) -> str:
    """Contexts compared, differing staged trees among them, and the draft's passes per proposal
    without and with each scout.
    """
    columns = list(next(iter(rows[0]["passes"].values()))) if rows else []
    lines = [
        "staged trees against the draft's own, node for node, and the draft's passes per proposal"
    ]
    lines.append(
        "sampler   siblings  shape            contexts  different  "
        + "  ".join(f"{name:>6}" for name in columns)
    )
    for name in SAMPLERS:
        part = [row for row in rows if row["sampler"] == name]
        contexts = sum(row["contexts"] for row in part)
        for kind in part[0]["passes"] if part else ():
            siblings, shape = kind.split("/")
            wrong = sum(f"/{kind}/" in where for row in part for where in row["different"])
            means = [
                sum(row["passes"][kind][column] for row in part) / contexts for column in columns
            ]
            shown = "  ".join(
                f"{mean:{max(6, len(column))}.2f}"
                for mean, column in zip(means, columns, strict=True)
            )
            lines.append(f"{name:9} {siblings:9} {shape:16} {contexts:8,}  {wrong:9,}  {shown}")
    return "\n".join(lines)


def filled(
    goal: int,
    unit: str,
    kept: list[dict],
    fresh: Iterator[dict],
    *,
    path: Path,
    weights: str,
    title: str,
) -> list[dict]:
    """The comparisons there are, and fresh ones, each stored as soon as it is made, until `unit`
    sums to the goal.
    """
    counted = sum(row[unit] for row in kept)
    with (
        path.open("a") as store,
        tqdm(total=goal, initial=counted, desc=title, unit=unit[:-1], mininterval=2) as bar,
    ):
        while counted < goal:
            kept.append(next(fresh) | {"weights": weights})
            store.write(json.dumps(kept[-1]) + "\n")
            store.flush()
            bar.update(kept[-1][unit])
            counted += kept[-1][unit]
    return kept


def main() -> int:
    """Compare until enough agrees; 1 if a float64 generation or a staged tree differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tokens",
        type=int,
        default=20_000,
        help="tokens to compare per number format, those of earlier runs included",
    )
    parser.add_argument(
        "--contexts",
        type=int,
        default=1_000,
        help="contexts for staged trees, a third per sampler, those of earlier runs included",
    )
    parser.add_argument("--store", type=Path, default=DATA / "cache" / "lossless.jsonl")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.store.parent.mkdir(parents=True, exist_ok=True)
    stored = (
        [json.loads(line) for line in given.store.read_text().splitlines()]
        if given.store.exists()
        else []
    )
    rows, nodes = [], []
    for dtype in ("float64", "float32"):
        ladder = load_ladder(device="cpu", dtype=dtype)
        weights = hash_of(ladder.card["files"])
        kept = [row for row in stored if (row["dtype"], row["weights"]) == (dtype, weights)]
        done = frozenset(row["key"] for row in kept)
        for name in SAMPLERS if dtype == "float64" else ():
            there = [row for row in kept if "contexts" in row and row["sampler"] == name]
            fresh = node_comparisons(ladder, name, done=done)
            nodes += filled(
                -(-given.contexts // len(SAMPLERS)),
                "contexts",
                there,
                fresh,
                path=given.store,
                weights=weights,
                title=f"nodes, {name}",
            )
        there = [row for row in kept if "tokens" in row]
        rows += filled(
            given.tokens,
            "tokens",
            there,
            comparisons(ladder, dtype, done=done),
            path=given.store,
            weights=weights,
            title=dtype,
        )
    print(
        node_table(nodes),
        table(rows),
        *(where for row in nodes for where in row["different"]),
        sep="\n",
    )
    return int(
        any(row["different"] for row in nodes)
        or any(not row["equal"] for row in rows if row["dtype"] == "float64")
    )


def hash_of(weights: dict[str, str]) -> str:
    """The ladder that a stored comparison was made with."""
    return "".join(digest[:4] for _, digest in sorted(weights.items()))


if __name__ == "__main__":
    sys.exit(main())
