"""`specdec measure texts`: what the target writes after every stored prompt, once per sampler, into
data/measured/texts: under `look_up` it does not depend on the draft, so that tables and notebooks
count every method along these texts.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from safetensors.torch import save
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA, cache_folder, tensor_file, write_whole
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, seeds

TEXTS = DATA / "measured" / "texts"
SAMPLERS = (Sampler(0), Sampler(1.0), Sampler(1.0, top_k=50))  # of the stored texts
SEQUENCES = 64  # texts that `write_batched` writes at a time
REPEATED = 8  # tokens of an n-gram that count as a loop
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again, and an interrupted run
    goes on with the texts that were not finished.
    """
    places = [text_file(one) for one in SAMPLERS]
    Parser("measure texts", __doc__, writes=places).parse_args(arguments)
    torch.set_num_threads(1)
    ladder, prompts = load_ladder(device="cpu"), every_domain(WHOLE)
    keep = cache_folder() / "texts"
    for sampler, place in zip(SAMPLERS, places, strict=True):
        if place.is_file():
            print(f"{place} is there; delete it to have it written anew")
        else:
            write_batched(ladder, prompts, sampler, keep=keep).save(place)


def text_file(sampler: Sampler) -> Path:
    """Where the texts under a sampler are stored."""
    top = "" if sampler.top_k is None else f"-top-{sampler.top_k}"
    return TEXTS / f"temperature-{sampler.temperature:g}{top}.safetensors"


def every_domain(split: str, limit: int | None = None) -> list[Prompt]:
    """The first `limit` prompts of every embedded domain."""
    return [one for domain in DOMAINS for one in load_prompts(domain, split, limit)]


@dataclass(frozen=True)
class Texts:
    """What the target writes after some prompts under one sampler, a stop token included.

    target     the target's name in its card
    prompts    per prompt name, the SHA-256 of its text
    tokens     per prompt name, the text
    """

    target: str
    sampler: Sampler
    seed: int
    max_new_tokens: int
    prompts: Mapping[str, str]
    tokens: Mapping[str, tuple[int, ...]]

    @classmethod
    def load(cls, path: Path) -> "Texts":
        """The texts that `save` wrote."""
        with tensor_file(path) as file:
            about = json.loads(file.metadata()["about"])
            ids, ends = file.get_tensor("ids").tolist(), file.get_tensor("ends").tolist()
        texts = (tuple(ids[start:end]) for start, end in pairwise([0, *ends]))
        about["tokens"] = dict(zip(about["prompts"], texts, strict=True))
        return cls(**about | {"sampler": Sampler(**about["sampler"])})

    @classmethod
    def stored(cls, samplers: Sequence[Sampler] = SAMPLERS) -> "tuple[Texts, ...]":
        """The texts of `specdec measure texts`.  Raises ValueError if a file is missing."""
        missing = [text_file(one) for one in samplers if not text_file(one).is_file()]
        if missing:
            raise ValueError(f"{missing[0]} is missing; `specdec measure texts` writes it")
        return tuple(cls.load(text_file(one)) for one in samplers)

    def save(self, path: Path) -> None:
        """Write the texts, whole or not at all; ids have 16 bits where all fit, else 32."""
        ids = [token for text in self.tokens.values() for token in text]
        kind = torch.uint16 if max(ids, default=0) < 1 << 16 else torch.int32
        ends = torch.tensor([*accumulate(map(len, self.tokens.values()))], dtype=torch.int32)
        about = asdict(self)
        del about["tokens"]
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {"ids": torch.tensor(ids, dtype=kind), "ends": ends}
        write_whole(path, save(columns, {"about": json.dumps(about)}))

    def holds(self, prompt: Prompt) -> bool:
        """Whether there is a text of this prompt."""
        return self.prompts.get(prompt.name) == _digest(prompt)

    def of(self, prompt: Prompt) -> tuple[int, ...]:
        """The text after a prompt; raises ValueError if there is none of this name and content."""
        if self.holds(prompt):
            return self.tokens[prompt.name]
        lacking = f"there is no text of the prompt {prompt.name!r} among these {len(self.tokens)}"
        raise ValueError(f"{lacking}; `specdec measure texts` writes them anew")


def _digest(prompt: Prompt) -> str:
    return hashlib.sha256(prompt.text.encode()).hexdigest()


def known_texts(
    samplers: Sequence[Sampler],
    seed: int = 0,
    *,
    prompts: Sequence[Prompt] = (),
    max_new_tokens: int = 1,
) -> tuple[Texts, ...]:
    """The stored texts of those samplers that have this seed, all these prompts and the length."""
    found = [Texts.load(text_file(one)) for one in samplers if text_file(one).is_file()]
    same = (one for one in found if one.sampler in samplers and one.seed == seed)
    long = (one for one in same if max_new_tokens <= one.max_new_tokens)
    return tuple(one for one in long if all(map(one.holds, prompts)))


def write_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
    keep: Path | None = None,
) -> Texts:
    """What the target writes after each prompt, by plain decoding.

    keep    a folder where each finished text is kept, for the same models, sampler, seed, length
            and code
    """
    about = (sampler, seed, max_new_tokens)
    kept = _kept(write_texts, ladder, about, keep)

    def rows(prompt: Prompt, own: int) -> list[Row]:
        limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
        given, chance = ladder.encode(prompt), Chance(own, sampler)
        return [{"tokens": decode(ladder.target, NoDraft(), given, chance, **limits).tokens}]

    tokens = {}
    numbered = [*zip(prompts, seeds(prompts, seed), strict=True)]
    for prompt, own in tqdm(numbered, f"texts at T={sampler.temperature:g}", mininterval=5):
        [row] = kept.rows(key_of(prompt), partial(rows, prompt, own))
        tokens[prompt.name] = tuple(row["tokens"])
    return _texts(ladder, prompts, *about, tokens)


def _kept(
    writer: Callable[..., Texts],
    ladder: Ladder,
    about: tuple[Sampler, int, int],
    keep: Path | None,
) -> RowCache:
    """The finished texts under a folder that were written by this function with all the same."""
    if keep is None:
        return RowCache(None)
    models = (ladder.target, ladder.tokenizer, ladder.stop_tokens)
    return RowCache(keep / fingerprint(writer.__name__, *models, *about))


def _texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    seed: int,
    max_new_tokens: int,
    tokens: Mapping[str, tuple[int, ...]],
) -> Texts:
    target, digests = ladder.card.get("target", ""), {one.name: _digest(one) for one in prompts}
    return Texts(target, sampler, seed, max_new_tokens, digests, tokens)


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
) -> Texts:
    """What a Llama target writes after each prompt, `SEQUENCES` texts at a time, in float32.

    These are the texts of `write_texts` up to near-ties: sums over many rows are in another order.
    The stored texts were written so. For `keep`, see `write_texts`; a text that was not finished
    begins anew.  Raises ValueError for another kind of target, and if there is no prompt.
    """
    if not prompts:
        raise ValueError("texts are written after prompts, got none")
    about = (sampler, seed, max_new_tokens)
    kept = _kept(write_batched, ladder, about, keep)
    found = {prompt.name: kept.read(key_of(prompt)) for prompt in prompts}
    tokens = {name: tuple(rows[0]["tokens"]) if rows else () for name, rows in found.items()}
    given = [[*ladder.encode(prompt)] for prompt in prompts]
    waiting = deque(
        _Writing(prompt, ids, len(ids), Chance(own, sampler))
        for prompt, ids, own in zip(prompts, given, seeds(prompts, seed), strict=True)
        if not found[prompt.name]
    )
    rows = min(SEQUENCES, len(prompts))  # those that are read too: sums depend on it
    most = ladder.target.max_positions
    positions = min(most, max(map(len, given)) + max_new_tokens)
    passes = BatchedPasses(ladder.target.model, rows, positions, dtype=torch.float32)
    active = {row: waiting.popleft() for row in range(min(rows, len(waiting)))}
    bar = tqdm(total=len(prompts), desc=f"texts at T={sampler.temperature:g}", mininterval=5)
    bar.update(len(prompts) - len(waiting) - len(active))
    with bar:
        while active:
            for row in _advance(active, passes, ladder.stop_tokens, max_new_tokens, most):
                done = active.pop(row)
                text = tuple(done.tokens[done.begin :])
                tokens[done.prompt.name] = text
                kept.write(key_of(done.prompt), [{"tokens": text}])
                bar.update()
                if waiting:
                    active[row] = waiting.popleft()
    return _texts(ladder, prompts, *about, tokens)


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


def repetition(tokens: Sequence[int]) -> float:
    """The share of tokens that end an n-gram of `REPEATED` tokens which was generated before."""
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(REPEATED, len(tokens) + 1):
        gram = tuple(tokens[end - REPEATED : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0
