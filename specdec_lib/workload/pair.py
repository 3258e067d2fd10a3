"""The embedded encoder-decoder pair: a T5 target and a T5 draft that write the docstring of a function."""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from specdec_lib.context import Context
from specdec_lib.ngram import MaxGram
from specdec_lib.seq2seq import Seq2SeqModel
from specdec_lib.workload.files import DATA, checked_card
from specdec_lib.workload.models import load_seq2seq
from specdec_lib.workload.prompts import Prompt


@dataclass(frozen=True)
class Pair:
    """Two encoder-decoder models that share a vocabulary, and what belongs to them.

    stop_tokens    the end-of-text token: an answer ends there
    """

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
        """A prompt as the encoder's source, and the token that the decoder starts from; the pair was trained on sources of up to 192 tokens."""
        source = self.tokenizer.encode(prompt if isinstance(prompt, str) else prompt.text)
        return Context.of((self.target.model.config.decoder_start_token_id,), tuple(source))

    def text(self, token: int) -> str:
        """What one token stands for."""
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


def load_pair(*, device: str = "auto", dtype: str = "float32", folder: Path = DATA / "pair") -> Pair:
    """The embedded pair, every file checked against its card.

    device    "auto" takes a GPU if there is one; "cpu", "cuda", …
    dtype     "float32", "float64" or "bfloat16"

    Raises ValueError if a file is missing or damaged, or device or dtype are unknown.
    """
    card = checked_card(folder, ("tokenizer.json", "target/model.safetensors", "draft/model.safetensors"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|endoftext|>")
    models = {name: load_seq2seq(folder / name, name, device=device, dtype=dtype) for name in ("target", "draft")}
    return Pair(**models, tokenizer=tokenizer, stop_tokens=(tokenizer.eos_token_id,), card=card)
