"""The embedded pair of T5 models, which write the docstring of a function."""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA, checked_card
from specdec_lib.core.kinds import checked
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.cached.model import Seq2SeqModel
from specdec_lib.models.generation import stop_tokens
from specdec_lib.models.loading import load_seq2seq
from specdec_lib.workload.encoding import encode_prompt
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
        source = encode_prompt(self.tokenizer, prompt)
        return Context.of((self.target.model.config.decoder_start_token_id,), source)


@checked
def load_pair(
    *, device: str = "auto", dtype: str = "float32", folder: Path = DATA / "pair"
) -> Pair:
    """The pair, every file checked against its card; device and dtype as of `load_ladder`."""
    names, tokens = ("target", "draft"), "tokenizer.json"
    card = checked_card(folder, (tokens, *(f"{name}/model.safetensors" for name in names)))
    models = {name: load_seq2seq(folder / name, name, device=device, dtype=dtype) for name in names}
    file, end = str(folder / tokens), "<|endoftext|>"
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=file, eos_token=end)
    return Pair(**models, tokenizer=tokenizer, stop_tokens=stop_tokens(None, tokenizer), card=card)
