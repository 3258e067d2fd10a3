"""`specdec distil describe`: counts the conversations that the target has written, by domain."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.distil.command import TEXT
from specdec_lib.suite.distil.text import Conversation, list_shards, read_shard

if TYPE_CHECKING:
    from pandas import DataFrame


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Parser("distil describe", __doc__.partition(": ")[2])
    parser.add_argument("folder", nargs="?", type=Path, default=TEXT, help="where the shards are")
    folder = parser.parse_args(arguments).folder
    shards = list_shards(folder)
    if not shards:
        raise ValueError(f"there is no shard NNN.safetensors in {folder}")
    print(describe(chain.from_iterable(map(read_shard, shards))).round(3).to_string())


def describe(conversations: Iterable[Conversation]) -> "DataFrame":
    """Conversations, answer tokens, and the shares of greedy answers and of those that ended.

    A row per domain ("unknown" where a shard does not say it), and one of all.
    """
    import pandas as pd

    rows = [
        (one.domain or "unknown", 1, one.answer_tokens, one.greedy, one.done)
        for one in conversations
    ]
    columns = ["domain", "conversations", "answer_tokens", "greedy", "ended"]
    table = pd.DataFrame(rows, columns=columns)
    every = pd.concat([table, table.assign(domain="all")])
    ways = {"conversations": "sum", "answer_tokens": "sum", "greedy": "mean", "ended": "mean"}
    return every.groupby("domain").agg(ways)
