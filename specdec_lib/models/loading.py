"""A model from a folder or from the hub: device, dtype and runtime are decided here, once."""

from collections.abc import Mapping
from textwrap import shorten
from typing import TYPE_CHECKING

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
)
from transformers.utils.logging import disable_progress_bar

from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.complete import AutoModel, read_network
from specdec_lib.models.hub import Source, model_folder
from specdec_lib.models.seq2seq import Seq2SeqModel

if TYPE_CHECKING:
    from specdec_lib.models.fast.model import FastModel

LOCAL = {"trust_remote_code": False, "local_files_only": True}  # its code is never run
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
RUNTIMES = ("reference", "fast", "int8", "auto")
READERS = {AutoModelForCausalLM: "load_seq2seq", AutoModelForSeq2SeqLM: "load_model"}  # of others


@checked
def load_model(
    source: Source,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    runtime: str = "reference",
    tokens: int = 0,
    vocabulary: int | None = None,
) -> "CachedModel | FastModel":
    """A decoder-only model from a local folder in hub format, or from the hub: weights in
    safetensors only, and no code that comes with it.

    tokens        of its tokenizer, which it must embed
    vocabulary    that of a target for which the model drafts, see `resize_vocabulary`
    runtime       "reference" runs any decoder as Hugging Face wrote it; "fast" GPT-2 and Llama
                  models in float32 on the CPU, "int8" with rows and weights of eight bits, which is
                  another model; "auto" is "fast" where that knows the model, else the reference

    Raises ValueError if it cannot be read, or device, dtype and runtime do not go together.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, got {runtime!r}")
    if runtime in ("fast", "int8"):
        if device not in ("auto", "cpu") or dtype != "float32":
            got = f"device={device!r} and dtype={dtype!r}"
            raise ValueError(f"the fast runtime computes in float32 on the CPU, got {got}")
        device = "cpu"
    network = _load(AutoModelForCausalLM, source, device, dtype)
    rows = len(network.get_input_embeddings().weight)
    if rows < tokens:
        both = f"the tokenizer knows {tokens:,} tokens, and the {name} embeds {rows:,}"
        raise ValueError(f"{both}: they do not belong together")
    if vocabulary is not None:
        resize_vocabulary(network, vocabulary)
    return on_runtime(CachedModel(network, name), runtime)


def on_runtime(model: CachedModel, runtime: str) -> "CachedModel | FastModel":
    """The same model on a runtime, see `load_model`."""
    if runtime == "reference" or (runtime == "auto" and model.model.dtype != torch.float32):
        return model
    try:
        return fast_model(model, edition="int8" if runtime == "int8" else "exact")
    except ValueError:
        if runtime != "auto":
            raise
        return model


def load_seq2seq(
    source: Source,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    max_positions: int = 512,
) -> Seq2SeqModel:
    """A T5 model, such as "google/flan-t5-small", as `load_model` reads others."""
    network = _load(AutoModelForSeq2SeqLM, source, device, dtype)
    return Seq2SeqModel(network, name, max_positions=max_positions)


def fast_model(
    model: "CachedModel | FastModel", *, name: str | None = None, edition: str = "exact"
) -> "FastModel":
    """The same model on the fast CPU runtime; the edition "int8" is another model, and needs a name
    of its own as its draft.  Raises ValueError if the runtime does not know the model.
    """
    from specdec_lib.models.fast.model import FastModel  # Numba takes a second to import

    return FastModel(model.model, name or model.name, edition=edition)


def resize_vocabulary(network: PreTrainedModel, vocabulary: int) -> None:
    """Give the embedding and the logits of a draft so many rows, in place: models that share a
    tokenizer may differ in unused rows beyond it. Extra rows are cut, missing ones repeat the last.
    """
    rows = int(network.get_output_embeddings().weight.shape[0])
    if rows == vocabulary:
        return
    network.resize_token_embeddings(vocabulary, mean_resizing=False)
    head = network.get_output_embeddings()
    with torch.no_grad():
        for weights in (network.get_input_embeddings().weight, *head.parameters()):
            weights[rows:] = weights[min(rows, vocabulary) - 1].clone()


def sources_card(sources: Mapping[str, Source], models: Mapping[str, LanguageModel]) -> dict:
    """A card of models by name: where each comes from and its number of parameters."""
    sizes = {name: sum(map(torch.numel, one.model.parameters())) for name, one in models.items()}
    about = {name: {"source": str(sources[name]), "parameters": sizes[name]} for name in models}
    return {"models": about}


def _load(kind: AutoModel, source: Source, device: str, dtype: str) -> PreTrainedModel:
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, got {dtype!r}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        known = '"auto", "cpu" or, where there is a GPU, "cuda" or "cuda:N"'
        raise ValueError(f"device is {known}; got {device!r}")
    disable_progress_bar()
    folder = model_folder(source)
    try:
        config = AutoConfig.from_pretrained(folder, **LOCAL)
        if config.is_encoder_decoder == (kind is AutoModelForCausalLM):
            found = f"{'an' if config.is_encoder_decoder else 'no'} encoder-decoder model"
            raise ValueError(f"it is {found} ({config.model_type}), which `{READERS[kind]}` reads")
        network = read_network(kind, str(folder), config, DTYPES[dtype], LOCAL).to(device)
        network.config.name_or_path = str(source)
        return network
    except Exception as error:  # of whichever part of transformers the files upset
        why = shorten(f"{type(error).__name__}: {error}".removeprefix("ValueError: "), 400)
        raise ValueError(f"{source!s} cannot be read as a model on {device}: {why}") from error
