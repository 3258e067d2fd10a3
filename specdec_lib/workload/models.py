"""A model from a folder or from the hub: device, dtype and runtime are decided here, once."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from specdec_lib.lm import CachedModel
from specdec_lib.seq2seq import Seq2SeqModel
from specdec_lib.workload.files import DATA

if TYPE_CHECKING:
    from specdec_lib.runtime.fast import FastModel

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
RUNTIMES = ("reference", "fast", "auto")
CALIBRATION = DATA / "cache" / "runtime.json"
AutoModel = type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM]


def load_model(
    source: str | Path, name: str, *, device: str = "auto", dtype: str = "float32", runtime: str = "reference"
) -> "CachedModel | FastModel":
    """A decoder-only model from a local folder in hub format, or from the hub if `source` names no folder.

    runtime    "reference" runs any decoder as Hugging Face wrote it; "fast" runs GPT-2 and Llama models in float32 on the CPU; "auto" measures, once
               on a machine, which is faster and on how many threads, and takes the reference where the fast one cannot run; `.runtime` says which ran

    Raises ValueError if it cannot be read, or device, dtype or runtime are unknown or do not go together.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, got {runtime!r}")
    if runtime == "reference":
        return CachedModel(_loaded(AutoModelForCausalLM, source, device, dtype), name)
    elsewhere = device not in ("auto", "cpu") or dtype != "float32"
    if runtime == "auto":
        model = CachedModel(_loaded(AutoModelForCausalLM, source, device, dtype), name)
        return model if elsewhere or model.model.device.type != "cpu" else calibrated(model)
    if elsewhere:
        raise ValueError(f"the fast runtime computes in float32 on the CPU, got device={device!r} and dtype={dtype!r}")
    return faster(CachedModel(_loaded(AutoModelForCausalLM, source, "cpu", dtype), name))


def calibrated(model: CachedModel, *, cache: Path | None = None) -> "CachedModel | FastModel":
    """The same model on the runtime that is fastest here: the reference, or the fast one on one thread or on all of PyTorch's.

    cache    keeps the answer for the next time; None is data/cache/runtime.json
    """
    from specdec_lib.runtime.calibration import fastest

    try:
        counts = sorted({1, torch.get_num_threads()})
        fast = {f"fast, {threads} thread{'s' if threads > 1 else ''}": (faster(model), threads) for threads in counts}
    except ValueError:
        return model  # which the fast runtime does not know
    for one, threads in fast.values():
        one.use(threads)
    chosen = fastest({"reference": model} | {name: one for name, (one, _) in fast.items()}, cache=cache or CALIBRATION)
    return model if chosen == "reference" else fast[chosen][0]


def faster(model: "CachedModel | FastModel", *, name: str | None = None, stored: str = "exact") -> "FastModel":
    """The same model on the fast runtime of the CPU; with `stored="int8"` a cheap guesser of what it takes, under a name of its own.

    Raises ValueError if the fast runtime does not know the model, or Numba is not installed.
    """
    try:
        from specdec_lib.runtime.fast import FastModel  # Numba takes a second to import
    except ImportError as error:
        raise ValueError(f"the fast runtime needs Numba, which is not here ({error}); the reference runtime does without") from error
    return FastModel(model.model, name or model.name, stored=stored)


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
