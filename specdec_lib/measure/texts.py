"""The target's own texts, written once per prompt and sampler, many at a time, and kept as ids.

Under `look_up` a text does not depend on the draft: every method is counted by replay along it.
"""

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.workload import Ladder, Prompt, seeds

TEXTS = DATA / "measured" / "texts"
SEQUENCES = 64


@dataclass
class _Text:
    """A text that is being written: the prompt's tokens, then the target's."""

    number: int
    tokens: list[int]
    chance: Chance
    end: int
    fed: int = 0


def stored_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    folder: Path = TEXTS,
) -> list[tuple[int, ...]]:
    """What the target writes after each prompt, a stop token included; from the file that an
    earlier call left, or written now, which takes minutes.

    The file's name follows from the prompts and all that a text depends on.
    """
    about = {
        "target": ladder.card.get("target", ""),
        "sampler": asdict(sampler),
        "seed": seed,
        "max_new_tokens": max_new_tokens,
        "prompts": {one.name: hashlib.sha256(one.text.encode()).hexdigest() for one in prompts},
    }
    shown = json.dumps(about, sort_keys=True)
    path = folder / f"{hashlib.sha256(shown.encode()).hexdigest()[:16]}.safetensors"
    if not path.is_file():
        texts = write_texts(ladder, prompts, sampler, seed=seed, max_new_tokens=max_new_tokens)
        ids = torch.tensor([token for text in texts for token in text], dtype=torch.int32)
        ends = torch.tensor([*accumulate(map(len, texts))], dtype=torch.int32)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, save({"ids": ids.to(torch.uint16), "ends": ends}, {"about": shown}))
    with safe_open(path, "pt") as file:
        ids, ends = file.get_tensor("ids").tolist(), file.get_tensor("ends").tolist()
    return [tuple(ids[start:end]) for start, end in pairwise([0, *ends])]


def write_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    sequences: int = SEQUENCES,
) -> list[tuple[int, ...]]:
    """What the target writes after each prompt in float32, a stop token included.

    These are the tokens of plain decoding but for near-ties: sums are in another order here.
    """
    from tqdm.auto import tqdm

    given = [ladder.encode(prompt) for prompt in prompts]
    chances = [Chance(one, sampler) for one in seeds(prompts, seed)]
    waiting = deque(
        _Text(number, list(tokens), chance, len(tokens) + max_new_tokens)
        for number, (tokens, chance) in enumerate(zip(given, chances, strict=True))
    )
    found: list[tuple[int, ...]] = [()] * len(prompts)
    rows = min(sequences, len(prompts))
    active = {row: waiting.popleft() for row in range(rows)}
    positions = max(map(len, given)) + max_new_tokens
    passes = BatchedPasses(ladder.target.model, rows, positions, dtype=torch.float32)
    with tqdm(total=len(prompts), desc=f"texts at T={sampler.temperature:g}", mininterval=5) as bar:
        while active:
            for row in _advance(active, passes, rows, ladder.stop_tokens):
                done = active.pop(row)
                found[done.number] = tuple(done.tokens[len(given[done.number]) :])
                bar.update()
                if waiting:
                    active[row] = waiting.popleft()
    return found


def _advance(
    active: dict[int, _Text], passes: BatchedPasses, rows: int, stop_tokens: Sequence[int]
) -> list[int]:
    """One pass; the rows whose texts have ended."""
    tokens, positions = torch.zeros(rows, dtype=torch.long), torch.zeros(rows, dtype=torch.long)
    for row, one in active.items():
        tokens[row], positions[row] = one.tokens[one.fed], one.fed
    logits, ended = passes.logits(tokens, positions), []
    for row, one in active.items():
        one.fed += 1
        if one.fed == len(one.tokens):
            one.tokens.append(one.chance.choose(logits[row], one.fed))
            if one.tokens[-1] in stop_tokens or len(one.tokens) == one.end:
                ended.append(row)
    return ended
