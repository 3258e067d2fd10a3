"""The n-gram stage, counted on samples of the draft itself, because it must predict the draft and
not the language. An interrupted run goes on where it stopped.

How that stage grows with the samples, and what pruning costs: it is counted on ever more of them,
and how often the table then knows what the draft takes is looked up at the positions of what the
target writes after development prompts.
Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens sampled from the
draft at temperature 1.5) and no curve.
"""

import time
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.foresight import ORDER, Along, knows, places
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.lessons import read_head
from specdec_lib.suite.distil.shards import Conversation, read_text
from specdec_lib.suite.setup import load_target
from specdec_lib.workload import Prompt, load_ladder

TEMPERATURE = 1.5
GIVEN = 16  # tokens of an answer that a sample starts from; they are not counted
# of a sample, and samples at a time
LENGTH = 240
ROWS = 256
# tokens sampled with one seed and kept in one file, and such files
PIECE = 1_000_000
PIECES = 4
BYTES = 3_000_000  # of the stored table

PLACE = DATA / "measured" / "katz_growth.csv"
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
SIZES = (0.125, 0.25, 0.5, 1, 2, 4)  # millions of sampled tokens


def store_ngrams(text: Path) -> Katz:
    """Sample the draft after answers of a folder of shards, piece by piece, and store the table of
    what was counted, which comes back.
    """
    texts = read_text(text)
    folder = cache_folder() / "drafts"
    head = read_head(cache_folder() / "lessons")
    student = assemble(load_target(), folder / "draft.safetensors")
    samples = []
    for seed in range(PIECES):
        path = folder / f"draft-samples-{seed:03}.npy"
        if not path.is_file():
            stream = BytesIO()
            np.save(stream, np.stack(list(sample(student, head, texts, seed))))
            write_whole(path, stream.getvalue())
        samples += list(np.load(path))
    whole = Katz.fit(samples, student.config.vocab_size, ORDER)
    pruned = whole.pruned(BYTES)
    pruned.save(folder / "katz.npz")
    print(f"{pruned.ngrams:,} of {whole.ngrams:,} n-grams are kept")
    return pruned


def sample(
    student: PreTrainedModel,
    head: Sequence[int],
    texts: Sequence[Conversation],
    seed: int,
    *,
    tokens: int = PIECE,
) -> Iterator[np.ndarray]:
    """At least so many sampled tokens as arrays of LENGTH, from random places in answers of texts
    of GIVEN tokens or more.
    """
    random = Random(seed)
    generator = torch.Generator().manual_seed(seed)
    stored_type = np.min_scalar_type(student.config.vocab_size - 1)
    ids = torch.tensor(head)
    drawn = torch.zeros(ROWS, dtype=torch.bool)
    for _ in tqdm(range(0, tokens, ROWS * LENGTH), "samples"):
        given = []
        for _ in range(ROWS):
            one = random.choice(texts)
            end = max(GIVEN, one.start + random.randrange(one.answer_tokens))
            given.append(one.ids[end - GIVEN : end])
        columns = list(torch.tensor(given).T)  # one per position
        passes = BatchedPasses(student, ROWS, GIVEN + LENGTH, head=head)
        for position in range(GIVEN + LENGTH - 1):
            logits = passes.logits(columns[position], torch.full((ROWS,), position))
            if position >= GIVEN - 1:
                columns.append(ids[draw(logits, TEMPERATURE, generator, greedy=drawn)])
        yield from torch.stack(columns[GIVEN:], dim=1).numpy().astype(stored_type)


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


def measure_growth(prompts: Sequence[Prompt]) -> pd.DataFrame:
    """`grow` along what the target writes after prompts; raises ValueError if too little was
    sampled.
    """
    pieces = sorted((cache_folder() / "drafts").glob("draft-samples-*.npy"))
    if len(pieces) < max(SIZES):
        raise ValueError(
            f"{max(SIZES):g} million sampled tokens are wanted, got {len(pieces)} million;"
            " `specdec distil ngrams` samples them"
        )
    ladder = load_ladder(device="cpu")
    along = {
        name: places(ladder, prompts, sampler, texts_after(prompts, [sampler], ladder))["draft"]
        for name, sampler in SAMPLERS.items()
    }
    assert ladder.katz is not None  # the embedded ladder has one
    return grow(ladder.katz.vocabulary, np.concatenate([*map(np.load, pieces)]), along)
