"""Pairs of T5 models: the embedded one, which writes the docstring of a function, or your own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from transformers import PreTrainedTokenizerFast

from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, checked_card
from specdec_lib.core.kinds import Within, checked
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.cached.probing import BEYOND
from specdec_lib.models.generation import stop_tokens, warn_of_notes
from specdec_lib.models.hub import Source, shared_tokenizer
from specdec_lib.models.loading import load_seq2seq, sources_card
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.workload.encoding import encode_prompt
from specdec_lib.workload.prompts import Prompt

Load = Callable[..., Seq2SeqModel]

NAMES = ("target", "draft")
TOKENIZER = "tokenizer.json"
END = "<|endoftext|>"  # of the embedded pair


@dataclass(frozen=True)
class Pair:
    """Two encoder-decoder models that share a vocabulary, with their tokenizer.

    start_token    the token that the target's decoder starts with
    stop_tokens    tokens that end a generation
    """

    target: Seq2SeqModel
    draft: Seq2SeqModel
    tokenizer: PreTrainedTokenizerFast
    start_token: int
    stop_tokens: tuple[int, ...]
    card: dict

    @property
    def max_gram(self) -> MaxGram:
        """Max-Gram, which copies from the source; it has no bigram table."""
        return MaxGram()

    def encode(self, prompt: Prompt | str) -> Context:
        """A context with the prompt as its source and the decoder's start token as its tokens. The
        embedded models were trained on sources of up to 192 tokens.
        """
        return Context.of((self.start_token,), encode_prompt(self.tokenizer, prompt))

    def text(self, token: int) -> str:
        """The text of one token."""
        return str(self.tokenizer.decode([token], clean_up_tokenization_spaces=False))


@checked
def load_pair(
    target: Source | None = None,
    draft: Source | None = None,
    *,
    tokenizer: Source | None = None,
    device: str = "auto",
    dtype: str = "float32",
    max_positions: Annotated[int, Within(BEYOND + 1)] = 512,
    folder: Path = DATA / "pair",
) -> Pair:
    """The embedded pair, every file checked against its card; or two T5 models of your own, such as
    FLAN-T5, that share the target's tokenizer, token by token.

    target, draft    folders in hub format or names on the hub; both, or none of them
    tokenizer        a folder with the tokenizer, for models that have none
    device, dtype    as of `load_ladder`
    max_positions    tokens that the decoders read at most; T5 has no limit of its own. A few are
                     needed to try a model

    Raises ValueError if a file is missing or damaged, or something given does not go together.
    """
    load = partial(load_seq2seq, device=device, dtype=dtype, max_positions=max_positions)
    if target is None and draft is None and tokenizer is None:
        return _embedded(folder, load)
    if target is None or draft is None:
        raise ValueError(
            f"a pair of your own has a target and a draft, got target={target!s} and"
            f" draft={draft!s}"
        )
    sources = {"target": target, "draft": draft}
    shared = shared_tokenizer(sources, tokenizer)
    models = {name: load(source, name, tokens=len(shared)) for name, source in sources.items()}
    rows = [models[name].vocabulary for name in NAMES]
    if rows[0] != rows[1]:
        raise ValueError(
            "target and draft of a pair must have equally many rows of logits, padding included;"
            f" the target has {rows[0]:,} and the draft {rows[1]:,}"
        )
    warn_of_notes(models["target"].model, shared, stacklevel=3)  # of what calls this
    return Pair(
        **models,
        tokenizer=shared,
        start_token=models["target"].start_token,
        stop_tokens=stop_tokens(models["target"].model.generation_config, shared),
        card=sources_card(sources, models),
    )


def _embedded(folder: Path, load: Load) -> Pair:
    """The pair in `data/pair`, or in another folder with its files."""
    card = checked_card(folder, (TOKENIZER, *(f"{name}/model.safetensors" for name in NAMES)))
    models = {name: load(folder / name, name) for name in NAMES}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / TOKENIZER), eos_token=END)
    return Pair(
        **models,
        tokenizer=tokenizer,
        start_token=models["target"].start_token,
        stop_tokens=stop_tokens(None, tokenizer),
        card=card,
    )
