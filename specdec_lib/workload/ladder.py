"""The embedded ladder of decoder-only models, from largest to smallest, and what was measured on it."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import PreTrainedTokenizerFast

from specdec_lib.chance import Sampler
from specdec_lib.lm import CachedModel
from specdec_lib.ngram import Katz, MaxGram
from specdec_lib.tree import MatchTable
from specdec_lib.workload.files import DATA, checked_card
from specdec_lib.workload.models import faster, load_model
from specdec_lib.workload.prompts import Prompt

if TYPE_CHECKING:
    from specdec_lib.runtime.fast import FastModel

MATCH = "match.json"


@dataclass(frozen=True)
class Measured:
    """A match table, and for what it was measured.

    contexts    positions it was measured at
    """

    guesser: str
    obeyed: str
    siblings: str
    sampler: Sampler
    contexts: int
    table: MatchTable

    @classmethod
    def of(cls, stored: dict) -> "Measured":
        """One entry of match.json."""
        sampler = Sampler(stored["temperature"], top_k=stored["top_k"])
        name = f"measured at T={stored['temperature']:g}" + (f", top-k {stored['top_k']}" if stored["top_k"] else "")
        binned = tuple(map(tuple, stored["binned"]))
        table = MatchTable(tuple(stored["rates"]), name, tuple(stored["edges"]), binned)
        return cls(stored["guesser"], stored["obeyed"], stored["siblings"], sampler, stored["contexts"], table)

    def distance(self, sampler: Sampler) -> tuple[float, bool]:
        """How far a sampler is from the one measured: in temperature, then in top-k (no top-p was measured)."""
        return abs(self.sampler.temperature - sampler.temperature), self.sampler.top_k != sampler.top_k


@dataclass(frozen=True)
class Ladder:
    """Models that share a vocabulary, from largest to smallest, and what belongs to them.

    stop_tokens    the end-of-text token: a function or an answer ends there
    measured       match tables measured on development prompts: see `match`
    """

    target: "CachedModel | FastModel"
    middle: "CachedModel | FastModel"
    draft: "CachedModel | FastModel"
    katz: Katz
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: tuple[int, ...]
    card: dict
    measured: tuple[Measured, ...] = ()

    def match(self, guesser: str, sampler: Sampler, *, obeyed: str = "target", siblings: str = "ranked") -> MatchTable:
        """The match table of two models ("draft" guesses, "target" is obeyed), measured under this sampler or under the nearest that was:
        the nearest in temperature, then one with the same top-k; top-p is not looked at.

        Its name says which.  Raises ValueError where no table of these models and siblings was measured.
        """
        fitting = [one for one in self.measured if (one.guesser, one.obeyed, one.siblings) == (guesser, obeyed, siblings)]
        if not fitting:
            known = sorted({f"{one.guesser} for {one.obeyed}, {one.siblings}" for one in self.measured})
            raise ValueError(f"no match table of {guesser} for {obeyed}, {siblings}, was measured; there are: {'; '.join(known) or 'none'}")
        return min(fitting, key=lambda one: one.distance(sampler)).table

    @functools.cached_property
    def max_gram(self) -> MaxGram:
        """Max-Gram with the bigram table of the Katz model."""
        return MaxGram(self.katz.bigrams())

    @functools.cached_property
    def quantised(self) -> "FastModel":
        """The target with weights of eight bits, on the fast runtime: a guesser that nobody had to train.

        Raises ValueError where the fast runtime does not know the target.
        """
        return faster(self.target, name="quantised", stored="int8")

    def encode(self, prompt: Prompt | str) -> tuple[int, ...]:
        """The tokens of a prompt."""
        return tuple(self.tokenizer.encode(prompt if isinstance(prompt, str) else prompt.text))

    def text(self, token: int) -> str:
        """What one token stands for."""
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


def load_ladder(*, device: str = "auto", dtype: str = "float32", runtime: str = "reference", folder: Path = DATA / "ladder") -> Ladder:
    """The embedded ladder, every file checked against its card.

    device     "auto" takes a GPU if there is one; "cpu", "cuda", …
    dtype      "float32", "float64" or "bfloat16"
    runtime    "reference"; "fast": float32 on the CPU, several times faster, and the very bits of a row whatever is computed beside it; or "auto",
               which measures once which is faster for each model

    Raises ValueError if a file is missing or damaged, or device, dtype or runtime are unknown or do not go together.
    """
    card = checked_card(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|endoftext|>")
    models = {name: load_model(folder / name, name, device=device, dtype=dtype, runtime=runtime) for name in ("target", "middle", "draft")}
    katz = Katz.load(folder / "katz.npz")
    measured = tuple(map(Measured.of, json.loads((folder / MATCH).read_text(encoding="utf-8")))) if MATCH in card["files"] else ()
    return Ladder(**models, katz=katz, tokenizer=tokenizer, stop_tokens=(tokenizer.eos_token_id,), card=card, measured=measured)
