"""Ladders of decoder-only models, from largest to smallest: the embedded one, or your own."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerFast

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA, checked_card, file_digest
from specdec_lib.core.kinds import checked
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.reading import ReadingModel
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.generation import stop_tokens, warn_of_notes
from specdec_lib.models.hub import Source, load_tokenizer, model_folder, shared_tokenizer
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.loading import (
    LoadedModel,
    load_model,
    on_runtime,
    reading_on_runtime,
    sources_card,
)
from specdec_lib.models.prepared import PREPARED, prepared_folder
from specdec_lib.models.reading import reading_network
from specdec_lib.models.students import assemble, read_about
from specdec_lib.workload.encoding import encode_prompt
from specdec_lib.workload.prompts import Prompt

MATCH = "match.json"
HEAD = "head.json"  # the token ids that the drafts score
READING = "reading.safetensors"  # in a folder with a draft that reads the target
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
        name = f"measured at T={sampler.temperature:g}{top_k}"
        binned = map(tuple, stored["binned"])
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
    reading        a draft that reads the target's hidden states; None in a ladder without
    stop_tokens    tokens that end a generation
    """

    target: CachedModel | FastModel
    middle: CachedModel | FastModel | None
    draft: CachedModel | FastModel
    katz: Katz | None
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: tuple[int, ...]
    card: dict
    measured: tuple[Measured, ...] = ()
    reading: FastModel | ReadingModel | None = None

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """The models of this ladder: the largest first, and behind them the reading draft."""
        known = (self.target, self.middle, self.draft, self.reading)
        return tuple(model for model in known if model is not None)

    @property
    def max_positions(self) -> int:
        """The longest text that all models can read."""
        return min(model.max_positions for model in self.models)

    def match(
        self, guesser: str, sampler: Sampler, *, obeyed: str = "target", siblings: str = "ranked"
    ) -> MatchTable:
        """The match table that was measured for this guesser, the model `obeyed`, which verifies,
        and these siblings: at the nearest temperature, then with the same top-k. The default table
        if the ladder has no measured one; raises ValueError if it has, but none of these.
        """
        if not self.measured:
            return MatchTable()
        wanted = f"{guesser} for {obeyed}, {siblings}"
        fitting = [one for one in self.measured if str(one) == wanted]
        if not fitting:
            known = "; ".join(sorted({*map(str, self.measured)}))
            raise ValueError(f"no match table of {wanted}, was measured; there are: {known}")
        return min(fitting, key=lambda one: one.distance(sampler)).table

    @property
    def is_own(self) -> bool:
        """Whether its target is another than the prepared one, so that nothing is stored of it."""
        return "config" in self.card or "source" in self.card["models"].get("target", {})

    @functools.cached_property
    def max_gram(self) -> MaxGram:
        """Max-Gram with the bigram table of the Katz model, or without one where there is none."""
        return MaxGram(None if self.katz is None else self.katz.bigrams())

    def encode(self, prompt: Prompt | str) -> tuple[int, ...]:
        """The tokens of a prompt, as a user's turn where the tokenizer has a chat template; raises
        ValueError if the target cannot read as many, and as `encode_prompt` does. Where a draft
        reads less than the target, it guesses nothing beyond.
        """
        tokens = encode_prompt(self.tokenizer, prompt)
        if len(tokens) > self.target.max_positions:
            named = "a text" if isinstance(prompt, str) else f"the prompt {prompt.name}"
            raise ValueError(
                f"{named} has {len(tokens):,} tokens, and the target reads at most"
                f" {self.target.max_positions:,}"
            )
        return tokens

    def text(self, token: int) -> str:
        return str(self.tokenizer.decode([token], clean_up_tokenization_spaces=False))


@checked
def load_ladder(
    target: Source | None = None,
    draft: Source | None = None,
    middle: Source | None = None,
    *,
    tokenizer: Source | None = None,
    device: str = "auto",
    dtype: str = "float32",
    runtime: str = "reference",
    folder: Path = DATA / "ladder",
    warn: bool = True,
) -> Ladder:
    """The ladder of the SmolLM2 target and the drafts distilled from it, every file checked against
    its card; the one that `specdec distil` made of another target; or one of your own models, which
    share the target's tokenizer, token by token.

    target, draft, middle    folders in hub format or names on the hub; target and draft at least.
                             A folder that `specdec distil` made is a whole ladder: target alone
    tokenizer                a folder with the tokenizer, for models that have none
    device                   "auto" takes a GPU if there is one; "cpu", "cuda", …
    dtype                    "float32", "float64" or "bfloat16"
    runtime                  "reference", "fast", "int8" or "auto": see `load_model`
    warn                     issue `generation_notes` of your target as warnings

    Raises ValueError if a file is missing or damaged, or something given does not go together.
    """
    if target is not None and is_ladder(target):
        check_alone(target, {"draft": draft, "middle": middle, "tokenizer": tokenizer})
        target, folder = None, Path(target)
    given = {"target": target, "middle": middle, "draft": draft}
    sources = {name: source for name, source in given.items() if source is not None}
    load = functools.partial(load_model, device=device, dtype=dtype, runtime=runtime)
    if not sources and tokenizer is None:
        return _stored(folder, load, runtime, warn)
    if target is None or draft is None:
        raise ValueError(
            "a ladder of your own has a target and a draft at least,"
            f" got target={target!s} and draft={draft!s}"
        )
    return _of_models(sources, tokenizer, load, warn)


def _of_models(
    sources: dict[str, Source], tokenizer: Source | None, load: Callable[..., Any], warn: bool
) -> Ladder:
    """A ladder of one's own models."""
    shared = shared_tokenizer(sources, tokenizer)
    models: dict[str, CachedModel | FastModel] = {}
    for name, source in sources.items():
        rows = None if name == "target" else models["target"].vocabulary
        models[name] = load(source, name, tokens=len(shared), vocabulary=rows)
    network = models["target"].model
    stops = stop_tokens(network.generation_config, shared)
    if warn:
        warn_of_notes(network, shared, stacklevel=4)  # of what calls the checked function
    return Ladder(
        target=models["target"],
        middle=models.get("middle"),
        draft=models["draft"],
        katz=None,
        tokenizer=shared,
        stop_tokens=stops,
        card=sources_card(sources, models),
    )


def is_ladder(source: Source) -> bool:
    """Whether a source is a folder of a ladder, as `specdec distil` makes it."""
    return all(isfile(f"{source!s}/{name}") for name in ("card.json", HEAD, "katz.npz"))


def check_alone(ladder: Source, others: dict[str, Source | None]) -> None:
    """Raises ValueError if something is named beside a whole ladder."""
    if named := [name for name, one in others.items() if one is not None]:
        raise ValueError(f"{ladder!s} is a whole ladder; got a {named[0]} beside it")


def _stored(folder: Path, load: Callable[..., Any], runtime: str, warn: bool) -> Ladder:
    """A target, the prepared one or the card's, and the drafts of its layers in a folder."""
    card = checked_card(folder, (HEAD, "katz.npz"))
    source = target_of(card, folder)
    tokenizer = load_tokenizer(source)
    target = load(source, "target", tokens=len(tokenizer))
    models = {}
    head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    for name in ("middle", "draft"):
        path = folder / f"{name}.safetensors"
        if name == "middle" and name not in card["models"]:
            continue
        network = assemble(target.model, path)
        cut_head(network, head)
        window = read_about(path).get("window")
        models[name] = on_runtime(CachedModel(network, name, window=window), runtime)
    tables = folder / MATCH
    stored = tables.read_text(encoding="utf-8") if tables.is_file() else "[]"
    if warn and source != prepared_folder():
        warn_of_notes(target.model, tokenizer, stacklevel=4)  # of what calls the checked function
    return Ladder(
        target=target,
        middle=models.get("middle"),
        draft=models["draft"],
        katz=Katz.load(folder / "katz.npz"),
        tokenizer=tokenizer,
        stop_tokens=stop_tokens(target.model.generation_config, tokenizer),
        card=card,
        measured=tuple(map(Measured.of, json.loads(stored))),
        reading=reading_draft(folder, target),
    )


def target_of(card: dict, folder: Path) -> Source:
    """The target that a ladder's card names, or the prepared one.  Raises ValueError if it is not
    there, or has another configuration than the one that the drafts were made of.
    """
    if "config" not in card:
        return target_folder()
    source = card["target"]
    if file_digest(model_folder(source) / "config.json") != card["config"]:
        raise ValueError(
            f"the ladder in {folder} is of the target {source}, whose config.json is another one"
            " now"
        )
    return source


def reading_draft(folder: Path, target: CachedModel | FastModel) -> FastModel | ReadingModel | None:
    """The draft of a folder, such as data/ladder, that reads this target, on its runtime; None in a
    folder without one.  Raises ValueError if it is another target's, or the tokens that it scores,
    head.json, are missing.
    """
    path = folder / READING
    if not path.is_file():
        return None
    if not (folder / HEAD).is_file():
        raise ValueError(f"{folder} has a draft and lacks {HEAD}, the tokens that it scores")
    network = reading_network(target.model, path)
    cut_head(network, json.loads((folder / HEAD).read_text(encoding="utf-8")))
    return reading_on_runtime(network, target, "reading", window=read_about(path)["window"])


def target_folder() -> Path:
    """The folder of the prepared target.  Raises ValueError if there is none."""
    folder = prepared_folder()
    if not (folder / PREPARED).is_file():
        raise ValueError(
            f"the target is not prepared: {folder} is missing. `specdec setup` downloads it once"
            " (98 MB) and converts it (538 MB); or name models of your own: target=…, draft=…"
        )
    return folder


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
