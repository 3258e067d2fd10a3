"""`specdec measure texts`: what the target writes after every stored prompt, once per sampler, into
data/measured/texts: under `look_up` it does not depend on the draft, so that tables and notebooks
count every method along these texts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from safetensors.torch import save
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA, tensor_file, write_whole
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, seeds

TEXTS = DATA / "measured" / "texts"
SAMPLERS = (Sampler(0), Sampler(1.0), Sampler(1.0, top_k=50))  # of the stored texts
REPEATED = 8  # tokens of an n-gram that count as a loop
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again."""
    places = [text_file(one) for one in SAMPLERS]
    Parser("measure texts", __doc__, writes=places).parse_args(arguments)
    torch.set_num_threads(1)
    ladder, prompts = load_ladder(device="cpu", runtime="fast"), every_domain(WHOLE)
    for sampler, place in zip(SAMPLERS, places, strict=True):
        if place.is_file():
            print(f"{place} is there; delete it to have it written anew")
        else:
            write_texts(ladder, prompts, sampler).save(place)


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
) -> Texts:
    """What the target writes after each prompt, by plain decoding."""
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    numbered, tokens = [*zip(prompts, seeds(prompts, seed), strict=True)], {}
    for prompt, own in tqdm(numbered, f"texts at T={sampler.temperature:g}", mininterval=5):
        given, chance = ladder.encode(prompt), Chance(own, sampler)
        tokens[prompt.name] = decode(ladder.target, NoDraft(), given, chance, **limits).tokens
    about = (ladder.card.get("target", ""), sampler, seed, max_new_tokens)
    return Texts(*about, {prompt.name: _digest(prompt) for prompt in prompts}, tokens)


def repetition(tokens: Sequence[int]) -> float:
    """The share of tokens that end an n-gram of `REPEATED` tokens which was generated before."""
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(REPEATED, len(tokens) + 1):
        gram = tuple(tokens[end - REPEATED : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0
