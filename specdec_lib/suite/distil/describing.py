"""`specdec distil describe`: counts the conversations that the target has written, by domain."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.distil.command import TEXT
from specdec_lib.suite.distil.teaching import read_text
from specdec_lib.suite.distil.text import Conversation

if TYPE_CHECKING:
    from pandas import DataFrame


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Parser("distil describe", __doc__.partition(": ")[2])
    parser.add_argument("folder", nargs="?", type=Path, default=TEXT, help="where the shards are")
    print(describe(read_text(parser.parse_args(arguments).folder)).round(3).to_string())


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
