"""Conversations as token ids on disk, in shards of 16-bit ids.

A shard is one safetensors file: `ids` of all its conversations one after the other, `ends` (where
each stops), `starts` (where its answer begins, counted from its own first token), `greedy`, `done`
(it ended by itself) and `domain` (an index into DOMAINS).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, tensor_file, write_whole
from specdec_lib.workload import DOMAINS

TEXT = DATA / "text"
SHARD_ANSWER_TOKENS = 500_000


class Conversation(NamedTuple):
    """A request and its answer as token ids, chat template included."""

    ids: tuple[int, ...]
    start: int  # where the answer begins
    greedy: bool  # whether the answer was greedy, else drawn at temperature 1
    done: bool  # whether it ended by itself
    domain: str

    @property
    def answer_tokens(self) -> int:
        """The length of the answer."""
        return len(self.ids) - self.start


def add_text(parser: Parser) -> None:
    """Add the option that names the folder of shards."""
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")


def answer_tokens(conversations: Iterable[Conversation]) -> int:
    """How many tokens the answers have in all."""
    return sum(one.answer_tokens for one in conversations)


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
    """The conversations, each of which is in a shard of the folder before the next is asked for.

    A shard is written whole with each of them until it is full, so a run that is killed loses none;
    the next run begins another shard.
    """
    number, growing = len(list_shards(folder)), []
    for one in conversations:
        growing.append(one)
        write_whole(folder / f"{number:03}.safetensors", pack(growing))
        yield one
        if answer_tokens(growing) >= SHARD_ANSWER_TOKENS:
            number, growing = number + 1, []


def pack(conversations: Sequence[Conversation]) -> bytes:
    """Conversations as the content of a shard; torch refuses ids of more than 16 bits."""
    columns = {  # values, and their type
        "ids": ([token for one in conversations for token in one.ids], torch.uint16),
        "ends": ([*accumulate(len(one.ids) for one in conversations)], torch.int32),
        "starts": ([one.start for one in conversations], torch.int16),
        "greedy": ([one.greedy for one in conversations], torch.bool),
        "done": ([one.done for one in conversations], torch.bool),
        "domain": ([DOMAINS.index(one.domain) for one in conversations], torch.uint8),
    }
    return save({name: torch.tensor(one, dtype=kind) for name, (one, kind) in columns.items()})


def read_shard(path: Path) -> Iterator[Conversation]:
    """The conversations of a shard, in order."""
    with tensor_file(path) as file:
        shard = {name: file.get_tensor(name).tolist() for name in file.keys()}
    columns = (shard[name] for name in ("starts", "greedy", "done", "domain"))
    for (first, end), *known, domain in zip(pairwise([0, *shard["ends"]]), *columns, strict=True):
        yield Conversation(tuple(shard["ids"][first:end]), *known, DOMAINS[domain])
