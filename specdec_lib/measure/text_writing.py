"""`specdec measure texts`: what the target writes after every stored prompt, once per sampler, into
data/measured/texts.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.row_cache import RowCache, key_of
from specdec_lib.measure.target_text import (
    SAMPLERS,
    TargetText,
    every_domain,
    save_texts,
    text_file,
    text_of,
    write_text,
)
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.workload import WHOLE, Ladder, Prompt, load_ladder, seeds

SEQUENCES = 64  # texts that `write_batched` writes at a time


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again, and an interrupted run
    goes on with the texts that were not finished.
    """
    places = [text_file(one) for one in SAMPLERS]
    Parser("measure texts", __doc__, writes=places).parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    prompts = every_domain(WHOLE)
    keep = cache_folder() / "texts"
    for sampler, place in zip(SAMPLERS, places, strict=True):
        if place.is_file():
            print(f"{place} is there; delete it to have it written anew")
        else:
            save_texts(write_batched(ladder, prompts, sampler, keep=keep), place)


def write_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    keep: Path | None = None,
) -> tuple[TargetText, ...]:
    """What the target writes after each prompt, by plain decoding, in the prompts' order.

    keep    a folder where each finished text is kept, for the same models, sampler, seed, length
            and code
    """
    finished = _finished("write_texts", ladder, sampler, seed, max_new_tokens, keep)
    found = []
    for prompt in tqdm(prompts, f"texts at T={sampler.temperature:g}", mininterval=5):
        rows = finished.read(key_of(prompt))
        if rows:
            given = ladder.encode(prompt)
            tokens = rows[0]["tokens"]
            text = text_of(ladder, prompt, given, tokens, sampler, seed, max_new_tokens)
        else:
            text = write_text(ladder, prompt, sampler, seed=seed, max_new_tokens=max_new_tokens)
            finished.write(key_of(prompt), [{"tokens": text.tokens}])
        found.append(text)
    return tuple(found)


def _finished(
    writer: str,
    ladder: Ladder,
    sampler: Sampler,
    seed: int,
    max_new_tokens: int,
    keep: Path | None,
) -> RowCache:
    """The finished texts under a folder that were written by this function with all the same."""
    if keep is None:
        return RowCache(None)
    models = (ladder.target, ladder.tokenizer, ladder.stop_tokens)
    return RowCache(keep / fingerprint(writer, *models, sampler, seed, max_new_tokens))


@dataclass
class _Writing:
    """A text that is being written: the prompt's tokens, then the target's.

    begin    the number of the prompt's tokens
    read     how many of the tokens the target has read
    """

    prompt: Prompt
    tokens: list[int]
    begin: int
    chance: Chance
    read: int = 0


def write_batched(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    keep: Path | None = None,
) -> tuple[TargetText, ...]:
    """What a Llama target writes after each prompt, `SEQUENCES` texts at a time, in float32.

    These are the texts of `write_texts` up to near-ties: sums over many rows are in another order.
    The stored texts were written so. For `keep`, see `write_texts`; a text that was not finished
    begins anew.  Raises ValueError for another kind of target, and if there is no prompt.
    """
    if not prompts:
        raise ValueError("texts are written after prompts, got none")
    finished = _finished("write_batched", ladder, sampler, seed, max_new_tokens, keep)
    kept = {prompt.name: finished.read(key_of(prompt)) for prompt in prompts}
    tokens = {name: rows[0]["tokens"] for name, rows in kept.items() if rows}
    given = [ladder.encode(prompt) for prompt in prompts]
    waiting = deque(
        _Writing(prompt, [*ids], len(ids), Chance(own, sampler))
        for prompt, ids, own in zip(prompts, given, seeds(prompts, seed), strict=True)
        if prompt.name not in tokens
    )
    rows = min(SEQUENCES, len(prompts))  # as many as without kept ones: sums depend on it
    most = ladder.target.max_positions
    positions = min(most, max(map(len, given)) + max_new_tokens)
    passes = BatchedPasses(ladder.target.model, rows, positions, dtype=torch.float32)
    active = {row: waiting.popleft() for row in range(min(rows, len(waiting)))}
    with tqdm(total=len(prompts), desc=f"texts at T={sampler.temperature:g}", mininterval=5) as bar:
        bar.update(len(prompts) - len(waiting) - len(active))
        while active:
            for row in _advance(active, passes, ladder.stop_tokens, max_new_tokens, most):
                done = active.pop(row)
                text = tuple(done.tokens[done.begin :])
                tokens[done.prompt.name] = text
                finished.write(key_of(done.prompt), [{"tokens": text}])
                bar.update()
                if waiting:
                    active[row] = waiting.popleft()
    return tuple(
        text_of(ladder, prompt, ids, tokens[prompt.name], sampler, seed, max_new_tokens)
        for prompt, ids in zip(prompts, given, strict=True)
    )


def _advance(
    active: Mapping[int, _Writing],
    passes: BatchedPasses,
    stops: Sequence[int],
    longest: int,
    most: int,
) -> list[int]:
    """Read one more token of every text and, where all are read, choose the next; the rows whose
    texts have ended come back: at a stop token, at `longest` new tokens, or beyond `most` in all.
    """
    tokens, positions = torch.zeros(2, passes.keys.shape[1], dtype=torch.long)
    for row, text in active.items():
        tokens[row] = text.tokens[text.read]
        positions[row] = text.read
    logits = passes.logits(tokens, positions)
    ended = []
    for row, text in active.items():
        text.read += 1
        if text.read == len(text.tokens):
            text.tokens.append(text.chance.choose(logits[row], text.read))
            size = len(text.tokens)
            if text.tokens[-1] in stops or size == text.begin + longest or size > most:
                ended.append(row)
    return ended
