"""The target's distribution after every token of stored answers, which the drafts learn from.

A distribution is over the *head*: the token ids that a draft can propose. Of each, the TOP
likeliest tokens are kept; the rest of the probability is one more outcome. A file of lessons
covers LESSONS_PER_FILE conversations, so an interrupted run goes on where it stopped.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.files import cache_folder, tensor_file, write_whole
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.fingerprints import short_digest
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.network_passes import head_logits
from specdec_lib.suite.distil.shards import Conversation, read_text
from specdec_lib.suite.setup import load_target

HEAD_TOKENS = 8192  # ids that a draft proposes
HEAD = "head.json"
TOP = 32
LESSONS_PER_FILE = 512
SENT = 16  # files of lessons that are in memory at a time where workers make them


class Lesson(NamedTuple):
    """A conversation with the target's distribution before each token of its answers.

    places       the likeliest tokens, the best one first, as places in the head
    log_probs    their log-probabilities in nats, among the tokens of the head
    """

    conversation: Conversation
    places: Int[Tensor, "answer top"]
    log_probs: Float[Tensor, "answer top"]


def store_lessons(text: Path, cluster: Cluster | None = None) -> None:
    """Store the target's distributions over every conversation of a folder that has none yet, as
    this machine or the workers of a Dask client compute them.
    """
    conversations = read_text(text)
    folder = cache_folder() / "lessons"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / HEAD).is_file():
        stop = load_target().generation_config.eos_token_id
        head = frequent_tokens(conversations, HEAD_TOKENS, stop)
        write_whole(folder / HEAD, json.dumps(head).encode())
    teach(conversations, read_head(folder), folder, cluster)


def read_head(folder: Path) -> list[int]:
    """The token ids that lessons are about.  Raises ValueError if the folder has no lessons."""
    if not (folder / HEAD).is_file():
        raise ValueError(f"there are no lessons in {folder}; `specdec distil teach` makes them")
    return json.loads((folder / HEAD).read_text(encoding="utf-8"))


def frequent_tokens(conversations: Iterable[Conversation], size: int, stop: int) -> list[int]:
    """The `size` most frequent tokens of the answers in order of id, the stop token among them."""
    counts = Counter(
        token for one in conversations for first, end in one.answers for token in one.ids[first:end]
    )
    ranked = sorted({stop, *counts}, key=lambda token: (token != stop, -counts[token], token))
    return sorted(ranked[:size])


def teach(
    conversations: Sequence[Conversation],
    head: Sequence[int],
    folder: Path,
    cluster: Cluster | None = None,
    target: PreTrainedModel | None = None,
) -> None:
    """Write the lessons of `conversations` into a folder; files that are there are kept.

    target    another teacher than the prepared target, which every worker loads itself
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [
        (path, its) for path, its in _files(conversations, head, folder) if not path.is_file()
    ]
    if cluster is None:
        body = _teaching(target or load_target())
        for path, group in tqdm(missing, "lessons"):
            write_whole(path, lessons_of(body, group, head))
        return
    for first in range(0, len(missing), SENT):
        some = missing[first : first + SENT]
        items = [(path.name, group) for path, group in some]
        rows = spread_rows(
            lesson_rows,
            items,
            None,
            {"head": head},
            RowCache(None),
            cluster=cluster,
            label="lessons",
        )
        for (path, _), row in zip(some, rows, strict=True):
            write_whole(path, row["content"])


def lesson_rows(_: object, group: Sequence[Conversation], *, head: Sequence[int]) -> list[Row]:
    """On a worker: a row with the content of one file of lessons."""
    return [{"content": lessons_of(_own_teacher(), group, head)}]


@functools.lru_cache(maxsize=1)
def _own_teacher() -> PreTrainedModel:
    return _teaching(load_target())


def _teaching(target: PreTrainedModel) -> PreTrainedModel:
    """The target in this machine's fastest precision, its body in place."""
    body: Any = target.get_decoder()
    body.to(fastest_dtype()).eval()
    return target


@torch.inference_mode()
def lessons_of(
    target: PreTrainedModel, group: Sequence[Conversation], head: Sequence[int]
) -> bytes:
    """The content of a file of lessons over some conversations."""
    body: Any = target.get_decoder()
    output: Any = target.get_output_embeddings()
    rows = output.weight.detach()[list(head)].to(body.dtype)
    hidden = (before_answers(body, [one])[0] for one in group)  # one by one: nothing is padded
    logits = (head_logits(target, before, rows).float() for before in hidden)
    best = [row.log_softmax(dim=-1).topk(min(TOP, len(rows))) for row in logits]
    log_probs, places = map(torch.cat, zip(*best, strict=True))
    columns = {"places": places.to(torch.int32).to(torch.uint16), "log_probs": log_probs.half()}
    return save(columns)


def read_lessons(
    conversations: Sequence[Conversation], head: Sequence[int], folder: Path
) -> list[Lesson]:
    """The lessons of `conversations` that `teach` wrote; raises ValueError if some are missing."""
    found = []
    for path, group in _files(conversations, head, folder):
        if not path.is_file():
            raise ValueError(f"no lessons of this text and head; `distil teach` makes {path}")
        sizes = [one.answer_tokens for one in group]
        with tensor_file(path) as file:
            columns = (file.get_tensor(name).split(sizes) for name in ("places", "log_probs"))
            found += map(Lesson, group, *columns)
    return found


def before_answers(
    body: torch.nn.Module, conversations: Sequence[Conversation]
) -> list[Float[Tensor, "answer width"]]:
    """What a head would read before every answer token, per conversation."""
    ids = pad_sequence([torch.tensor(one.ids) for one in conversations], batch_first=True)
    pairs = zip(body(ids, use_cache=False)[0], conversations, strict=True)
    return [
        torch.cat([hidden[first - 1 : end - 1] for first, end in one.answers])
        for hidden, one in pairs
    ]


def _files(
    conversations: Sequence[Conversation], head: Sequence[int], folder: Path
) -> Iterator[tuple[Path, Sequence[Conversation]]]:
    """The conversations of each file of lessons, whose name is a digest of what it follows from."""
    for first in range(0, len(conversations), LESSONS_PER_FILE):
        group = conversations[first : first + LESSONS_PER_FILE]
        shown = repr((TOP, list(head), [(list(one.ids), one.answers) for one in group]))
        yield folder / f"{short_digest(shown)}.safetensors", group
