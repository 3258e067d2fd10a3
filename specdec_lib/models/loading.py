"""A model from a folder or from the hub: device, dtype and runtime are decided here, once."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils.logging import disable_progress_bar

from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.hub import is_local, offline
from specdec_lib.models.seq2seq import Seq2SeqModel

if TYPE_CHECKING:
    from specdec_lib.models.fast.model import FastModel

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
RUNTIMES = ("reference", "fast", "auto")
CALIBRATION = DATA / "cache" / "runtime.json"
AutoModel = type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM]


def load_model(
    source: str | Path,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    runtime: str = "reference",
    vocabulary: int | None = None,
) -> "CachedModel | FastModel":
    """A decoder-only model from a local folder in hub format, or from the hub if `source` names no
    folder.

    vocabulary    of the target that it drafts for: see `resized`; None leaves it as it is
    runtime    "reference" runs any decoder as Hugging Face wrote it; "fast" runs GPT-2 and Llama
               models in float32 on the CPU; "auto" measures, once on a machine, which is faster and
               on how many threads, and takes the reference where the fast one cannot run;
               `.runtime` says which ran

    Only weights in safetensors are read, and code that comes with a model is never run.
    Raises ValueError if it cannot be read, or device, dtype or runtime are unknown or do not go
    together.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, got {runtime!r}")
    elsewhere = device not in ("auto", "cpu") or dtype != "float32"
    if runtime == "fast" and elsewhere:
        raise ValueError(
            f"the fast runtime computes in float32 on the CPU, got device={device!r} and"
            f" dtype={dtype!r}"
        )
    network = _loaded(AutoModelForCausalLM, source, "cpu" if runtime == "fast" else device, dtype)
    model = CachedModel(network if vocabulary is None else resized(network, vocabulary), name)
    if runtime == "fast":
        return faster(model)
    return (
        model
        if runtime == "reference" or elsewhere or network.device.type != "cpu"
        else calibrated(model)
    )


def resized(network: PreTrainedModel, vocabulary: int) -> PreTrainedModel:
    """The same network with so many rows in its embedding and its logits, changed in place.

    Models of one family often share a tokenizer and differ in rows beyond it, which stand for
    nothing. Those belong to the target's law, so it is the draft that is fitted: rows too many are
    cut, and where some are missing its last row is repeated. It guesses a little differently then,
    which no rule minds.
    """
    rows = int(network.get_output_embeddings().weight.shape[0])
    if rows == vocabulary:
        return network
    network.resize_token_embeddings(vocabulary, mean_resizing=False)
    with torch.no_grad():
        for layer in (network.get_input_embeddings(), network.get_output_embeddings()):
            for weights in (layer.weight, getattr(layer, "bias", None)):
                if weights is not None and rows < vocabulary:
                    weights[rows:] = weights[rows - 1].clone()
    return network


def own_card(sources: Mapping[str, str | Path], models: Mapping[str, LanguageModel]) -> dict:
    """What a card says of models that have none: by name, where each comes from and how many
    parameters it has.
    """
    sizes = {
        name: sum(weights.numel() for weights in one.model.parameters())
        for name, one in models.items()
    }
    return {
        "models": {
            name: {"source": str(sources[name]), "parameters": sizes[name]} for name in models
        }
    }


def calibrated(model: CachedModel, *, cache: Path | None = None) -> "CachedModel | FastModel":
    """The same model on the runtime that is fastest here: the reference, or the fast one on one
    thread or on all of PyTorch's.

    cache    keeps the answer for the next time; None is data/cache/runtime.json
    """
    from specdec_lib.models.fast.calibration import fastest

    try:
        counts = sorted({1, torch.get_num_threads()})
        fast = {
            f"fast, {threads} thread{'s' if threads > 1 else ''}": (faster(model), threads)
            for threads in counts
        }
    except ValueError:
        return model  # which the fast runtime does not know
    for one, threads in fast.values():
        one.use(threads)
    chosen = fastest(
        {"reference": model} | {name: one for name, (one, _) in fast.items()},
        cache=cache or CALIBRATION,
    )
    return model if chosen == "reference" else fast[chosen][0]


def faster(
    model: "CachedModel | FastModel", *, name: str | None = None, stored: str = "exact"
) -> "FastModel":
    """The same model on the fast runtime of the CPU; with `stored="int8"` a cheap guesser of what
    it takes, under a name of its own.

    Raises ValueError if the fast runtime does not know the model, or Numba is not installed.
    """
    try:
        from specdec_lib.models.fast.model import FastModel  # Numba takes a second to import
    except ImportError as error:
        raise ValueError(
            f"the fast runtime needs Numba, which is not here ({error}); the reference runtime does"
            " without"
        ) from error
    return FastModel(model.model, name or model.name, stored=stored)


def load_seq2seq(
    source: str | Path,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "float32",
    max_positions: int = 512,
) -> Seq2SeqModel:
    """An encoder-decoder model of the T5 family, such as "google/flan-t5-small": from a local
    folder in hub format, or from the hub.

    max_positions    of the decoder

    Raises ValueError if it cannot be read or is of another family, or device or dtype are unknown.
    """
    return Seq2SeqModel(
        _loaded(AutoModelForSeq2SeqLM, source, device, dtype), name, max_positions=max_positions
    )


def _loaded(kind: AutoModel, source: str | Path, device: str, dtype: str) -> PreTrainedModel:
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, got {dtype!r}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(
            f'device is "auto", "cpu" or, where there is a GPU, "cuda" or "cuda:N"; got {device!r}'
        )
    disable_progress_bar()
    local = is_local(source)
    unasked = "" if local else offline()
    options = {"local_files_only": local or bool(unasked), "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(str(source), **options)
        reason = _unfit(kind, config)
        if not reason:
            return kind.from_pretrained(
                str(source), config=config, dtype=DTYPES[dtype], use_safetensors=True, **options
            ).to(device)
    except (OSError, ValueError, KeyError, SafetensorError, RuntimeError, ImportError) as error:
        reason = (
            _pickled(Path(source))
            if local
            else f"it is not among what was downloaded, and {unasked}; or give a local folder"
            if unasked
            else ""
        )
        reason = reason or str(error)
        raise ValueError(
            f"{_called(source, local)} cannot be read as a model on {device}: {reason}"
        ) from error
    raise ValueError(f"{_called(source, local)} cannot be read as a model on {device}: {reason}")


def _called(source: str | Path, local: bool) -> str:
    return f"folder {source}" if local else f"hub model {source} (no such local folder)"


def _unfit(kind: AutoModel, config: PretrainedConfig) -> str:
    """What is wrong with a model of this configuration, in words."""
    if kind is AutoModelForCausalLM and config.is_encoder_decoder:
        return f"it is an encoder-decoder model ({config.model_type}), which `load_seq2seq` reads; a decoder-only one is wanted"
    if kind is AutoModelForSeq2SeqLM and not config.is_encoder_decoder:
        return f"it is not an encoder-decoder model ({config.model_type}): a decoder-only one is read by `load_model`"
    return ""


def _pickled(folder: Path) -> str:
    """What to do about a folder whose weights are pickled, in words; "" for any other."""
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if not pickled or any(folder.glob("*.safetensors")):
        return ""
    return f"its weights are pickled ({pickled[0]}), and reading those can run any code; store it anew with `model.save_pretrained` as safetensors"
