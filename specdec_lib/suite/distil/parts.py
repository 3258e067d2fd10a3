"""Text written into shards until there is enough of it, here or in parts on the workers of a Dask
client.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from specdec_lib.core.files import file_digest
from specdec_lib.core.locking import only_process
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.target_text import every_domain
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.suite.distil.passages import Piece
from specdec_lib.suite.distil.shards import Conversation, list_shards, read_text, stored
from specdec_lib.suite.distil.writing import (
    LONG_POSITIONS,
    SEQUENCES,
    SHORT_POSITIONS,
    Writer,
    given_pieces,
    own_articles,
    plain,
    planned,
)
from specdec_lib.suite.setup import load_target, prepare_target

PART = 50_000  # answer tokens that a worker writes at a time


def write_conversations(
    out: Path,
    passages: Path,
    kinds: str,
    *,
    answer_tokens: int,
    sequences: int = SEQUENCES,
    device: str = "cpu",
    cluster: Cluster | None = None,
) -> int:
    """Write conversations into a folder's shards until there are enough answer tokens; earlier ones
    count. Those whose request is one of the embedded prompts are left out. Returns how many answer
    tokens the folder has.

    passages    the file of pieces that requests are about, on every worker too
    cluster     the workers of a Dask client, which write `PART` answer tokens at a time, each part
                with a seed of its own
    """
    pieces = given_pieces(passages, kinds)
    with only_process(out):
        found = read_text(out) if list_shards(out) else []
        bar = tqdm(total=answer_tokens, unit="token", mininterval=5)
        bar.update(sum(one.answer_tokens for one in found))
        if bar.n < bar.total:
            tokenizer = load_tokenizer(prepare_target())
            articles = own_articles(found, tokenizer) if kinds == "long" else []
            how = WritingPlan(kinds, sequences, device, articles)
            seed = 1000 + len(found)
            if cluster is None:
                written = _fresh(how, pieces, seed)
            else:
                parts = -(-(bar.total - bar.n) // PART)
                written = _from_workers(how, passages, range(seed, seed + parts), cluster)
            for one in stored(out, written):
                bar.update(one.answer_tokens)
                if bar.n >= bar.total:
                    break
    return bar.n


@dataclass(frozen=True)
class WritingPlan:
    """How conversations are written.

    kinds        "short", "long" or "kept-out"
    sequences    conversations at a time
    device       "cpu" or "cuda"
    articles     the target's own, which are passages too
    """

    kinds: str
    sequences: int
    device: str
    articles: list[str]


def _fresh(how: WritingPlan, pieces: Sequence[Piece], seed: int) -> Iterator[Conversation]:
    """Conversations without end, none of whose requests is an embedded prompt."""
    target = load_target(how.device)
    tokenizer = load_tokenizer(prepare_target())
    requests = planned(pieces, how.kinds, seed, how.articles)
    positions = SHORT_POSITIONS if how.kinds == "short" else LONG_POSITIONS
    writer = Writer(target, tokenizer, requests, how.sequences, positions)
    asked = {plain(one.text) for one in every_domain("all")}
    return (one for one in writer.write() if plain(writer.request(one)) not in asked)


def _from_workers(
    how: WritingPlan, passages: Path, seeds: Iterable[int], cluster: Cluster
) -> Iterator[Conversation]:
    """The conversations of parts that workers write, as many parts at a time as there are workers;
    what is finished is stored before the next parts begin.
    """
    digest = file_digest(passages) if passages.is_file() else ""
    arguments = {"how": how, "passages": passages, "digest": digest}
    workers = max(1, len(cluster.client.scheduler_info(n_workers=-1)["workers"]))
    waiting = [*seeds]
    for first in range(0, len(waiting), workers):
        items = [(str(seed), seed) for seed in waiting[first : first + workers]]
        rows = spread_rows(
            conversation_rows,
            items,
            None,
            arguments,
            RowCache(None),
            cluster=cluster,
            label="parts",
        )
        for row in rows:
            yield Conversation(**row)


def conversation_rows(
    _: object, seed: int, *, how: WritingPlan, passages: Path, digest: str
) -> list[Row]:
    """On a worker: a row per conversation, `PART` answer tokens in all.  Raises ValueError if its
    file of pieces is another one.
    """
    own = file_digest(passages) if passages.is_file() else ""
    if own != digest:
        raise ValueError(f"{passages} of a worker is not the file of this machine: copy it there")
    found: list[Row] = []
    tokens = 0
    for one in _fresh(how, given_pieces(passages, how.kinds), seed):
        found.append(one._asdict())
        tokens += one.answer_tokens
        if tokens >= PART:
            break
    return found
