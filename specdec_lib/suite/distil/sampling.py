"""`specdec distil ngrams`: counts the n-gram stage on samples of the draft itself, because it must
predict the draft and not the language.

Source: Spector and Ré 2023, section 3.2 (120 M tokens sampled from the draft at temperature 1.5).
An interrupted run goes on where it stopped.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from random import Random

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.lessons import read_head
from specdec_lib.suite.distil.text import Conversation, add_text, read_text
from specdec_lib.suite.setup import load_target

ORDER = 3
TEMPERATURE = 1.5
GIVEN = 16  # tokens of an answer that a sample starts from; they are not counted
LENGTH = 240
ROWS = 256
PIECE, PIECES = 1_000_000, 4  # tokens sampled with one seed and kept in one file, and such files
BYTES = 3_000_000  # of the stored table


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample the draft, piece by piece, and store the table of what was counted."""
    parser = Parser("distil ngrams", "count n-grams on samples of the draft at temperature 1.5")
    add_text(parser)
    texts, folder = read_text(parser.parse_args(arguments).text), cache_folder() / "drafts"
    head = read_head(cache_folder() / "lessons")
    student = assemble(load_target(), folder / "draft.safetensors")
    samples = []
    for seed in range(PIECES):
        path = folder / f"draft-samples-{seed:03}.npy"
        if not path.is_file():
            stream = BytesIO()
            np.save(stream, np.stack(list(sample(student, head, texts, PIECE, seed=seed))))
            write_whole(path, stream.getvalue())
        samples += list(np.load(path))
    whole = Katz.fit(samples, student.config.vocab_size, ORDER)
    pruned = whole.pruned(BYTES)
    pruned.save(folder / "katz.npz")
    print(f"{pruned.ngrams:,} of {whole.ngrams:,} n-grams are kept")


def sample(
    student: LlamaForCausalLM,
    head: Sequence[int],
    conversations: Sequence[Conversation],
    tokens: int,
    *,
    seed: int,
) -> Iterator[np.ndarray]:
    """At least `tokens` sampled tokens as arrays of LENGTH, each the continuation of a random place
    in an answer.
    """
    random, generator = Random(seed), torch.Generator().manual_seed(seed)
    ids, drawn = torch.tensor(head), torch.zeros(ROWS, dtype=torch.bool)
    for _ in tqdm(range(0, tokens, ROWS * LENGTH), "samples"):
        given = []
        for _ in range(ROWS):  # from 16 tokens that end at a random place of an answer
            one = random.choice(conversations)
            end = max(GIVEN, one.start + random.randrange(one.answer_tokens))
            given.append(one.ids[end - GIVEN : end])
        texts = list(torch.tensor(given).T)  # a column per position
        passes = BatchedPasses(student, ROWS, GIVEN + LENGTH, head=head)
        for position in range(GIVEN + LENGTH - 1):
            logits = passes.logits(texts[position], torch.full((ROWS,), position))
            if position >= GIVEN - 1:
                texts.append(ids[draw(logits, TEMPERATURE, generator, greedy=drawn)])
        yield from torch.stack(texts[GIVEN:], dim=1).numpy().astype(np.uint16)
