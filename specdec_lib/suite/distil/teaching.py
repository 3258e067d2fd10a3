"""`specdec distil teach`: stores the target's distributions over the stored answers, once.

An interrupted run goes on where it stopped.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.suite.distil.command import TEXT
from specdec_lib.suite.distil.text import Conversation, list_shards, read_shard
from specdec_lib.suite.setup import prepare_target

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

HEAD_TOKENS = 8192  # ids that a draft proposes
HEAD = "head.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Store the target's distributions over every conversation that has none yet."""
    parser = Parser("distil teach", __doc__.partition(": ")[2])
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_common("--out", cache_folder() / "lessons")
    given = parser.parse_args(arguments)
    from specdec_lib.suite.distil.lessons import frequent_tokens, teach

    conversations, target = read_text(given.text), load_target()
    stops = target.generation_config.eos_token_id
    always = [stops] if isinstance(stops, int) else stops
    given.out.mkdir(parents=True, exist_ok=True)
    head_file = given.out / HEAD
    if not head_file.is_file():
        head = frequent_tokens(conversations, HEAD_TOKENS, always)
        write_whole(head_file, json.dumps(head).encode())
    teach(target, conversations, read_head(given.out), given.out)


def read_text(folder: Path) -> list[Conversation]:
    """All conversations of a folder's shards.  Raises ValueError if there is no shard."""
    shards = list_shards(folder)
    if not shards:
        raise ValueError(f"there is no shard NNN.safetensors in {folder}")
    return [one for shard in shards for one in read_shard(shard)]


def read_head(folder: Path) -> list[int]:
    """The token ids that lessons are about.  Raises ValueError if the folder has no lessons."""
    file = folder / HEAD
    if not file.is_file():
        raise ValueError(f"there are no lessons in {folder}; `specdec distil teach` makes them")
    return json.loads(file.read_text(encoding="utf-8"))


def load_target() -> "LlamaForCausalLM":
    """The target in float32, as `specdec setup` prepares it.  Raises ValueError if its files are
    damaged.
    """
    from specdec_lib.models.loading import load_model

    return load_model(prepare_target(), "target", device="cpu").model
