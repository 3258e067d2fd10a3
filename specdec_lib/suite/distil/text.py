"""Conversations as token ids on disk: shards of 16-bit ids, and the pending ones beside them.

A shard is one safetensors file: `ids` of all its conversations one after the other, `ends` (where
each stops), `starts` (where its answer begins, counted from its own first token), `greedy`, `done`
(it ended by itself) and `domain` (an index into DOMAINS; 255 where it is not known).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from safetensors.torch import load_file, save

from specdec_lib.core.files import DATA, write_whole
from specdec_lib.suite.distil.requests import DOMAINS

TEXT = DATA / "text"
SHARD_ANSWER_TOKENS = 500_000
UNKNOWN = 255


class Conversation(NamedTuple):
    """A request and its answer as token ids, chat template included."""

    ids: tuple[int, ...]
    start: int  # where the answer begins
    greedy: bool  # whether the answer was greedy, else drawn at temperature 1
    done: bool  # whether it ended by itself
    domain: str | None

    @property
    def answer_tokens(self) -> int:
        """The length of the answer."""
        return len(self.ids) - self.start


class TextStore:
    """The shards in a folder, and the pending conversations that do not fill one yet.

    Pending ones are appended to a file of JSON lines, so a run that is killed loses at most the
    conversation that was being written.
    """

    def __init__(self, folder: Path, pending: Path) -> None:
        self.folder, self.pending = folder, pending
        folder.mkdir(parents=True, exist_ok=True)
        pending.parent.mkdir(parents=True, exist_ok=True)
        self.waiting = list(_read_lines(pending))
        _write_lines(pending, self.waiting)  # without a last line that was cut
        self.answer_tokens = sum(one.answer_tokens for one in self)

    def __iter__(self) -> Iterator[Conversation]:
        for path in list_shards(self.folder):
            yield from read_shard(path)
        yield from self.waiting

    def add(self, conversation: Conversation) -> None:
        """Keep a conversation; the pending ones become a shard once they are enough."""
        self.waiting.append(conversation)
        self.answer_tokens += conversation.answer_tokens
        with self.pending.open("a", encoding="utf-8") as file:
            file.write(json.dumps(conversation) + "\n")
        if sum(one.answer_tokens for one in self.waiting) >= SHARD_ANSWER_TOKENS:
            self.flush()

    def flush(self) -> None:
        """Write what is pending as one more shard."""
        if self.waiting:
            shard = self.folder / f"{len(list_shards(self.folder)):03}.safetensors"
            write_whole(shard, pack(self.waiting))
            self.waiting = []
            _write_lines(self.pending, [])


def list_shards(folder: Path) -> list[Path]:
    """The paths of a folder's shards in order."""
    return sorted(folder.glob("*.safetensors"))


def read_text(folder: Path) -> list[Conversation]:
    """All conversations of a folder's shards.  Raises ValueError if there is no shard."""
    shards = list_shards(folder)
    if not shards:
        raise ValueError(f"there is no shard NNN.safetensors in {folder}")
    return [one for shard in shards for one in read_shard(shard)]


def count_text(conversations: Iterable[Conversation]) -> pd.DataFrame:
    """Conversations, answer tokens, and the shares of greedy answers and of those that ended.

    A row per domain ("unknown" where a shard does not say it), and one of all.
    """
    table = pd.DataFrame(
        {
            "domain": one.domain or "unknown",
            "conversations": 1,
            "answer_tokens": one.answer_tokens,
            "greedy": one.greedy,
            "ended": one.done,
        }
        for one in conversations
    )
    ways = {"conversations": "sum", "answer_tokens": "sum", "greedy": "mean", "ended": "mean"}
    return pd.concat([table, table.assign(domain="all")]).groupby("domain").agg(ways)


def pack(conversations: Sequence[Conversation]) -> bytes:
    """Conversations as the content of a shard.

    Raises ValueError if a token id needs more than 16 bits.
    """
    ids = torch.tensor([token for one in conversations for token in one.ids], dtype=torch.int32)
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < 1 << 16:
        raise ValueError(
            f"a shard holds token ids of 16 bits, got {int(ids.min())} to {int(ids.max())}"
        )
    domains = [DOMAINS.index(one.domain) if one.domain else UNKNOWN for one in conversations]
    columns = {  # values, and their type
        "ends": (accumulate(len(one.ids) for one in conversations), torch.int32),
        "starts": ((one.start for one in conversations), torch.int16),
        "greedy": ((one.greedy for one in conversations), torch.bool),
        "done": ((one.done for one in conversations), torch.bool),
        "domain": (domains, torch.uint8),
    }
    made = {name: torch.tensor([*one], dtype=kind) for name, (one, kind) in columns.items()}
    return save({"ids": ids.to(torch.uint16)} | made)


def read_shard(path: Path) -> Iterator[Conversation]:
    """The conversations of a shard, in order."""
    shard = {name: column.tolist() for name, column in load_file(path).items()}
    first = 0
    columns = (shard[name] for name in ("ends", "starts", "greedy", "done", "domain"))
    for end, start, greedy, done, domain in zip(*columns, strict=True):
        known = None if domain == UNKNOWN else DOMAINS[domain]
        yield Conversation(tuple(shard["ids"][first:end]), start, greedy, done, known)
        first = end


def _read_lines(path: Path) -> Iterator[Conversation]:
    """The conversations of a pending file, up to a last line that was cut off."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            ids, start, greedy, done, domain = json.loads(line)
        except ValueError:
            return
        yield Conversation(tuple(ids), start, greedy, done, domain)


def _write_lines(path: Path, conversations: Sequence[Conversation]) -> None:
    write_whole(path, "".join(json.dumps(one) + "\n" for one in conversations).encode())
