"""A model from a folder or the hub: device, dtype and runtime are decided here, once. It is refused
unless its files hold the tensors that its configuration asks for, and no other: Transformers would
fill in, leave out, and open any file that an index names.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeGuard

import torch
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, logging

from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.reading import ReadingModel
from specdec_lib.models.cut_head import output_weight
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.hub import LOCAL, Source, model_folder
from specdec_lib.models.mapped import give_back, mapped_places
from specdec_lib.models.seq2seq import Seq2SeqModel

LoadedModel = CachedModel | FastModel | ReadingModel
"""A decoder-only model on one of the runtimes."""
AutoModel = type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM]
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
HALVES = {"BF16": torch.bfloat16, "F16": torch.float16}  # by their names in safetensors files
RUNTIMES = ("reference", "fast", "int8", "auto")
READERS = {AutoModelForCausalLM: "load_seq2seq", AutoModelForSeq2SeqLM: "load_model"}  # of others
LIMITS = {  # to build more layers takes seconds, and never ends for a mistyped number
    "num_hidden_layers": (1, 1000),
    "num_decoder_layers": (1, 1000),
    "num_attention_heads": (1, 10_000),
    "num_key_value_heads": (1, 10_000),
    "max_position_embeddings": (1, 2**30),
}
LOOKED_AT = 2**22  # numbers of a tensor, at a time
EPSILON = re.compile(r"\w*norm\w*_eps(ilon)?")
SHARD = re.compile(r"[^/\\]+\.safetensors")


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
) -> CachedModel | FastModel:
    """A decoder-only model from a local folder in hub format, or from the hub: weights in
    safetensors only, and no code that comes with it.

    tokens        of its tokenizer, which it must embed
    vocabulary    that of a target for which the model drafts, see `resize_vocabulary`
    runtime       "reference" runs any decoder as Hugging Face wrote it; "fast" those of the kinds
                  in `models.fast.families` in float32 on the CPU (weights of bfloat16 are
                  converted), "int8" with rows and weights of eight bits, which is another model;
                  "auto" is "fast" where that knows the model, else the reference, see
                  `why_not_fast`
    dtype         of the network; on the compiled runtimes files in bfloat16 or float16 are not
                  converted to float32 as a whole, for it is their numbers that are read

    Raises ValueError if it cannot be read, or device, dtype and runtime do not go together.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, got {runtime!r}")
    if runtime in ("fast", "int8") and device == "auto":
        device = "cpu"

    def read(*, as_stored: bool) -> PreTrainedModel:
        network = _load(AutoModelForCausalLM, source, device, dtype, as_stored=as_stored)
        _check_embedded(network, name, tokens)
        if vocabulary is not None:
            resize_vocabulary(network, vocabulary)
        return network

    network = read(as_stored=runtime != "reference" and _device(device) == "cpu")
    if runtime == "reference":
        return CachedModel(network, name)
    try:
        edition = "int8" if runtime == "int8" else "exact"
        return FastModel(network, name, edition=edition, as_in_files=True)
    except ValueError:
        if runtime != "auto":
            raise
        if network.dtype != DTYPES[dtype]:  # what was rounded, as the scale of embeddings, stays so
            network = read(as_stored=False)
        return CachedModel(network, name)


def on_runtime(model: CachedModel, runtime: str) -> CachedModel | FastModel:
    """The same model on a runtime, see `load_model`."""
    if runtime == "reference":
        return model
    try:
        return as_fast(model, "int8" if runtime == "int8" else "exact")
    except ValueError:
        if runtime != "auto":
            raise
        return model


def as_fast(model: LoadedModel, edition: str) -> FastModel:
    """The same model on the fast runtime, in an edition, with its window and the target that it
    reads, if any.  Raises ValueError if the fast runtime does not know it.
    """
    return FastModel(
        model.model,
        model.name,
        edition=edition,
        window=model.window,
        target=None if isinstance(model, CachedModel) else model.target,
    )


def reading_on_runtime(
    network: PreTrainedModel, target: CachedModel | FastModel, name: str, *, window: int
) -> FastModel | ReadingModel:
    """A draft that reads its target, on the runtime and in the edition of the target."""
    if isinstance(target, CachedModel):
        return ReadingModel(network, target, name, window=window)
    return FastModel(network, name, edition=target.edition, window=window, target=target)


def why_not_fast(model: LanguageModel) -> str | None:
    """Why `auto` runs a model on the reference runtime; None if it does not."""
    if not isinstance(model, CachedModel):
        return None
    try:
        FastModel(model.model, model.name)
    except ValueError as refusal:
        return str(refusal)
    return None


@checked
def load_seq2seq(
    source: Source,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    tokens: int = 0,
    max_positions: int = 512,
) -> Seq2SeqModel:
    """A T5 model, such as "google/flan-t5-small", as `load_model` reads others.

    tokens           of its tokenizer, which it must embed
    max_positions    tokens that the decoder reads at most; T5 has no limit of its own

    Raises ValueError as `load_model`.
    """
    network = _load(AutoModelForSeq2SeqLM, source, device, dtype)
    _check_embedded(network, name, tokens)
    return Seq2SeqModel(network, name, max_positions=max_positions)


def _check_embedded(network: PreTrainedModel, name: str, tokens: int) -> None:
    """Raises ValueError unless a network embeds all tokens of its tokenizer."""
    embedded: Any = network.get_input_embeddings()
    rows = len(embedded.weight)
    if rows < tokens:
        raise ValueError(
            f"the tokenizer knows {tokens:,} tokens, and the {name} embeds {rows:,}:"
            " they do not belong together"
        )


def resize_vocabulary(network: PreTrainedModel, vocabulary: int) -> None:
    """Give the embedding and the logits of a draft so many rows, in place: models that share a
    tokenizer may differ in unused rows beyond it. Extra rows are cut, missing ones repeat the last.
    """
    rows = len(output_weight(network))
    if rows == vocabulary:
        return
    network.resize_token_embeddings(vocabulary, mean_resizing=False)
    head: Any = network.get_output_embeddings()
    embedded: Any = network.get_input_embeddings()
    with torch.no_grad():
        for weights in (embedded.weight, *head.parameters()):
            weights[rows:] = weights[min(rows, vocabulary) - 1].clone()


def sources_card(
    sources: Mapping[str, Source], models: Mapping[str, LoadedModel | Seq2SeqModel]
) -> dict:
    """A card of models by name: where each comes from and its number of parameters."""
    sizes = {name: sum(map(torch.numel, one.model.parameters())) for name, one in models.items()}
    about = {name: {"source": str(sources[name]), "parameters": sizes[name]} for name in models}
    return {"models": about}


def _device(device: str) -> str:
    """The device that "auto" is; any other as it is named."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def _load(
    kind: Any, source: Source, device: str, dtype: str, *, as_stored: bool = False
) -> PreTrainedModel:
    """The network of a source on a device.

    as_stored    of float32, half precisions in the files stay as they are
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, got {dtype!r}")
    device = _device(device)
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(
            f'device is "auto", "cpu" or, where there is a GPU, "cuda" or "cuda:N"; got {device!r}'
        )
    folder = model_folder(source)
    try:
        stored = stored_dtype(folder) if as_stored and dtype == "float32" else None
        network = _read_network(kind, folder, stored or DTYPES[dtype])
        network.to(device=torch.device(device))  # pyright: ignore[reportCallIssue]  # wrapped
    except Exception as error:  # of whichever part of transformers the files upset
        why = shorten(f"{type(error).__name__}: {error}".removeprefix("ValueError: "), 400)
        raise ValueError(f"{source!s} cannot be read as a model on {device}: {why}") from error
    network.config.name_or_path = str(source)
    return network


def stored_dtype(folder: Path) -> torch.dtype | None:
    """The half precision of all tensors in a folder's safetensors files; None for another."""
    kinds = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            kinds |= {file.get_slice(name).get_dtype() for name in file.keys()}
    return HALVES.get(kinds.pop()) if len(kinds) == 1 else None


def _read_network(kind: Any, folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The network of a folder, on the CPU; raises ValueError if its kind or files are wrong."""
    _check_numbers(PretrainedConfig.get_config_dict(folder, **LOCAL)[0])  # some divide by them
    config = AutoConfig.from_pretrained(folder, **LOCAL)
    if config.is_encoder_decoder == (kind is AutoModelForCausalLM):
        article = "an" if config.is_encoder_decoder else "no"
        raise ValueError(
            f"it is {article} encoder-decoder model ({config.model_type}), which"
            f" `{READERS[kind]}` reads"
        )
    text = config.get_text_config()
    _check_numbers({name: getattr(text, name, None) for name in LIMITS} | text.to_dict())
    _check_index(folder, config)
    safe = {"config": config, "dtype": dtype, "use_safetensors": True, **LOCAL}
    told = {"device_map": "meta", "ignore_mismatched_sizes": True, "output_loading_info": True}
    before = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # of what would be reported, the errors below tell
    try:
        expected, found = kind.from_pretrained(folder, **safe, **told)  # takes no memory
    finally:
        logging.set_verbosity(before)
    _check_tensors(found)
    network = kind.from_pretrained(folder, **safe)
    if untied := expected.all_tied_weights_keys.keys() - network.all_tied_weights_keys.keys():
        raise ValueError(f"its configuration ties {min(untied)!r}, and its files hold two tensors")
    mapped = mapped_places()
    for name, tensor in network.named_parameters():
        pieces = tensor.detach().flatten().split(LOOKED_AT)
        # sums are the quickest look, and pieces need little memory for them
        if not all(piece.sum(dtype=torch.float64).isfinite() for piece in pieces):
            raise ValueError(f"its tensor {name!r} holds NaN or infinite numbers")
        give_back([tensor], mapped)
    return network


def _check_numbers(fields: Mapping[Any, Any]) -> None:
    """Raises ValueError for numbers of a configuration, also those in groups, that no model has: of
    layers, heads and positions; and the base of rotary positions and what a norm adds, of which a
    wrong one changes the text and no tensor's shape.
    """
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _check_numbers(value)
        elif value is not None:
            _check_number(str(name), value)


def _check_number(name: str, value: object) -> None:
    if name in LIMITS:
        least, most = LIMITS[name]
        if not (_is_number(value) and least <= value <= most):
            raise ValueError(f"its {name} is {value!r}, allowed are {least:,} to {most:,}")
    elif name == "rope_theta" and not (_is_number(value) and 0 < value < math.inf):
        raise ValueError(f"its rope_theta is {value!r}, allowed are finite numbers above 0")
    elif EPSILON.fullmatch(name) and not (_is_number(value) and 1e-20 <= value <= 1):
        raise ValueError(f"its {name} is {value!r}, allowed are 1e-20 to 1")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_index(folder: Path, config: PretrainedConfig) -> None:
    name = getattr(config, "transformers_weights", None) or SAFE_WEIGHTS_INDEX_NAME
    if name.endswith(".index.json") and (folder / name).is_file():
        index = json.loads((folder / name).read_text(encoding="utf-8"))
        for file in index["weight_map"].values():
            if not (isinstance(file, str) and SHARD.fullmatch(file)):
                raise ValueError(
                    f"its index {name} names {file!r}; allowed are .safetensors beside it"
                )


def _check_tensors(found: Mapping[str, Any]) -> None:
    if others := sorted(found["mismatched_keys"]):
        name, stored, wanted = others[0]
        raise ValueError(
            f"its tensor {name!r} has the shape {list(stored)} in the files and {list(wanted)} in"
            " its configuration"
        )
    for what in ("missing", "unexpected"):
        if names := sorted(found[f"{what}_keys"]):
            raise ValueError(
                f"its tensors are not those of its configuration, {len(names)} {what}:"
                f" {', '.join(map(repr, names[:3]))}"
            )
