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
SEQUENCES = 64  # that are written at a time


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again."""
    places = [text_file(one) for one in SAMPLERS]
    parser = Parser("measure texts", __doc__.partition(": ")[2], writes=places)
    parser.add_common("--max-new-tokens", 256)
    limit = {"max_new_tokens": parser.parse_args(arguments).max_new_tokens}
    torch.set_num_threads(1)
    ladder, prompts = load_ladder(device="cpu"), every_domain(WHOLE)
    for sampler, place in zip(SAMPLERS, places, strict=True):
        if place.is_file():
            print(f"{place} is there; delete it to have it written anew")
        else:
            write_texts(ladder, prompts, sampler, **limit).save(place)


def text_file(sampler: Sampler) -> Path:
    """Where the texts under a sampler are stored."""
    top = "" if sampler.top_k is None else f"-top-{sampler.top_k}"
    return TEXTS / f"temperature-{sampler.temperature:g}{top}.safetensors"


def every_domain(split: str, limit: int | None = None) -> list[Prompt]:
    """The first so many prompts of every embedded domain."""
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
        """The texts of `specdec measure texts`."""
        return tuple(cls.load(text_file(one)) for one in samplers)

    def save(self, path: Path) -> None:
        """Write the texts, whole or not at all, as ids of 16 bits: the target's fit."""
        ids = torch.tensor([id for text in self.tokens.values() for id in text])
        ends = torch.tensor([*accumulate(map(len, self.tokens.values()))], dtype=torch.int32)
        about = asdict(self)
        del about["tokens"]
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {"ids": ids.to(torch.uint16), "ends": ends}
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
    return tuple(
        one
        for one in found
        if (one.sampler in samplers and one.seed == seed)
        and (one.max_new_tokens >= max_new_tokens and all(map(one.holds, prompts)))
    )


@dataclass
class _Writing:
    """A text that is being written: the prompt's tokens, then the target's; `fed` of them read."""

    prompt: Prompt
    tokens: list[int]
    begin: int
    chance: Chance
    fed: int = 0


def write_texts(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
) -> Texts:
    """What the target writes after each prompt, in float32: minutes for some hundred prompts.

    These are the tokens of plain decoding but for near-ties: sums are in another order here.
    """
    waiting, tokens = deque[_Writing](), {prompt.name: () for prompt in prompts}
    for prompt, own in zip(prompts, seeds(prompts, seed), strict=True):
        given = [*ladder.encode(prompt)]
        waiting.append(_Writing(prompt, given, len(given), Chance(own, sampler)))
    rows = min(SEQUENCES, len(prompts))
    positions = max(one.begin for one in waiting) + max_new_tokens
    passes = BatchedPasses(ladder.target.model, rows, positions, dtype=torch.float32)
    active = {row: waiting.popleft() for row in range(rows)}
    with tqdm(total=len(prompts), desc=f"texts at T={sampler.temperature:g}", mininterval=5) as bar:
        while active:
            for row in _advance(active, passes, ladder.stop_tokens, max_new_tokens):
                done = active.pop(row)
                tokens[done.prompt.name] = tuple(done.tokens[done.begin :])
                bar.update()
                if waiting:
                    active[row] = waiting.popleft()
    about = (ladder.card.get("target", ""), sampler, seed, max_new_tokens)
    return Texts(*about, {prompt.name: _digest(prompt) for prompt in prompts}, tokens)


def _advance(
    active: Mapping[int, _Writing], passes: BatchedPasses, stops: Sequence[int], longest: int
) -> list[int]:
    """One pass; the rows whose texts have ended."""
    fed, ended = torch.zeros(2, passes.keys.shape[1], dtype=torch.long), []
    for row, one in active.items():
        fed[:, row] = torch.tensor([one.tokens[one.fed], one.fed])
    logits = passes.logits(*fed)
    for row, one in active.items():
        one.fed += 1
        if one.fed == len(one.tokens):
            one.tokens.append(one.chance.choose(logits[row], one.fed))
            if one.tokens[-1] in stops or len(one.tokens) == one.begin + longest:
                ended.append(row)
    return ended
