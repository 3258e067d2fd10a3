"""`specdec measure growth`: how the n-gram stage grows with the draft's samples,
and what pruning costs.

Counts on ever more of the draft's own samples at temperature 1.5, and looks how often the table
then knows what the draft takes, at the positions of texts that the target wrote on development
prompts. Written to data/measured/katz_growth.csv.
Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens) and no curve.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.intervals import bootstrap
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


@dataclass(frozen=True)
class Written:
    """A text that the target wrote from `start` on, and what the draft would have taken there."""

    chance: Chance
    start: int
    text: tuple[int, ...]
    taken: list[int]


def texts(ladder: Ladder, stored: Texts, prompts: Sequence[Prompt]) -> list[Written]:
    """The beginning of the text of each prompt."""
    found = []
    for prompt, seed in zip(prompts, seeds(prompts, 0), strict=True):
        chance, given, text = Chance(seed, stored.sampler), ladder.encode(prompt), stored.of(prompt)
        text = text[:LENGTH]
        rows = ladder.draft.score(context := Context.of(given), chain_of(context, text[:-1]))
        taken = [chance.choose(row, place) for place, row in enumerate(rows, len(given))]
        found.append(Written(chance, len(given), given + text, taken))
    return found


def knows(table: Katz, written: Sequence[Written], counted_at: float) -> dict[str, float]:
    """How often the draft's choice is the table's first, and among its first four; microseconds per
    lookup.
    """
    guesser = NgramDraft(table, widths=(1,), counted_at=counted_at)
    first, among, seconds = [], [], 0.0
    for one in written:
        places = range(one.start, len(one.text))
        windows = [one.text[max(0, at - table.order) : at] for at in places]
        asked = zip(windows, places, strict=True)
        guesses = [guesser.rank(window, RANKS, one.chance, at)[0] for window, at in asked]
        pairs = list(zip(guesses, one.taken, strict=True))
        started = time.perf_counter()
        for window in windows:
            table.top(window, RANKS)
        seconds += time.perf_counter() - started
        first.append(sum(guess[0] == token for guess, token in pairs))
        among.append(sum(token in guess for guess, token in pairs))
    sizes = [len(one.taken) for one in written]
    found = {"places": sum(sizes), "lookup_microseconds": 1e6 * seconds / sum(sizes)}
    for name, hits in (("first", first), ("among_4", among)):
        found[name], found[f"{name}_low"], found[f"{name}_high"] = bootstrap(hits, sizes)
    return found


def grow(
    ladder: Ladder,
    samples: Sequence[np.ndarray],
    sizes: Sequence[float],
    prompts: Sequence[Prompt],
    stored: Mapping[str, Texts],
) -> pd.DataFrame:
    """A row per size, sampler and table (whole, or pruned to what the ladder stores)."""
    written = {name: texts(ladder, one, prompts) for name, one in stored.items()}
    rows, everything = [], np.concatenate(samples)
    for millions in tqdm(sizes, "sizes"):
        streams = list(everything[: round(millions * PIECE / everything.shape[1])])
        started = time.perf_counter()
        whole = Katz.fit(streams, ladder.katz.vocabulary, order=ORDER)
        seconds = time.perf_counter() - started
        for name, table in (("whole", whole), ("pruned", whole.pruned(BYTES))):
            size = {"millions": millions, "table": name, "ngrams": table.ngrams}
            size["bytes"] = len(table_file.packed(table.levels, table.taken))
            size["build_seconds"] = seconds
            rows += [
                size | {"sampling": sampling} | knows(table, along, TEMPERATURE)
                for sampling, along in written.items()
            ]
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the table; raises ValueError if too little was sampled."""
    parser = Parser("measure growth", __doc__.partition(": ")[2], writes=[PLACE])
    folder = cache_folder() / "drafts"
    parser.add_argument("--samples", type=Path, default=folder, help="of `distil ngrams`")
    parser.add_common("--limit", 12, "development prompts of each domain")
    given = parser.parse_args(arguments)
    pieces = sorted(given.samples.glob("draft-samples-*.npy"))
    if len(pieces) < max(SIZES):
        raise ValueError(
            f"{max(SIZES):g} million sampled tokens are wanted, {given.samples} holds"
            f" {len(pieces)} million; `specdec distil ngrams --pieces` samples more"
        )
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    stored = dict(zip(SAMPLERS, Texts.stored(tuple(SAMPLERS.values())), strict=True))
    samples, prompts = map(np.load, pieces), every_domain("development", given.limit)
    table = grow(ladder, list(samples), SIZES, prompts, stored)
    write_csv(table, PLACE, 4)
    print(table.to_string())
