"""`specdec measure growth`: how the n-gram stage grows with the draft's samples,
and what pruning costs.

Counts on ever more of the draft's own samples at temperature 1.5, and looks how often the table
then knows what the draft takes, at the positions of texts that the target wrote on development
prompts. Written to data/measured/katz_growth.csv.
Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens) and no curve.
"""

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.replay import record
from specdec_lib.measure.texts import Texts, every_domain
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.distil.sampling import BYTES, ORDER, PIECE, TEMPERATURE
from specdec_lib.workload import Ladder, Prompt, load_ladder, seeds

PLACE = DATA / "measured" / "katz_growth.csv"
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
SIZES = (0.125, 0.25, 0.5, 1, 2, 4)  # millions of sampled tokens
RANKS, LENGTH = 4, 128  # guesses that are looked at, and tokens of each text
# of a text, per token: the ORDER tokens before it, its position, and the draft's choice
Place = tuple[tuple[int, ...], int, int]
Along = list[tuple[Chance, list[Place]]]


def places(ladder: Ladder, stored: Texts, prompts: Sequence[Prompt]) -> Along:
    """The chance of each text, and its first LENGTH places."""
    found = []
    limits = {"max_new_tokens": LENGTH, "texts": stored, "progress": False}
    recorded = record(prompts, ladder, stored.sampler, **limits)
    for prompt, seed, one in zip(prompts, seeds(prompts, 0), recorded, strict=True):
        given = ladder.encode(prompt)
        text, chosen = given + one.tokens, one.choices["draft"].tokens
        numbered = zip(range(len(given), len(text)), chosen, strict=False)
        own = [(text[max(0, at - ORDER) : at], at, token) for at, token in numbered]
        found.append((Chance(seed, stored.sampler), own))
    return found


def knows(table: Katz, along: Along, counted_at: float) -> dict[str, float]:
    """How often the draft's choice is the table's first, and among its first four, over how many
    prompts and places; microseconds per lookup.
    """
    guesser = NgramDraft(table, widths=(1,), counted_at=counted_at)
    hits, seconds = np.zeros((len(along), RANKS)), 0.0
    for number, (chance, own) in enumerate(along):
        for window, at, token in own:
            guesses = guesser.rank(window, RANKS, chance, at)[0]
            hits[number, : len(guesses)] += np.array(guesses) == token
        started = time.perf_counter()
        for window, *_ in own:
            table.top(window, RANKS)
        seconds += time.perf_counter() - started
    sizes = [len(own) for _, own in along]
    found = {"prompts": len(sizes), "places": sum(sizes)}
    found["lookup_microseconds"] = 1e6 * seconds / sum(sizes)
    found |= named_interval("first", bootstrap(hits[:, 0], sizes))
    return found | named_interval("among_4", bootstrap(hits.sum(axis=1), sizes))


def grow(vocabulary: int, samples: np.ndarray, along: dict[str, Along]) -> pd.DataFrame:
    """A row per size, sampler and table (whole, or pruned to what the ladder stores)."""
    rows = []
    for millions in tqdm(SIZES, "sizes"):
        streams = list(samples[: round(millions * PIECE / samples.shape[1])])
        started = time.perf_counter()
        whole = Katz.fit(streams, vocabulary, order=ORDER)
        seconds = time.perf_counter() - started
        for name, table in (("whole", whole), ("pruned", whole.pruned(BYTES))):
            size = {"millions": millions, "table": name, "ngrams": table.ngrams}
            size["bytes"] = table.file_bytes
            size["build_seconds"] = seconds
            for sampling, own in along.items():
                rows.append(size | {"sampling": sampling} | knows(table, own, TEMPERATURE))
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
    ladder, prompts = load_ladder(device="cpu"), every_domain("development", given.limit)
    stored = zip(SAMPLERS, Texts.stored(tuple(SAMPLERS.values())), strict=True)
    along = {name: places(ladder, texts, prompts) for name, texts in stored}
    table = grow(ladder.katz.vocabulary, np.concatenate([*map(np.load, pieces)]), along)
    write_csv(table, PLACE, 4)
    print(table.to_string())
