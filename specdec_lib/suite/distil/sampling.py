"""`specdec distil ngrams`: counts the n-gram stage on samples of the draft itself, because it must
predict the draft and not the language.

Source: Spector and Ré 2023, section 3.2 (120 M tokens sampled from the draft at temperature 1.5).
An interrupted run goes on where it stopped.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from random import Random

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.continuing import extend
from specdec_lib.suite.distil.lessons import add_sources, read_head
from specdec_lib.suite.distil.text import Conversation, read_text
from specdec_lib.suite.setup import load_target

ORDER = 3
TEMPERATURE = 1.5
GIVEN = 16  # tokens of an answer that a sample starts from; they are not counted
LENGTH = 240
ROWS = 256
PIECE = 1_000_000  # tokens sampled with one seed, and kept in one file
BYTES = 3_000_000  # of the stored table


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample the draft, piece by piece, and store the table of what was counted."""
    parser = Parser("distil ngrams", "count n-grams on samples of a draft at temperature 1.5")
    parser.add_argument("draft", type=Path, help="the file that `specdec distil train` wrote")
    parser.add_argument("--pieces", type=int, default=4, help="millions of sampled tokens")
    add_sources(parser)
    parser.add_common("--out", cache_folder() / "drafts")
    given = parser.parse_args(arguments)
    target, head = load_target(), read_head(given.lessons)
    student, texts = assemble(target, given.draft), read_text(given.text)
    samples = []
    for seed in range(given.pieces):
        path = given.out / f"{given.draft.stem}-samples-{seed:03}.npy"
        if not path.is_file():
            stream = BytesIO()
            np.save(stream, np.stack(list(sample(student, head, texts, PIECE, seed=seed))))
            write_whole(path, stream.getvalue())
        samples += list(np.load(path))
    whole = Katz.fit(samples, student.config.vocab_size, ORDER)
    pruned = whole.pruned(BYTES)
    pruned.save(given.out / "katz.npz")
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
    drawn = torch.zeros(ROWS, dtype=torch.bool)
    with tqdm(total=tokens, desc="samples", unit="token", mininterval=5) as bar:
        for _ in range(0, tokens, ROWS * LENGTH):
            texts = [_opening(random.choice(conversations), random) for _ in range(ROWS)]
            options = {"greedy": drawn, "temperature": TEMPERATURE}
            longer = extend(student, texts, LENGTH, head, generator, **options)
            yield from np.array(longer, dtype=np.uint16)[:, GIVEN:]
            bar.update(ROWS * LENGTH)


def _opening(one: Conversation, random: Random) -> tuple[int, ...]:
    """GIVEN tokens that end at a random place of the answer."""
    end = max(GIVEN, one.start + random.randrange(one.answer_tokens))
    return one.ids[end - GIVEN : end]
