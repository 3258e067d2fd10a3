"""A model from a folder or from the hub: device, dtype and runtime are decided here, once."""

from collections.abc import Mapping
from pathlib import Path
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

from specdec_lib.core.files import cache_folder
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.complete import AutoModel, read_network
from specdec_lib.models.hub import Source, locate
from specdec_lib.models.seq2seq import Seq2SeqModel

if TYPE_CHECKING:
    from specdec_lib.models.fast.model import FastModel

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
READERS = {AutoModelForCausalLM: "load_seq2seq", AutoModelForSeq2SeqLM: "load_model"}  # of others
RUNTIMES = ("reference", "fast", "int8", "auto")


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
                  models in float32 on the CPU; "int8" with rows and weights of eight bits, which is
                  another model, see `FastModel`; "auto" measures once per machine whether the
                  reference or "fast", and on how many threads, is faster

    Raises ValueError if the model cannot be read or lacks weights or tokens, or device, dtype or
    runtime are unknown or do not go together.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, got {runtime!r}")
    suits_fast = device in ("auto", "cpu") and dtype == "float32"
    if runtime in ("fast", "int8") and not suits_fast:
        got = f"device={device!r} and dtype={dtype!r}"
        raise ValueError(f"the fast runtime computes in float32 on the CPU, got {got}")
    device = "cpu" if runtime in ("fast", "int8") else device
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
    if runtime in ("fast", "int8"):
        return fast_model(model, edition="exact" if runtime == "fast" else "int8")
    network = model.model
    suits_fast = network.device.type == "cpu" and network.dtype == torch.float32
    return choose_runtime(model) if runtime == "auto" and suits_fast else model


def load_seq2seq(
    source: Source,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    max_positions: int = 512,
) -> Seq2SeqModel:
    """A T5 model, such as "google/flan-t5-small", from a local folder in hub format or the hub;
    `max_positions` are the decoder's.
    """
    network = _load(AutoModelForSeq2SeqLM, source, device, dtype)
    return Seq2SeqModel(network, name, max_positions=max_positions)


def fast_model(
    model: "CachedModel | FastModel",
    *,
    name: str | None = None,
    edition: str = "exact",
    threads: int | None = None,
) -> "FastModel":
    """The same model on the fast CPU runtime; `edition="int8"` is another model, and needs a name
    of its own as its draft.  Raises ValueError if the fast runtime does not know the model.
    """
    from specdec_lib.models.fast.model import FastModel  # Numba takes a second to import

    return FastModel(model.model, name or model.name, edition=edition, threads=threads)


def choose_runtime(model: CachedModel, *, cache: Path | None = None) -> "CachedModel | FastModel":
    """The same model on the runtime that is fastest here: the reference, or the fast one on one or
    all threads; the file `cache` keeps the choice.
    """
    from specdec_lib.models.fast.calibration import fastest
    from specdec_lib.models.fast.tiles import DIGEST

    candidates: dict[str, CachedModel | FastModel] = {"reference": model}
    try:
        for threads in sorted({1, torch.get_num_threads()}):
            name = f"fast, {threads} thread{'s' if threads > 1 else ''}"
            candidates[name] = fast_model(model, threads=threads)
    except ValueError:
        return model  # the fast runtime does not know it
    identity = (DIGEST, repr(model.model.config))
    cache = cache or cache_folder() / "runtime.json"
    return candidates[fastest(candidates, identity=identity, cache=cache)]


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
    where = locate(source)
    options = {"local_files_only": where.files_only, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(str(source), **options)
        encodes, reader = config.is_encoder_decoder, READERS[kind]
        if encodes == (kind is AutoModelForCausalLM):
            found = f"{'an' if encodes else 'no'} encoder-decoder model ({config.model_type})"
            raise ValueError(f"it is {found}, which `{reader}` reads")
        network = read_network(kind, str(source), config, DTYPES[dtype], options)
        return network.to(device)
    except Exception as error:  # of whichever part of transformers the files upset
        reason = _pickled(Path(source)) if where.local else ""
        if where.offline and isinstance(error, OSError):
            reason = f"it was not downloaded before, and {where.offline}; or give a local folder"
        kind_of = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        told = reason or shorten(f"{kind_of}{error}", 400)
        raise ValueError(f"{where.name} cannot be read as a model on {device}: {told}") from error


def _pickled(folder: Path) -> str:
    """What to do about a folder whose weights are pickled, in words; "" for any other."""
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if not pickled or any(folder.glob("*.safetensors")):
        return ""
    remedy = "store it anew with `model.save_pretrained` as safetensors"
    return f"its weights are pickled ({pickled[0]}), and reading those can run any code; {remedy}"
