"""`specdec measure texts`: what the target writes after every stored prompt, once per sampler, into
data/measured/texts: under `look_up` it does not depend on the draft, so that tables and notebooks
count every method along these texts.
"""

import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from safetensors.torch import save
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, tensor_file, write_whole
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, seeds

TEXTS = DATA / "measured" / "texts"
SAMPLERS = (Sampler(0), Sampler(1.0), Sampler(1.0, top_k=50))  # of the stored texts
SEQUENCES = 64


def text_file(sampler: Sampler, folder: Path = TEXTS) -> Path:
    """Where the texts under a sampler are stored."""
    top = "" if sampler.top_k is None else f"-top-{sampler.top_k}"
    return folder / f"temperature-{sampler.temperature:g}{top}.safetensors"


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
    def written(
        cls,
        ladder: Ladder,
        prompts: Sequence[Prompt],
        sampler: Sampler,
        *,
        seed: int = 0,
        max_new_tokens: int = 256,
    ) -> "Texts":
        """The texts, written now by `write_texts`: minutes for some hundred prompts."""
        limits = {"seed": seed, "max_new_tokens": max_new_tokens}
        found, digests = write_texts(ladder, prompts, sampler, **limits), _digests(prompts)
        tokens = {prompt.name: text for prompt, text in zip(prompts, found, strict=True)}
        name = ladder.card.get("target", "")
        return cls(name, sampler, **limits, prompts=digests, tokens=tokens)

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
        """Write the texts as 16-bit ids, whole or not at all; raises ValueError for larger ids."""
        ids = torch.tensor([id for text in self.tokens.values() for id in text], dtype=torch.int32)
        if ids.max() >= 1 << 16:
            raise ValueError(f"texts are kept as ids of 16 bits, got {ids.max()}")
        ends = torch.tensor([*accumulate(map(len, self.tokens.values()))], dtype=torch.int32)
        about = asdict(self)
        del about["tokens"]
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {"ids": ids.to(torch.uint16), "ends": ends}
        write_whole(path, save(columns, {"about": json.dumps(about)}))

    def holds(self, prompt: Prompt) -> bool:
        """Whether there is a text of this prompt."""
        return _digests([prompt]).items() <= self.prompts.items()

    def of(self, prompt: Prompt) -> tuple[int, ...]:
        """The text after a prompt; raises ValueError if there is none of this name and content."""
        if self.holds(prompt):
            return self.tokens[prompt.name]
        lacking = f"there is no text of the prompt {prompt.name!r} among these {len(self.tokens)}"
        raise ValueError(f"{lacking}; `specdec measure texts` writes them anew")


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


def check_texts(texts: Sequence[Texts], seed: int, max_new_tokens: int) -> None:
    """Raises ValueError unless all texts were written with this seed and are long enough."""
    for one in texts:
        if one.seed != seed or one.max_new_tokens < max_new_tokens:
            these = f"texts of seed {one.seed} and up to {one.max_new_tokens} tokens"
            asked = f"seed {seed} and {max_new_tokens} tokens"
            raise ValueError(f"{these} cannot be replayed with {asked}")


def every_domain(split: str, limit: int | None = None) -> list[Prompt]:
    """The first so many prompts of every embedded domain."""
    return [one for domain in DOMAINS for one in load_prompts(domain, split, limit)]


def _digests(prompts: Sequence[Prompt]) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.text.encode()).hexdigest() for one in prompts}


@dataclass
class _Text:
    """A text that is being written: the prompt's tokens, then the target's; `fed` of them read."""

    number: int
    tokens: list[int]
    chance: Chance
    end: int
    fed: int = 0


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
    given = [ladder.encode(prompt) for prompt in prompts]
    waiting = deque(
        _Text(number, list(tokens), Chance(one, sampler), len(tokens) + max_new_tokens)
        for number, (tokens, one) in enumerate(zip(given, seeds(prompts, seed), strict=True))
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
    tokens, positions = torch.zeros(2, rows, dtype=torch.long)
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again."""
    places = [text_file(one) for one in SAMPLERS]
    parser = Parser("measure texts", __doc__.partition(": ")[2], writes=places)
    parser.add_common("--max-new-tokens", 256)
    given = parser.parse_args(arguments)
    missing = [sampler for sampler in SAMPLERS if not text_file(sampler).is_file()]
    if not missing:
        print(f"all texts are in {text_file(SAMPLERS[0]).parent}; delete a file to write it anew")
        return
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    limit, prompts = {"max_new_tokens": given.max_new_tokens}, every_domain(WHOLE)
    for sampler in missing:
        Texts.written(ladder, prompts, sampler, **limit).save(text_file(sampler))
