"""`specdec measure growth`: how the n-gram stage grows with the draft's samples,
and what pruning costs.

Counts on ever more of the draft's own samples at temperature 1.5, and looks how often the table
then knows what the draft takes, at the positions of texts that the target wrote on development
prompts. Written to data/measured/katz_growth.csv.
Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens) and no curve.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.replay.recording import chain_of
from specdec_lib.measure.texts import Texts, every_domain
from specdec_lib.models.katz import table_file
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.distil.sampling import BYTES, ORDER, PIECE, TEMPERATURE
from specdec_lib.workload import Ladder, Prompt, load_ladder, seeds

PLACE = DATA / "measured" / "katz_growth.csv"
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
SIZES = (0.125, 0.25, 0.5, 1, 2, 4)  # millions of sampled tokens
RANKS, LENGTH = 4, 128  # guesses that are looked at, and tokens of each text


class Written(NamedTuple):
    """Per token of a text that the target wrote: the ORDER tokens before it, its position, and what
    the draft would have taken there.
    """

    chance: Chance
    windows: list[tuple[int, ...]]
    places: range
    taken: list[int]


def texts(ladder: Ladder, stored: Texts, prompts: Sequence[Prompt]) -> list[Written]:
    """The beginning of the text of each prompt."""
    found = []
    for prompt, seed in zip(prompts, seeds(prompts, 0), strict=True):
        chance, given = Chance(seed, stored.sampler), ladder.encode(prompt)
        text = given + stored.of(prompt)[:LENGTH]
        places, context = range(len(given), len(text)), Context.of(given)
        rows = ladder.draft.score(context, chain_of(context, text[len(given) : -1]))
        taken = [chance.choose(row, at) for row, at in zip(rows, places, strict=True)]
        windows = [text[max(0, at - ORDER) : at] for at in places]
        found.append(Written(chance, windows, places, taken))
    return found


def knows(table: Katz, written: Sequence[Written], counted_at: float) -> dict[str, float]:
    """How often the draft's choice is the table's first, and among its first four; microseconds per
    lookup.
    """
    guesser = NgramDraft(table, widths=(1,), counted_at=counted_at)
    hits, seconds = np.zeros((len(written), RANKS)), 0.0
    for number, one in enumerate(written):
        for window, at, token in zip(one.windows, one.places, one.taken, strict=True):
            guesses = guesser.rank(window, RANKS, one.chance, at)[0]
            hits[number, : len(guesses)] += np.array(guesses) == token
        started = time.perf_counter()
        for window in one.windows:
            table.top(window, RANKS)
        seconds += time.perf_counter() - started
    sizes = [len(one.taken) for one in written]
    found = {"places": sum(sizes), "lookup_microseconds": 1e6 * seconds / sum(sizes)}
    found |= named_interval("first", bootstrap(hits[:, 0], sizes))
    return found | named_interval("among_4", bootstrap(hits.sum(axis=1), sizes))


def grow(
    ladder: Ladder,
    samples: np.ndarray,
    prompts: Sequence[Prompt],
    stored: Mapping[str, Texts],
) -> pd.DataFrame:
    """A row per size, sampler and table (whole, or pruned to what the ladder stores)."""
    written = {name: texts(ladder, one, prompts) for name, one in stored.items()}
    rows = []
    for millions in tqdm(SIZES, "sizes"):
        streams = list(samples[: round(millions * PIECE / samples.shape[1])])
        started = time.perf_counter()
        whole = Katz.fit(streams, ladder.katz.vocabulary, order=ORDER)
        seconds = time.perf_counter() - started
        for name, table in (("whole", whole), ("pruned", whole.pruned(BYTES))):
            size = {"millions": millions, "table": name, "ngrams": table.ngrams}
            size["bytes"] = len(table_file.packed(table.levels, table.taken))
            size["build_seconds"] = seconds
            for sampling, along in written.items():
                rows.append(size | {"sampling": sampling} | knows(table, along, TEMPERATURE))
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the table; raises ValueError if too little was sampled."""
    parser = Parser("measure growth", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 12, "development prompts of each domain")
    given = parser.parse_args(arguments)
    pieces = sorted((cache_folder() / "drafts").glob("draft-samples-*.npy"))
    if len(pieces) < max(SIZES):
        wanted = f"{max(SIZES):g} million sampled tokens are wanted, got {len(pieces)} million"
        raise ValueError(f"{wanted}; `specdec distil ngrams` samples them")
    torch.set_num_threads(1)
    stored = dict(zip(SAMPLERS, Texts.stored(tuple(SAMPLERS.values())), strict=True))
    samples, prompts = (
        np.concatenate([*map(np.load, pieces)]),
        every_domain("development", given.limit),
    )
    table = grow(load_ladder(device="cpu"), samples, prompts, stored)
    write_csv(table, PLACE, 4)
    print(table.to_string())
