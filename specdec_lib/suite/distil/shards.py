"""Text that the target wrote, as shards of token ids.

A shard is one safetensors file: `ids` of all its conversations one after the other (of 16 bits, or
of 32 where a vocabulary needs them), `ends` (where each stops), `kind` (an index into KINDS),
`greedy`, `done` (it ended by itself), and `answers`: a row (conversation, first, end) per answer,
counted from the conversation's own first token. Older shards have `starts` (of the one answer) in
its place and `domain` instead of `kind`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import torch
from safetensors.torch import save

from specdec_lib.core.files import tensor_file, write_whole
from specdec_lib.suite.distil.requests import KINDS

SHARD_ANSWER_TOKENS = 500_000
WRITE_SECONDS = 20  # between two writes of a shard that grows
SHORT_IDS = 2**16  # ids below it are stored in 16 bits


class Conversation(NamedTuple):
    """Requests and their answers as token ids, chat template included.

    ids        of all tokens, in order
    answers    per answer the place in `ids` of its first token, and the place after its last one
    greedy     whether the answers were greedy, else drawn at temperature 1
    done       whether the last answer ended by itself; else it was cut
    kind       what is asked for, one of `KINDS`
    """

    ids: tuple[int, ...]
    answers: tuple[tuple[int, int], ...]
    greedy: bool
    done: bool
    kind: str

    @property
    def start(self) -> int:
        """Where the first answer begins."""
        return self.answers[0][0]

    @property
    def answer_tokens(self) -> int:
        """The tokens of all answers."""
        return sum(end - first for first, end in self.answers)


def list_shards(folder: Path) -> list[Path]:
    """The paths of a folder's shards in order."""
    return sorted(folder.glob("*.safetensors"))


def read_text(folder: Path) -> list[Conversation]:
    """All conversations of a folder's shards.  Raises ValueError if there is no shard."""
    shards = list_shards(folder)
    if not shards:
        raise ValueError(f"there is no shard NNN.safetensors in {folder}")
    return [one for shard in shards for one in read_shard(shard)]


def stored(folder: Path, conversations: Iterable[Conversation]) -> Iterator[Conversation]:
    """The conversations, each handed on as it comes.

    A shard that grows is written whole every WRITE_SECONDS, when it is full, and at the end or on
    an error, so a run that is killed loses what came since; the next run begins another shard.
    """
    numbers = [int(path.stem) for path in list_shards(folder) if path.stem.isdecimal()]
    number = max(numbers, default=-1) + 1
    growing: list[Conversation] = []
    tokens = 0
    written = monotonic()
    try:
        for one in conversations:
            growing.append(one)
            tokens += one.answer_tokens
            if tokens >= SHARD_ANSWER_TOKENS:
                _write(folder, number, growing)
                number = number + 1
                growing = []
                tokens = 0
            elif monotonic() - written >= WRITE_SECONDS:
                _write(folder, number, growing)
                written = monotonic()
            yield one
    finally:
        if growing:
            _write(folder, number, growing)


def _write(folder: Path, number: int, conversations: Sequence[Conversation]) -> None:
    write_whole(folder / f"{number:03}.safetensors", pack(conversations))


def pack(conversations: Sequence[Conversation]) -> bytes:
    """Conversations as the content of a shard."""
    ids = [token for one in conversations for token in one.ids]
    short = max(ids) < SHORT_IDS
    answers = [(number, *span) for number, one in enumerate(conversations) for span in one.answers]
    kinds = [KINDS.index(one.kind) for one in conversations]
    columns = {
        "ids": torch.tensor(ids, dtype=torch.uint16 if short else torch.int32),
        "ends": torch.tensor([*accumulate(len(one.ids) for one in conversations)]).int(),
        "answers": torch.tensor(answers, dtype=torch.int32),
        "greedy": torch.tensor([one.greedy for one in conversations]),
        "done": torch.tensor([one.done for one in conversations]),
        "kind": torch.tensor(kinds, dtype=torch.uint8),
    }
    return save(columns)


def read_shard(path: Path) -> Iterator[Conversation]:
    """The conversations of a shard, in order.  Raises ValueError if it is damaged."""
    with tensor_file(path) as file:
        shard = {name: file.get_tensor(name).tolist() for name in file.keys()}
    bounds = list(pairwise([0, *shard["ends"]]))
    spans: list[list[tuple[int, int]]] = [[] for _ in bounds]
    if "answers" in shard:
        for number, first, end in shard["answers"]:
            spans[number].append((first, end))
    else:
        for number, ((first, end), start) in enumerate(zip(bounds, shard["starts"], strict=True)):
            spans[number].append((start, end - first))
    kinds = shard["kind"] if "kind" in shard else shard["domain"]
    columns = zip(bounds, spans, shard["greedy"], shard["done"], kinds, strict=True)
    for (first, end), answers, greedy, done, kind in columns:
        ids = tuple(shard["ids"][first:end])
        yield Conversation(ids, tuple(answers), greedy, done, KINDS[kind])
