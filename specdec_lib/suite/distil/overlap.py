"""`specdec distil overlap`: looks for word sequences of prompts in the text that drafts learn from,
so that what is measured on those prompts is not learnt by heart.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerFast

from specdec_lib.models.hub import load_tokenizer
from specdec_lib.suite.distil.passages import Piece, read_pieces
from specdec_lib.suite.distil.shards import Conversation, read_text
from specdec_lib.suite.setup import prepare_target
from specdec_lib.workload import load_prompts

WORDS = 8  # of a sequence; case and signs do not count
COMMON = 3  # packages that have a sequence which anybody could have written


def print_overlap(text: Path, prompts: Sequence[Path], passages: Path) -> int:
    """Print what a folder of shards shares with prompt files; 1 if a sequence is not a common one,
    else 0.
    """
    asked = [prompt.text for path in prompts for prompt in load_prompts(path)]
    tokenizer = load_tokenizer(prepare_target())
    found = shared_sequences(read_text(text), tokenizer, asked)
    common = packages_with(found, read_pieces(passages))
    for sequence, times in found.most_common():
        print(f"{times:5} times, in {common[sequence]} packages: {sequence}")
    rare = [sequence for sequence in found if common[sequence] < COMMON]
    print(f"{len(found)} sequences are shared, {len(rare)} of them by fewer than {COMMON} packages")
    return int(bool(rare))


def sequences(text: str) -> Iterator[str]:
    """All sequences of WORDS words of a text, in lower case."""
    words = re.findall(r"\w+", text.lower())
    for first in range(len(words) - WORDS + 1):
        yield " ".join(words[first : first + WORDS])


def shared_sequences(
    conversations: Iterable[Conversation],
    tokenizer: PreTrainedTokenizerFast,
    prompts: Iterable[str],
) -> Counter:
    """How often each sequence of a prompt stands in the conversations."""
    asked = {one for prompt in prompts for one in sequences(prompt)}
    found: Counter = Counter()
    for one in tqdm(conversations, "conversations"):
        text = str(tokenizer.decode([*one.ids], skip_special_tokens=True))
        found.update(sequence for sequence in sequences(text) if sequence in asked)
    return found


def packages_with(wanted: Iterable[str], pieces: Iterable[Piece]) -> Counter:
    """How many packages have each of some sequences in their pieces."""
    looked_for = set(wanted)
    having = defaultdict(set)
    for piece in pieces:
        for sequence in sequences(piece.text):
            if sequence in looked_for:
                having[sequence].add(piece.package)
    return Counter({sequence: len(packages) for sequence, packages in having.items()})
