"""What the target writes after prompts, finished texts kept; after the embedded ones, once per
sampler, it is stored in data/measured/texts.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.target_text import (
    SAMPLERS,
    TargetText,
    every_domain,
    save_texts,
    stored_texts,
    text_file,
    text_of,
    write_text,
)
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.workload import WHOLE, Ladder, Prompt, seeds

SEQUENCES = 64  # texts that `write_batched` writes at a time


def write_stored_texts(ladder: Ladder, keep: Path) -> None:
    """Write the texts after every embedded prompt into data/measured/texts, a file per sampler; a
    file that is there is not written again, and finished texts are kept in a folder.
    """
    prompts = every_domain(WHOLE)
    for sampler in SAMPLERS:
        place = text_file(sampler)
        if place.is_file():
            print(f"{place} is there; delete it to have it written anew")
        else:
            save_texts(write_batched(ladder, prompts, sampler, keep=keep), place)


def texts_after(
    prompts: Sequence[Prompt],
    samplers: Sequence[Sampler],
    ladder: Ladder,
    *,
    max_new_tokens: int = 256,
    cluster: Cluster | None = None,
) -> tuple[TargetText, ...]:
    """What the target writes after these prompts under each sampler: of the prepared target after
    embedded prompts the stored texts; else those that an earlier call wrote into the cache, or that
    are written now.

    Raises ValueError if stored texts are missing.
    """
    embedded = set() if ladder.is_own else {prompt.name for prompt in every_domain(WHOLE)}
    found: list[TargetText] = []
    for sampler in samplers:
        if sampler in SAMPLERS and embedded.issuperset(prompt.name for prompt in prompts):
            found += stored_texts([sampler])
            continue
        found += write_texts(
            ladder,
            prompts,
            sampler,
            max_new_tokens=max_new_tokens,
            keep=cache_folder() / "texts",
            cluster=cluster,
        )
    return tuple(found)


def write_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    keep: Path | None = None,
    cluster: Cluster | None = None,
) -> tuple[TargetText, ...]:
    """What the target writes after each prompt, by plain decoding, in the prompts' order.

    keep       a folder where each finished text is kept, for the same models, sampler, seed, length
               and code
    cluster    the workers of a Dask client that write them
    """
    given = [ladder.encode(prompt) for prompt in prompts]  # what cannot be read is refused first
    rows = spread_rows(
        text_rows,
        [(key_of(prompt), prompt) for prompt in prompts],
        ladder,
        {"sampler": sampler, "seed": seed, "max_new_tokens": max_new_tokens},
        _finished("write_texts", ladder, sampler, seed, max_new_tokens, keep),
        cluster=cluster,
        label=f"texts at T={sampler.temperature:g}",
    )
    return tuple(
        text_of(ladder, prompt, ids, row["tokens"], sampler, seed, max_new_tokens)
        for prompt, ids, row in zip(prompts, given, rows, strict=True)
    )


def text_rows(
    ladder: Ladder, prompt: Prompt, *, sampler: Sampler, seed: int, max_new_tokens: int
) -> list[Row]:
    """A row with the tokens that the target writes after a prompt."""
    text = write_text(ladder, prompt, sampler, seed=seed, max_new_tokens=max_new_tokens)
    return [{"tokens": text.tokens}]


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
    tokens, positions = torch.zeros(2, passes.cache.keys.shape[1], dtype=torch.long)
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
