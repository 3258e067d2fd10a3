"""A pair of T5 models: the embedded ones, which write the docstring of a function, or your own."""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, checked_card
from specdec_lib.core.kinds import checked
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.cached.model import Seq2SeqModel
from specdec_lib.models.hub import Source, shared_tokenizer, stop_tokens
from specdec_lib.models.loading import load_seq2seq, sources_card
from specdec_lib.workload.prompts import Prompt


@dataclass(frozen=True)
class Pair:
    """Two encoder-decoder models that share a vocabulary, with their tokenizer and stop tokens."""

    target: Seq2SeqModel
    draft: Seq2SeqModel
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: tuple[int, ...]
    card: dict

    @property
    def max_gram(self) -> MaxGram:
        """Max-Gram, which copies from the source; it has no bigram table."""
        return MaxGram()

    def encode(self, prompt: Prompt | str) -> Context:
        """A context with the prompt as its source (up to 192 tokens) and the decoder's start."""
        text = prompt if isinstance(prompt, str) else prompt.text
        text.encode()  # a ValueError for half of a surrogate pair
        source = self.tokenizer.encode(text)
        return Context.of((self.target.model.config.decoder_start_token_id,), tuple(source))

    def text(self, token: int) -> str:
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


@checked
def load_pair(
    target: Source | None = None,
    draft: Source | None = None,
    *,
    tokenizer: Source | None = None,
    device: str = "auto",
    dtype: str = "float32",
    folder: Path = DATA / "pair",
) -> Pair:
    """The embedded pair, or one of your own T5 models; arguments and errors as of `load_ladder`."""
    sources: dict[str, Source] = {"target": folder / "target", "draft": folder / "draft"}
    if target is None and draft is None and tokenizer is None:
        tokens = "tokenizer.json"
        card = checked_card(folder, (tokens, *(f"{name}/model.safetensors" for name in sources)))
        shared = PreTrainedTokenizerFast(
            tokenizer_file=str(folder / tokens), eos_token="<|endoftext|>"
        )
    elif target is None or draft is None:
        got = f"target={target!s} and draft={draft!s}"
        raise ValueError(f"a pair of your own has a target and a draft, got {got}")
    else:
        card, sources = None, {"target": target, "draft": draft}
        shared = shared_tokenizer(sources, tokenizer)
    models = {
        name: load_seq2seq(source, name, device=device, dtype=dtype)
        for name, source in sources.items()
    }
    sizes = [models[name].vocabulary for name in ("target", "draft")]
    if sizes[0] != sizes[1]:
        raise ValueError(f"target and draft have as many tokens with padding, got {sizes}")
    stops = stop_tokens(None if card else models["target"].model.generation_config, shared)
    return Pair(
        **models, tokenizer=shared, stop_tokens=stops, card=card or sources_card(sources, models)
    )
