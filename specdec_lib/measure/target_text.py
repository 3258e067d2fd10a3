"""What the target writes after a prompt: under `look_up` it does not depend on the draft, so every
method is counted along the same texts. Those of the stored prompts lie in data/measured/texts.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from safetensors.torch import save

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA, tensor_file, write_whole
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, WARM
from specdec_lib.workload import DOMAINS, SPLITS, WHOLE, Ladder, Pair, Prompt, load_prompts
from specdec_lib.workload.prompts import OURS, prompt_seed

TEXTS = DATA / "measured" / "texts"
SAMPLERS = (GREEDY, WARM, TOP_50)  # of the stored texts
REPEATED = 8  # tokens of an n-gram that count as a loop
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


@dataclass(frozen=True)
class TargetText:
    """What the target writes after a prompt by plain decoding, a stop token included.

    prompt    the prompt's name
    digest    the SHA-256 of the prompt's text
    seed      of the measurement: the prompt's own seed follows from its name and this
    limit     the most tokens that it could have; a shorter text ends with a stop token
    target    the target's name in its card
    given     the prompt's tokens; empty where the text was read from a file
    """

    prompt: str
    digest: str
    sampler: Sampler
    seed: int
    tokens: tuple[int, ...]
    limit: int
    target: str = ""
    given: Context | tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def prompt_tokens(self) -> tuple[int, ...]:
        """The prompt's tokens; after an encoder's source those that the decoder begins with."""
        return self.given.tokens if isinstance(self.given, Context) else self.given

    @property
    def chance(self) -> Chance:
        """The chance that it was written with."""
        return Chance(prompt_seed(self.prompt, self.seed), self.sampler)

    @property
    def loops(self) -> bool:
        """Whether 0.3 or more of it repeats itself."""
        return repetition(self.tokens) >= LOOPING

    def is_of(self, prompt: Prompt) -> bool:
        """Whether it was written after this prompt: one of this name and content."""
        return self.prompt == prompt.name and self.digest == _digest(prompt)


def write_text(
    ladder: Ladder | Pair,
    prompt: Prompt,
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = 256,
) -> TargetText:
    """The target's text after a prompt, by plain decoding up to a stop token or the limit."""
    given = ladder.encode(prompt)
    chance = Chance(prompt_seed(prompt.name, seed), sampler)
    written = decode(
        ladder.target,
        NoDraft(),
        given,
        chance,
        max_new_tokens=max_new_tokens,
        stop_tokens=ladder.stop_tokens,
    )
    return text_of(ladder, prompt, given, written.tokens, sampler, seed, max_new_tokens)


def text_of(
    ladder: Ladder | Pair,
    prompt: Prompt,
    given: Context | tuple[int, ...],
    tokens: Sequence[int],
    sampler: Sampler,
    seed: int,
    max_new_tokens: int,
) -> TargetText:
    """These tokens as the text that the target wrote after a prompt, of which `given` are the
    tokens.
    """
    return TargetText(
        prompt.name,
        _digest(prompt),
        sampler,
        seed,
        tuple(tokens),
        max_new_tokens,
        target=ladder.card.get("target", "") if isinstance(ladder, Ladder) else "",
        given=given,
    )


def find_text(
    texts: Sequence[TargetText], prompt: Prompt, sampler: Sampler | None = None
) -> TargetText:
    """The text after a prompt, under this sampler if one is given; raises ValueError if there is
    none of this name and content.
    """
    for text in texts:
        if text.is_of(prompt) and sampler in (None, text.sampler):
            return text
    raise ValueError(
        f"there is no text of the prompt {prompt.name!r} among these {len(texts)};"
        " `specdec measure texts` writes them anew"
    )


def text_file(sampler: Sampler) -> Path:
    """Where the texts under a sampler are stored."""
    top = "" if sampler.top_k is None else f"-top-{sampler.top_k}"
    return TEXTS / f"temperature-{sampler.temperature:g}{top}.safetensors"


def save_texts(texts: Sequence[TargetText], path: Path) -> None:
    """Write texts of one target, sampler, seed and limit, whole or not at all; ids have 16 bits
    where all fit, else 32.  Raises ValueError for texts that differ in these, or none.
    """
    kinds = {(text.target, text.sampler, text.seed, text.limit) for text in texts}
    if len(kinds) != 1:
        raise ValueError(f"a file holds texts of one target, sampler, seed and limit, got {kinds}")
    [(target, sampler, seed, limit)] = kinds
    ids = [token for text in texts for token in text.tokens]
    kind = torch.uint16 if max(ids, default=0) < 1 << 16 else torch.int32
    ends = torch.tensor([*accumulate(len(text.tokens) for text in texts)], dtype=torch.int32)
    about = {
        "target": target,
        "sampler": asdict(sampler),
        "seed": seed,
        "max_new_tokens": limit,
        "prompts": {text.prompt: text.digest for text in texts},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"ids": torch.tensor(ids, dtype=kind), "ends": ends}
    write_whole(path, save(columns, {"about": json.dumps(about)}))


def load_texts(path: Path) -> tuple[TargetText, ...]:
    """The texts that `save_texts` wrote."""
    with tensor_file(path) as file:
        about = json.loads(file.metadata()["about"])
        ids = file.get_tensor("ids").tolist()
        ends = file.get_tensor("ends").tolist()
    sampler = Sampler(**about["sampler"])
    places = zip(about["prompts"].items(), pairwise([0, *ends]), strict=True)
    return tuple(
        TargetText(
            name,
            digest,
            sampler,
            about["seed"],
            tuple(ids[start:end]),
            about["max_new_tokens"],
            target=about["target"],
        )
        for (name, digest), (start, end) in places
    )


def stored_texts(samplers: Sequence[Sampler] = SAMPLERS) -> tuple[TargetText, ...]:
    """The texts of `specdec measure texts`.  Raises ValueError if a file is missing."""
    missing = [text_file(one) for one in samplers if not text_file(one).is_file()]
    if missing:
        raise ValueError(f"{missing[0]} is missing; `specdec measure texts` writes it")
    return tuple(text for one in samplers for text in load_texts(text_file(one)))


def known_texts(
    samplers: Sequence[Sampler],
    ladder: Ladder,
    seed: int = 0,
    *,
    prompts: Sequence[Prompt] = (),
    max_new_tokens: int = 1,
) -> tuple[TargetText, ...]:
    """The stored texts of those samplers that are of this ladder's target, and have this seed, all
    these prompts and the length.
    """
    found: list[TargetText] = []
    for sampler in samplers:
        if not text_file(sampler).is_file():
            continue
        texts = load_texts(text_file(sampler))
        names = {(text.prompt, text.digest) for text in texts}
        first = texts[0]
        same = (first.sampler, first.seed) == (sampler, seed)
        same = same and first.target == ladder.card.get("target", "")
        if (
            same
            and max_new_tokens <= first.limit
            and names >= {(prompt.name, _digest(prompt)) for prompt in prompts}
        ):
            found += texts
    return tuple(found)


def every_domain(split: str, limit: int | None = None) -> list[Prompt]:
    """The first `limit` prompts of every embedded domain."""
    return [one for domain in DOMAINS for one in load_prompts(domain, split, limit)]


def chosen_prompts(given: str | None, split: str, limit: int) -> list[Prompt]:
    """The first `limit` prompts of every embedded domain and of this split, or of every domain that
    the prompts of a set or file have: of all of these, where the split is "all".

    given    None, or a set's name or a file, as `load_prompts` takes it
    """
    if given is None:
        return every_domain(split, limit)
    counts: Counter[str] = Counter()
    found = []
    for prompt in load_prompts(given, split):
        counts[prompt.domain] += 1
        if counts[prompt.domain] <= limit:
            found.append(prompt)
    return found


def prompts_of_splits(
    given: str | None, development: int, held_out: int
) -> dict[str, tuple[list[Prompt], list[Prompt]]]:
    """By domain so many development and held-out prompts, as `chosen_prompts` gives them.  Raises
    ValueError for a domain that has none of a split.
    """
    known, unseen = (
        by_domain(chosen_prompts(given, split, limit))
        for split, limit in zip(SPLITS, (development, held_out), strict=True)
    )
    alone = sorted(known.keys() ^ unseen.keys())
    if alone:
        raise ValueError(
            f"every domain needs prompts of both splits, {' and '.join(SPLITS)}; {alone[0]!r} has"
            ' one: name the "split" of a line, or add lines'
        )
    return {domain: (its, unseen[domain]) for domain, its in known.items()}


def judged_prompts(given: str | None, limit: int) -> list[Prompt]:
    """`chosen_prompts` of which nothing was tuned: of embedded ones those that are held out, of
    others all.
    """
    return chosen_prompts(given, "held-out" if given in (None, *OURS) else WHOLE, limit)


def by_domain(prompts: Sequence[Prompt]) -> dict[str, list[Prompt]]:
    """Prompts by their domain, in the order in which domains first come."""
    found: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        found.setdefault(prompt.domain, []).append(prompt)
    return found


def _digest(prompt: Prompt) -> str:
    return hashlib.sha256(prompt.text.encode()).hexdigest()


def repetition(tokens: Sequence[int]) -> float:
    """The share of tokens that end an n-gram of `REPEATED` tokens which was generated before."""
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(REPEATED, len(tokens) + 1):
        gram = tuple(tokens[end - REPEATED : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0
