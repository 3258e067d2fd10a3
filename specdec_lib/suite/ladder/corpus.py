"""The text that the ladder learns from: Python source, docstrings and worked word problems,
held-out files kept apart.

A document ends with the end-of-text token, so a trained model ends its function or answer. A file
is held out, with everything in it, when the hash of its name says so: no list to keep, and a new
file never moves an old one.
"""

import ast
import hashlib
import importlib.util
import sysconfig
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from specdec_lib.suite.ladder.problems import problems

PACKAGES = ("networkx", "numpy", "pandas")
SKIPPED = {
    "test",
    "tests",
    "idle_test",
    "site-packages",
    "dist-packages",
    "encodings",
    "pydoc_data",
    "__pycache__",
    "_vendor",
    "turtledemo",
}
VOCABULARY = 4096
END_OF_TEXT = "<|endoftext|>"
SPLITS = ("training", "development", "held-out")


@dataclass(frozen=True)
class SourceFile:
    """One file of Python source, by a name that is the same on every machine."""

    name: str
    text: str

    @property
    def split(self) -> str:
        """Where all text of this file belongs: 14 of 16 to training, one to development, one to
        held-out.
        """
        bucket = int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 16
        return {0: "development", 1: "held-out"}.get(bucket, "training")


@dataclass(frozen=True)
class Function:
    """A function or method with a docstring, dedented: what is given, and what a model should
    write.
    """

    opening: str
    body: str
    line: int


def source_files(packages: Iterable[str] = PACKAGES) -> Iterator[SourceFile]:
    """The standard library's and the packages' own Python files, sorted by name, without tests and
    tables.

    Raises ValueError if a package is not installed.
    """
    roots = {"stdlib": Path(sysconfig.get_paths()["stdlib"])}
    for package in packages:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise ValueError(
                f"package {package!r} is not installed; install it or leave it out of the corpus"
            )
        roots[package] = Path(found.origin).parent
    for root_name, root in sorted(roots.items()):
        for path in sorted(root.rglob("*.py")):
            relative = path.relative_to(root)
            if SKIPPED.isdisjoint(relative.parts):
                text = path.read_text(encoding="utf-8", errors="replace")
                if 200 < len(text) < 400_000:
                    yield SourceFile(
                        f"{root_name}/{relative.as_posix()}", text.replace("\t", "    ")
                    )


def functions(text: str) -> list[Function]:
    """Every function of a module that has a docstring and at least two lines of body after it; none
    if it does not parse.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.split("\n")
    found = []
    for node in ast.walk(tree):
        if (
            not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            or ast.get_docstring(node) is None
            or len(node.body) < 2
        ):
            continue
        docstring = node.body[0]
        whole = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])).split("\n")
        cut = docstring.end_lineno - node.lineno + 1
        if (
            len(whole) - cut >= 2
            and docstring.end_lineno < node.body[1].lineno
            and whole[0].startswith(("def", "async"))
        ):
            found.append(
                Function("\n".join(whole[:cut]) + "\n", "\n".join(whole[cut:]) + "\n", node.lineno)
            )
    return found


def docstrings(text: str) -> list[str]:
    """The longer docstrings of a module (200 to 4,000 characters), cleaned of indentation."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
    return [text + "\n" for text in found if text and 200 <= len(text) <= 4000]


def documents(files: Iterable[SourceFile], seed: int = 0) -> list[str]:
    """The training mix in a seeded order: by characters about 60 % files, 20 % functions, 10 %
    docstrings, 10 % word problems.
    """
    random = Random(seed)
    files = [file for file in files if file.split == "training"]
    whole = [file.text for file in files]
    size = sum(map(len, whole))
    parts = [
        _up_to(
            size / 3,
            _shuffled((f.opening + f.body for file in files for f in functions(file.text)), random),
        ),
        _up_to(
            size / 6, _shuffled((text for file in files for text in docstrings(file.text)), random)
        ),
        _up_to(size / 6, (question + answer for question, answer in problems(seed))),
    ]
    return _shuffled([*whole, *(text for part in parts for text in part)], random)


def train_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY) -> Tokenizer:
    """A byte-level BPE of `vocabulary` tokens over `texts`; token 0 is end of text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    """All texts as one array of uint16 tokens, each document closed by end of text."""
    end = tokenizer.token_to_id(END_OF_TEXT)
    return np.concatenate(
        [
            np.array([*encoding.ids, end], dtype=np.uint16)
            for encoding in tokenizer.encode_batch(texts)
        ]
    )


def _shuffled(texts: Iterable[str], random: Random) -> list[str]:
    texts = list(texts)
    random.shuffle(texts)
    return texts


def _up_to(characters: float, texts: Iterable[str]) -> Iterator[str]:
    seen = 0
    for text in texts:
        if seen >= characters:
            return
        seen += len(text)
        yield text
