"""`specdec distil teach`: stores the target's distribution after every token of stored answers,
which the drafts learn from.

A distribution is over the *head*: the token ids that a draft can propose. Of each, the TOP
likeliest tokens are kept; the rest of the probability is one more outcome. A file of lessons
covers LESSONS_PER_FILE conversations, so an interrupted run goes on where it stopped.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, tensor_file, write_whole
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.suite.distil.text import TEXT, Conversation, answer_tokens, read_text
from specdec_lib.suite.setup import load_target

HEAD_TOKENS = 8192  # ids that a draft proposes
HEAD = "head.json"
TOP = 32
LESSONS_PER_FILE = 512
BATCH_TOKENS = 4096


class Lesson(NamedTuple):
    """A conversation with the target's distribution before each token of its answer.

    places       the likeliest tokens, as places in the head
    log_probs    theirs, among the tokens of the head
    """

    conversation: Conversation
    places: Int[Tensor, "answer top"]
    log_probs: Float[Tensor, "answer top"]


def add_sources(parser: Parser) -> None:
    """Add the options that name the folders of shards and of lessons."""
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_argument("--lessons", type=Path, default=cache_folder() / "lessons")


def main(arguments: Sequence[str] | None = None) -> None:
    """Store the target's distributions over every conversation that has none yet."""
    parser = Parser("distil teach", "store the target's distributions over the stored answers")
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_common("--out", cache_folder() / "lessons")
    given = parser.parse_args(arguments)
    conversations, target = read_text(given.text), load_target()
    if not (given.out / HEAD).is_file():
        stop = target.generation_config.eos_token_id
        head = frequent_tokens(conversations, HEAD_TOKENS, [stop])
        write_whole(given.out / HEAD, json.dumps(head).encode())
    teach(target, conversations, read_head(given.out), given.out)


def read_head(folder: Path) -> list[int]:
    """The token ids that lessons are about.  Raises ValueError if the folder has no lessons."""
    file = folder / HEAD
    if not file.is_file():
        raise ValueError(f"there are no lessons in {folder}; `specdec distil teach` makes them")
    return json.loads(file.read_text(encoding="utf-8"))


def frequent_tokens(
    conversations: Iterable[Conversation], size: int, always: Iterable[int] = ()
) -> list[int]:
    """The `size` most frequent tokens of the answers in order of id, `always` among them."""
    counts = Counter(token for one in conversations for token in one.ids[one.start :])
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return sorted([*dict.fromkeys([*always, *ranked])][:size])


def teach(
    target: LlamaForCausalLM,
    conversations: Sequence[Conversation],
    head: Sequence[int],
    folder: Path,
) -> None:
    """Write the lessons of `conversations` into a folder; files that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    network = target.model.to(fastest_dtype()).eval()
    rows = target.lm_head.weight.detach()[list(head)].to(network.dtype)
    total = answer_tokens(conversations)
    with tqdm(total=total, unit="token", mininterval=5, desc="lessons") as bar:
        for path, group, digest in _files(conversations, head, folder):
            if _digest_of(path) != digest:
                _, places, log_probs = zip(*_lessons(network, rows, group, bar), strict=True)
                columns = {"places": torch.cat(places), "log_probs": torch.cat(log_probs)}
                write_whole(path, save(columns, {"digest": digest}))
            else:
                bar.update(answer_tokens(group))


def read_lessons(
    conversations: Sequence[Conversation], head: Sequence[int], folder: Path
) -> list[Lesson]:
    """The lessons of `conversations` that `teach` wrote.

    Raises ValueError if some are missing, or are those of other texts or another head.
    """
    found = []
    for path, group, digest in _files(conversations, head, folder):
        if _digest_of(path) != digest:
            raise ValueError(
                f"{path} is missing, or holds lessons of other conversations or another head;"
                " `specdec distil teach` makes it"
            )
        sizes = [one.answer_tokens for one in group]
        with tensor_file(path) as file:
            columns = (file.get_tensor(name).split(sizes) for name in ("places", "log_probs"))
            found += map(Lesson, group, *columns)
    return found


@torch.inference_mode()
def _lessons(
    network: torch.nn.Module, rows: Tensor, group: Sequence[Conversation], bar: tqdm
) -> list[Lesson]:
    """The lessons of a group in its order, computed in batches of similar length."""
    order = sorted(range(len(group)), key=lambda number: len(group[number].ids))
    found: dict[int, Lesson] = {}
    while order:
        longest = len(group[order[-1]].ids)
        batch = [order.pop() for _ in range(min(len(order), max(1, BATCH_TOKENS // longest)))]
        hidden = network(pad([group[number].ids for number in batch]), use_cache=False)[0]
        for row, number in enumerate(batch):
            one = group[number]
            before = hidden[row, one.start - 1 : len(one.ids) - 1]  # what predicts the answer
            best = (before @ rows.T).float().log_softmax(dim=-1).topk(min(TOP, len(rows)))
            places = best.indices.to(torch.int32).to(torch.uint16)
            found[number] = Lesson(one, places, best.values.half())
            bar.update(one.answer_tokens)
    return [found[number] for number in range(len(group))]


def _files(
    conversations: Sequence[Conversation], head: Sequence[int], folder: Path
) -> Iterator[tuple[Path, Sequence[Conversation], str]]:
    """The path of each file of lessons, its conversations, and a digest of what it follows from:
    the texts, where their answers begin, the head.
    """
    for number, first in enumerate(range(0, len(conversations), LESSONS_PER_FILE)):
        group = conversations[first : first + LESSONS_PER_FILE]
        shown = repr((TOP, list(head), [(list(one.ids), one.start) for one in group]))
        digest = hashlib.sha256(shown.encode()).hexdigest()
        yield folder / f"{number:03}.safetensors", group, digest


def pad(sequences: Sequence[Sequence[int]]) -> Int[Tensor, "sequences longest"]:
    """Token ids as one tensor, shorter ones filled with 0 at their end."""
    tensors = [torch.tensor(sequence) for sequence in sequences]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


def _digest_of(path: Path) -> str | None:
    """The digest that a file of lessons was written with; None if there is no file."""
    if not path.is_file():
        return None
    with tensor_file(path) as file:
        return (file.metadata() or {}).get("digest")
