"""`specdec measure growth`: how the n-gram stage grows with the draft's samples,
and what pruning costs.

Counts on ever more of the draft's own samples at temperature 1.5, and looks how often the table
then knows what the draft takes, at the positions of texts that the target wrote on development
prompts. Written to data/measured/katz_growth.csv.
Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens) and no curve.
"""

import io
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import GPT2LMHeadModel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.intervals import bootstrap
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.katz import table_file
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.ladder import corpus
from specdec_lib.suite.ladder.making import KATZ_BYTES
from specdec_lib.suite.ladder.sampling import sample
from specdec_lib.workload import Ladder, load_ladder, load_prompts, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

PIECE = 1_000_000  # tokens sampled with one seed
RANKS = 4


def texts(
    ladder: Ladder, sampler: Sampler, prompts: int
) -> list[tuple[Chance, int, tuple[int, ...], list[int]]]:
    """Per development prompt: its chance, where the target began to write, the text, and what the
    draft would have taken at each place.
    """
    found = []
    asked = load_prompts("code", "development", prompts)
    for prompt, seed in zip(asked, seeds(asked, 0), strict=True):
        chance, given = Chance(seed, sampler), ladder.encode(prompt)
        text = decode(
            ladder.target,
            NoDraft(),
            given,
            chance,
            max_new_tokens=128,
            stop_tokens=ladder.stop_tokens,
        ).context.tokens
        rows = logits_along(ladder.draft, text[:-1])
        found.append(
            (
                chance,
                len(given),
                text,
                [chance.choose(rows[at - 1], at) for at in range(len(given), len(text))],
            )
        )
    return found


@torch.no_grad()
def logits_along(model: CachedModel, text: tuple[int, ...]) -> Float[Tensor, "tokens vocab"]:
    """The logits after each token of a text, in one plain pass that no cache sees."""
    return model.model(input_ids=torch.tensor([text], device=model.model.device)).logits[0].float()


def knows(
    table: Katz,
    written: Sequence[tuple[Chance, int, tuple[int, ...], list[int]]],
    counted_at: float,
) -> dict[str, float]:
    """How often the draft's choice is the table's first, and among its first four; microseconds per
    lookup.
    """
    guesser = NgramDraft(table, widths=(1,), counted_at=counted_at)
    first, among, places = [], [], []
    seconds = 0.0
    for chance, given, text, taken in written:
        windows = [text[max(0, at - table.order) : at] for at in range(given, len(text))]
        guessed = [
            guesser.rank(window, RANKS, chance, given + at)[0] for at, window in enumerate(windows)
        ]
        started = time.perf_counter()
        for window in windows:
            table.top(window, RANKS)
        seconds += time.perf_counter() - started
        first.append(sum(guess[0] == token for guess, token in zip(guessed, taken, strict=True)))
        among.append(sum(token in guess for guess, token in zip(guessed, taken, strict=True)))
        places.append(len(taken))
    found = {"places": sum(places), "lookup_microseconds": 1e6 * seconds / sum(places)}
    for name, hits in (("first", first), ("among_4", among)):
        found |= dict(
            zip((name, f"{name}_low", f"{name}_high"), bootstrap(hits, places), strict=True)
        )
    return found


def pieces(ladder: Ladder, count: int, cache: Path) -> list[np.ndarray]:
    """So many pieces of the draft's own samples, each kept in the cache."""
    stream = None
    found = []
    for seed in range(count):
        path = (
            cache / f"samples-{ladder.card['files']['draft/model.safetensors'][:12]}-{seed:03d}.npy"
        )
        if not path.exists():
            if stream is None:
                stream = corpus.encode(
                    ladder.tokenizer.backend_tokenizer,
                    corpus.documents(list(corpus.source_files(corpus.PACKAGES))),
                )
            model: GPT2LMHeadModel = ladder.draft.model
            np.save(
                path.with_suffix(".partial.npy"), np.stack(sample(model, stream, PIECE, seed=seed))
            )
            os.replace(path.with_suffix(".partial.npy"), path)
        found.append(np.load(path))
    return found


def grow(
    ladder: Ladder, samples: Sequence[np.ndarray], sizes: Sequence[float], prompts: int
) -> "DataFrame":
    """A row per size, sampler and table (whole, or pruned to what the ladder stores)."""
    import pandas as pd

    written = {
        name: texts(ladder, sampler, prompts)
        for name, sampler in (("greedy", Sampler(0)), ("T = 1", Sampler(1.0)))
    }
    rows = []
    everything = np.concatenate(samples)
    for millions in sizes:
        streams = list(everything[: round(millions * PIECE / everything.shape[1])])
        started = time.perf_counter()
        whole = Katz.fit(streams, ladder.katz.vocabulary, order=3)
        seconds = time.perf_counter() - started
        for name, table in (("whole", whole), ("pruned", whole.pruned(KATZ_BYTES))):
            stored = io.BytesIO()
            table_file.write_stream(stored, table.levels, table.taken)
            size = {
                "millions": millions,
                "table": name,
                "ngrams": table.ngrams,
                "bytes": len(stored.getbuffer()),
                "build_seconds": seconds,
            }
            rows += [
                size | {"sampling": sampling} | knows(table, along, 1.5)
                for sampling, along in written.items()
            ]
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, sample what is missing, measure and write."""
    parser = Parser("measure growth", __doc__.partition(": ")[2])
    parser.add_argument(
        "--cache", type=Path, default=DATA / "cache" / "ladder", help="where samples are kept"
    )
    parser.add_argument(
        "--sizes",
        type=float,
        nargs="+",
        default=[0.125, 0.25, 0.5, 1, 2, 4, 6],
        help="millions of tokens",
    )
    parser.add_argument("--prompts", type=int, default=40, help="development code prompts")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    given.cache.mkdir(parents=True, exist_ok=True)
    ladder = load_ladder(device="cpu")
    table = grow(
        ladder, pieces(ladder, math.ceil(max(given.sizes)), given.cache), given.sizes, given.prompts
    )
    (DATA / "measured").mkdir(exist_ok=True)
    partial = DATA / "measured" / "katz_growth.partial"
    table.round(4).to_csv(partial, index=False)
    os.replace(partial, DATA / "measured" / "katz_growth.csv")
    print(table.to_string())
