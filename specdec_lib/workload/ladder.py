"""A ladder of decoder-only models, from largest to smallest, with its measured match tables."""

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
from specdec_lib.workload.prompts import Prompt

if TYPE_CHECKING:
    from specdec_lib.models.fast.model import FastModel

MATCH = "match.json"
SPECIAL = ("bos", "eos", "pad")  # tokens


@dataclass(frozen=True)
class Measured:
    """A match table, with models, siblings, sampler and number of contexts it was measured for."""

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
        top_k = f", top-k {stored['top_k']}" if stored["top_k"] else ""
        name, binned = f"measured at T={sampler.temperature:g}{top_k}", map(tuple, stored["binned"])
        table = MatchTable(tuple(stored["rates"]), name, tuple(stored["edges"]), tuple(binned))
        pair = (stored["guesser"], stored["obeyed"], stored["siblings"])
        return cls(*pair, sampler, stored["contexts"], table)

    def __str__(self) -> str:
        return f"{self.guesser} for {self.obeyed}, {self.siblings}"

    def distance(self, sampler: Sampler) -> tuple[float, bool]:
        """Distance in temperature, then whether top-k is another (no top-p was measured)."""
        apart = abs(self.sampler.temperature - sampler.temperature)
        return apart, self.sampler.top_k != sampler.top_k


@dataclass(frozen=True)
class Ladder:
    """Models that share a vocabulary, from largest to smallest, with their tokenizer and tables.

    middle, katz   None in a ladder of one's own models without them
    stop_tokens    tokens that end a generation
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
        """The models of this ladder, the largest first."""
        return tuple(model for model in (self.target, self.middle, self.draft) if model is not None)

    @property
    def max_positions(self) -> int:
        """The longest text that all models can read."""
        return min(model.max_positions for model in self.models)

    def match(
        self, guesser: str, sampler: Sampler, *, obeyed: str = "target", siblings: str = "ranked"
    ) -> MatchTable:
        """The match table of a guesser for the model that accepts its guesses, of the sampler
        nearest in temperature, then with the same top-k; the default one if none was measured at
        all, ValueError if none for this pair.
        """
        wanted = f"{guesser} for {obeyed}, {siblings}"
        if not self.measured:
            return MatchTable()
        fitting = [one for one in self.measured if str(one) == wanted]
        if not fitting:
            known = "; ".join(sorted({*map(str, self.measured)}))
            raise ValueError(f"no match table of {wanted}, was measured; there are: {known}")
        return min(fitting, key=lambda one: one.distance(sampler)).table

    @functools.cached_property
    def max_gram(self) -> MaxGram:
        """Max-Gram with the bigram table of the Katz model, or without one where there is none."""
        return MaxGram(None if self.katz is None else self.katz.bigrams())

    def encode(self, prompt: Prompt | str) -> tuple[int, ...]:
        """The tokens of a prompt, as a user's turn where the tokenizer has a chat template; raises
        ValueError if a model cannot read as many, or the text holds half a surrogate pair.
        """
        text = prompt if isinstance(prompt, str) else prompt.text
        text.encode()
        if self.tokenizer.chat_template:
            text = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
        tokens = tuple(self.tokenizer.encode(text))
        if len(tokens) > self.max_positions:
            named = "a text" if isinstance(prompt, str) else f"the prompt {prompt.name}"
            most = f"the ladder reads at most {self.max_positions:,}"
            raise ValueError(f"{named} has {len(tokens):,} tokens, and {most}")
        return tokens

    def text(self, token: int) -> str:
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


@contextmanager
def neutral(ladder: Ladder) -> Iterator[None]:
    """A context without penalties or cut-offs of the models' own generation configurations."""
    before = [(model.model, model.model.generation_config) for model in ladder.models]
    for network, known in before:
        ids = {f"{name}_token_id": getattr(known, f"{name}_token_id") for name in SPECIAL}
        network.generation_config = GenerationConfig(**ids)
    try:
        yield
    finally:
        for network, known in before:
            network.generation_config = known
