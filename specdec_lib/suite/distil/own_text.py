"""The text that a target of one's own writes, in parts, each with a seed of its own and whole."""

import functools
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.core.files import write_whole
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.models.loading import load_model
from specdec_lib.suite.distil.shards import Conversation, pack
from specdec_lib.suite.distil.writing import SHORT_POSITIONS, Writer, planned

PART = 50_000  # answer tokens of a part
SENT = 16  # parts that are in memory at a time where workers write them


@dataclass(frozen=True)
class OwnPlan:
    """How drafts of one's own target are made.

    answer_tokens    that the target writes to learn from
    looks            how often the training sees them
    batch_tokens     of a step of training, padding included
    sequences        texts that are written at a time
    sampled          tokens that the draft writes, on which n-grams are counted
    matched          development prompts of each domain, on which match tables are measured
    seed             of text and training
    """

    answer_tokens: int = 2_000_000
    looks: int = 3
    batch_tokens: int = 1024
    sequences: int = 64
    sampled: int = 1_000_000
    matched: int = 5
    seed: int = 0


def positions_of(network: PreTrainedModel) -> int:
    """The tokens that a written text has at most."""
    return min(SHORT_POSITIONS, int(network.config.max_position_embeddings))


def part_paths(folder: Path, plan: OwnPlan) -> list[Path]:
    """The shards of the text, one for each part."""
    return [
        folder / f"{number:03}.safetensors" for number in range(ceil(plan.answer_tokens / PART))
    ]


def part_tokens(plan: OwnPlan, number: int) -> int:
    """The answer tokens of a part."""
    return min(PART, plan.answer_tokens - number * PART)


def write_parts(
    folder: Path,
    source: str,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    plan: OwnPlan,
    device: str,
    cluster: Cluster | None,
) -> None:
    """Write the parts of the text that are missing, here or on workers, each whole."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [path for path in part_paths(folder, plan) if not path.is_file()]
    if cluster is None:
        for path in tqdm(missing, desc=f"parts of {PART:,} answer tokens"):
            written = written_part(network, tokenizer, plan, int(path.stem))
            write_whole(path, pack(written))
        return
    about = {"source": source, "plan": plan, "device": device}
    for first in range(0, len(missing), SENT):
        some = missing[first : first + SENT]
        rows = spread_rows(
            part_rows,
            [(path.stem, int(path.stem)) for path in some],
            None,
            about,
            RowCache(None),
            cluster=cluster,
            label="parts",
        )
        for path, row in zip(some, rows, strict=True):
            write_whole(path, row["content"])


def part_rows(_: object, number: int, *, source: str, plan: OwnPlan, device: str) -> list[Row]:
    """On a worker: a row with the content of one part."""
    network, tokenizer = _own_target(source, device)
    return [{"content": pack(written_part(network, tokenizer, plan, number))}]


@functools.lru_cache(maxsize=1)
def _own_target(source: str, device: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return load_model(source, "target", device=device).model, load_tokenizer(source)


def written_part(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, plan: OwnPlan, number: int
) -> list[Conversation]:
    """The conversations of one part: a share of the plan's answer tokens."""
    wanted = part_tokens(plan, number)
    requests = planned([], "short", 1000 * plan.seed + number)
    sequences = max(1, min(plan.sequences, wanted // 500))
    found = []
    tokens = 0
    bar = tqdm(total=wanted, unit="token", mininterval=5, desc=f"part {number}", leave=False)
    with bar:
        for one in Writer(network, tokenizer, requests, sequences, positions_of(network)).write():
            found.append(one)
            tokens += one.answer_tokens
            bar.update(one.answer_tokens)
            if tokens >= wanted:
                return found
    return found
