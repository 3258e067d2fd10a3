"""The prompt sets, and a seed per prompt."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_lib.workload.files import DATA, REMEDY

DOMAINS = ("code", "math", "prose")
DOCSTRING = "docstring"  # the encoder-decoder pair's
SPLITS = ("development", "held-out")


@dataclass(frozen=True)
class Prompt:
    """One prompt: its text, and where it comes from."""

    name: str
    text: str
    domain: str
    split: str
    origin: str


def load_prompts(domain: str = "code", split: str = "held-out", limit: int | None = None, *, folder: Path = DATA / "prompts") -> list[Prompt]:
    """The prompts of one domain and split ("development" or "held-out"), in a fixed order.

    domain    "code", "math", "prose"; "docstring" for the encoder-decoder pair
    limit     the first so many; None is all

    Raises ValueError if there is no such set or split, the limit is below 1, or the file is damaged.
    """
    path = folder / f"{domain}.jsonl"
    known = (*DOMAINS, DOCSTRING)
    if domain not in known or split not in SPLITS:
        raise ValueError(f"prompt sets are {', '.join(known)} and splits {', '.join(SPLITS)}; got {domain!r} and {split!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"a limit is at least 1 or None for all, got {limit}")
    if not path.is_file():
        raise ValueError(f"prompt file {path} is missing; {REMEDY}")
    try:
        prompts = [Prompt(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise ValueError(f"prompt file {path} is damaged ({error}); {REMEDY}") from error
    if not prompts or not all(isinstance(prompt.text, str) and prompt.domain == domain and prompt.split in SPLITS for prompt in prompts):
        raise ValueError(f"prompt file {path} is damaged (it holds {len(prompts)} prompts, or one of another set); {REMEDY}")
    return [prompt for prompt in prompts if prompt.split == split][:limit]


def seeds(prompts: Sequence[Prompt], seed: int) -> list[int]:
    """A seed per prompt that follows from its name and `seed`: prompts never share noise, whatever is run beside them."""
    return [int.from_bytes(hashlib.sha256(f"{seed}/{prompt.name}".encode()).digest()[:7], "big") for prompt in prompts]
