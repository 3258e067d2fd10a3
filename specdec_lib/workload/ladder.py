"""A ladder of decoder-only models, from largest to smallest, and what was measured on it."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformers import GenerationConfig, PreTrainedTokenizerFast

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.loading import fast_model
from specdec_lib.workload.prompts import Prompt

if TYPE_CHECKING:
    from specdec_lib.models.fast.model import FastModel

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
        name = f"measured at T={stored['temperature']:g}" + (
            f", top-k {stored['top_k']}" if stored["top_k"] else ""
        )
        binned = tuple(map(tuple, stored["binned"]))
        table = MatchTable(tuple(stored["rates"]), name, tuple(stored["edges"]), binned)
        return cls(
            stored["guesser"],
            stored["obeyed"],
            stored["siblings"],
            sampler,
            stored["contexts"],
            table,
        )

    def distance(self, sampler: Sampler) -> tuple[float, bool]:
        """How far a sampler is from the one measured: in temperature, then in top-k (no top-p was
        measured).
        """
        return abs(
            self.sampler.temperature - sampler.temperature
        ), self.sampler.top_k != sampler.top_k


@dataclass(frozen=True)
class Ladder:
    """Models that share a vocabulary, from largest to smallest, and what belongs to them.

    middle, katz   None in a ladder of one's own models that has none
    stop_tokens    the end-of-text token: a function or an answer ends there
    measured       match tables measured on development prompts: see `match`
    """

    target: "CachedModel | FastModel"
    middle: "CachedModel | FastModel | None"
    draft: "CachedModel | FastModel"
    katz: Katz | None
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: tuple[int, ...]
    card: dict
    measured: tuple[Measured, ...] = ()

    @property
    def models(self) -> "tuple[CachedModel | FastModel, ...]":
        """Those that there are, the largest first."""
        return tuple(model for model in (self.target, self.middle, self.draft) if model is not None)

    @property
    def max_positions(self) -> int:
        """How long a text may become for all models to read it; beyond it a smaller one guesses
        nothing.
        """
        return min(model.max_positions for model in self.models)

    def match(
        self, guesser: str, sampler: Sampler, *, obeyed: str = "target", siblings: str = "ranked"
    ) -> MatchTable:
        """The match table of two models ("draft" guesses, "target" is obeyed), measured under this
        sampler or under the nearest that was:
        the nearest in temperature, then one with the same top-k; top-p is not looked at.

        Its name says which.  Raises ValueError where no table of these models and siblings was
        measured.
        """
        fitting = [
            one
            for one in self.measured
            if (one.guesser, one.obeyed, one.siblings) == (guesser, obeyed, siblings)
        ]
        if not fitting:
            known = sorted(
                {f"{one.guesser} for {one.obeyed}, {one.siblings}" for one in self.measured}
            )
            raise ValueError(
                f"no match table of {guesser} for {obeyed}, {siblings}, was measured; there are:"
                f" {'; '.join(known) or 'none'}"
            )
        return min(fitting, key=lambda one: one.distance(sampler)).table

    @functools.cached_property
    def max_gram(self) -> MaxGram:
        """Max-Gram with the bigram table of the Katz model, or without one where there is none."""
        return MaxGram(None if self.katz is None else self.katz.bigrams())

    @functools.cached_property
    def quantised(self) -> "FastModel":
        """The target with weights of eight bits, on the fast runtime: a guesser that nobody had to
        train.

        Raises ValueError where the fast runtime does not know the target.
        """
        return fast_model(self.target, name="quantised", stored="int8")

    def encode(self, prompt: Prompt | str) -> tuple[int, ...]:
        """The tokens of a prompt.  Raises ValueError if a model cannot read as many."""
        tokens = tuple(self.tokenizer.encode(prompt if isinstance(prompt, str) else prompt.text))
        if len(tokens) > self.max_positions:
            named = "a text" if isinstance(prompt, str) else f"the prompt {prompt.name}"
            smallest = min(self.models, key=lambda model: model.max_positions)
            raise ValueError(
                f"{named} has {len(tokens):,} tokens, and {smallest.name} reads at most"
                f" {smallest.max_positions:,}"
            )
        return tokens

    def text(self, token: int) -> str:
        """What one token stands for."""
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


@contextmanager
def neutral(ladder: Ladder) -> Iterator[None]:
    """Within it, Hugging Face's `generate` obeys the sampler alone: a model's own generation
    configuration may hold penalties and cut-offs.
    """
    networks = [model.model for model in ladder.models]
    before = [network.generation_config for network in networks]
    for network, known in zip(networks, before, strict=True):
        network.generation_config = GenerationConfig(
            bos_token_id=known.bos_token_id,
            eos_token_id=known.eos_token_id,
            pad_token_id=known.pad_token_id,
        )
    try:
        yield
    finally:
        for network, known in zip(networks, before, strict=True):
            network.generation_config = known
