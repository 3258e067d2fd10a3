"""The prompt sets: function openings, word problems and docstring openings, from files that no
model was trained on.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tokenizers import Tokenizer

from specdec_lib.suite.ladder.corpus import SourceFile, docstrings, functions
from specdec_lib.suite.ladder.problems import problems
from specdec_lib.workload import SPLITS, Prompt

COUNTS = {"code": 120, "math": 80, "prose": 80}  # per split
PER_FILE = 5
OPENING_TOKENS = range(12, 201)
PROSE_WORDS = 24
PROBLEM_SEEDS = {"development": 1, "held-out": 2}


def make_prompts(files: Iterable[SourceFile], tokenizer: Tokenizer, folder: Path) -> dict[str, int]:
    """Write code.jsonl, math.jsonl and prose.jsonl; the number of prompts in each.

    Raises ValueError if the held-out files do not yield enough.
    """
    files = list(files)
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for domain, count in COUNTS.items():
        found = [
            prompt
            for split in SPLITS
            for prompt in _prompts(domain, split, files, tokenizer)[:count]
        ]
        if len(found) < count * len(SPLITS):
            raise ValueError(
                f"{count * len(SPLITS)} {domain} prompts are wanted, the held-out files yield"
                f" {len(found)}"
            )
        partial = folder / f"{domain}.partial"
        partial.write_text(
            "".join(json.dumps(asdict(prompt), ensure_ascii=False) + "\n" for prompt in found),
            encoding="utf-8",
        )
        os.replace(partial, folder / f"{domain}.jsonl")
        made[domain] = len(found)
    return made


def _prompts(
    domain: str, split: str, files: list[SourceFile], tokenizer: Tokenizer
) -> list[Prompt]:
    chosen = [file for file in files if file.split == split]
    if domain == "math":
        trained = trained_questions()
        fresh = (
            question for question, _ in problems(PROBLEM_SEEDS[split]) if question not in trained
        )
        questions = itertools.islice(fresh, COUNTS["math"])
        return [
            Prompt(f"math/{split}/{i:03}", question, domain, split, "generator")
            for i, question in enumerate(questions)
        ]
    of_file = _openings if domain == "code" else _beginnings
    found = [
        (f"{domain}/{name}", text, file.name)
        for file in chosen
        for name, text in _mixed(of_file(file, tokenizer))[:PER_FILE]
    ]
    return [
        Prompt(name, text, domain, split, origin)
        for name, text, origin in sorted(found, key=lambda one: _digest(one[0]))
    ]


def trained_questions(count: int = 50_000) -> set[str]:
    """The word problems that the training mix may hold: three times as many as the standard library
    and the packages call for.
    """
    return {question for question, _ in itertools.islice(problems(0), count)}


def _openings(file: SourceFile, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """Signature and docstring of the file's functions, without the last newline: a token often
    holds a newline and the indentation after it.
    """
    found = [
        (f"{file.name}:{function.line}", function.opening.rstrip("\n"))
        for function in functions(file.text)
        if len(function.opening) < 1200
    ]
    return [
        (name, text) for name, text in found if len(tokenizer.encode(text).ids) in OPENING_TOKENS
    ]


def _beginnings(file: SourceFile, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """The first words of the file's longer docstrings."""
    texts = {text for text in docstrings(file.text) if len(text) > 400}
    return [
        (f"{file.name}#{_digest(text)[:8]}", " ".join(text.split(" ")[:PROSE_WORDS]))
        for text in sorted(texts)
    ]


def _mixed(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(found, key=lambda one: _digest(one[0]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
