"""A model from a folder or from the hub: device and dtype are decided here, once."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from specdec_lib.lm import CachedModel
from specdec_lib.seq2seq import Seq2SeqModel

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
AutoModel = type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM]


def load_model(source: str | Path, name: str, *, device: str = "auto", dtype: str = "float32") -> CachedModel:
    """A decoder-only model from a local folder in hub format, or from the hub if `source` names no folder.

    Raises ValueError if it cannot be read, or device or dtype are unknown.
    """
    return CachedModel(_loaded(AutoModelForCausalLM, source, device, dtype), name)


def load_seq2seq(source: str | Path, name: str, *, device: str = "auto", dtype: str = "float32", max_positions: int = 512) -> Seq2SeqModel:
    """An encoder-decoder model of the T5 family, such as "google/flan-t5-small": from a local folder in hub format, or from the hub.

    max_positions    of the decoder

    Raises ValueError if it cannot be read or is of another family, or device or dtype are unknown.
    """
    return Seq2SeqModel(_loaded(AutoModelForSeq2SeqLM, source, device, dtype), name, max_positions=max_positions)


def _loaded(kind: AutoModel, source: str | Path, device: str, dtype: str) -> PreTrainedModel:
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, got {dtype!r}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(f'device is "auto", "cpu" or, where there is a GPU, "cuda" or "cuda:N"; got {device!r}')
    disable_progress_bar()
    local = Path(source).is_dir()
    try:
        return kind.from_pretrained(str(source), dtype=DTYPES[dtype], local_files_only=local).to(device)
    except (OSError, ValueError, SafetensorError, RuntimeError) as error:
        where = "folder" if local else "hub model (no such local folder)"
        raise ValueError(f"{where} {source} cannot be read as a model on {device}: {error}") from error
