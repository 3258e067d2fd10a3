"""Docstring from code: what the encoder-decoder pair learns from, and the prompts it is asked.

The source is a function without its docstring, the answer its docstring's first paragraph; beside
these, whole docstrings whose first paragraph is to be copied. Both come from the same files, split
in the same way, as the ladder's text.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.suite.ladder.corpus import SourceFile, docstrings, functions
from specdec_lib.suite.ladder.windows import place
from specdec_lib.workload import SPLITS, Prompt

SOURCE_TOKENS = 192
ANSWER_TOKENS = 64
LEAST_ANSWER_TOKENS = 5
END = 0  # end of text, the decoder's start token and padding in one
# 4 × 4 batches at a time are sorted by the length of source and answer, so that little is padded
GROUPS = 4
PROMPTS = 80  # per split
PER_FILE = 5
PROMPT_TOKENS = range(24, SOURCE_TOKENS - 1)


@dataclass(frozen=True)
class Example:
    """The tokens of a source and of its answer; an answer that was not cut is closed by end of
    text.
    """

    source: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Answers:
    """A batch of examples: every answer's token is wanted, after those before it."""

    source: Int[Tensor, "rows source"]
    sees: Bool[Tensor, "rows source"]
    before: Int[Tensor, "rows places"]
    after: Int[Tensor, "rows places"]
    counts: Bool[Tensor, "rows places"]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Answers":
        """These examples, padded to the longest."""
        source, sees = _padded([example.source for example in examples])
        after, counts = _padded([example.answer for example in examples])
        before, _ = _padded([(END, *example.answer[:-1]) for example in examples])
        return cls(source, sees, before, after, counts)

    @property
    def wanted(self) -> Int[Tensor, " answers"]:
        """The answers' tokens, one after the other."""
        return self.after[self.counts]

    def logits(self, model: PreTrainedModel) -> Float[Tensor, "answers vocab"]:
        """What an encoder-decoder model says at each of them."""
        made = model(
            input_ids=self.source,
            attention_mask=self.sees.long(),
            decoder_input_ids=self.before,
            use_cache=False,
        )
        return made.logits[self.counts]

    def to(self, device: str) -> "Answers":
        """The same on a device."""
        return Answers(
            *(
                getattr(self, name).to(device)
                for name in ("source", "sees", "before", "after", "counts")
            )
        )


def batch(examples: Sequence[Example], rows: int, seed: int, step: int) -> Answers:
    """The examples of one step: each example comes once per epoch, beside others of its lengths."""
    block, within = divmod(step, GROUPS**2)
    size = GROUPS**2 * rows
    drawn = sorted(
        (examples[place(len(examples), block * size + index, seed)] for index in range(size)),
        key=lambda one: len(one.source),
    )
    group, at = divmod(place(GROUPS**2, within, seed + block + 1), GROUPS)
    like = sorted(
        drawn[group * GROUPS * rows : (group + 1) * GROUPS * rows], key=lambda one: len(one.answer)
    )
    return Answers.of(like[at * rows : (at + 1) * rows])


def asked(function_text: str) -> tuple[str, str]:
    """A function's text without its docstring, and the docstring's first paragraph on one line."""
    node = ast.parse(function_text).body[0]
    lines, docstring = function_text.split("\n"), node.body[0]
    paragraph = ast.get_docstring(node).split("\n\n")[0]
    return "\n".join([*lines[: docstring.lineno - 1], *lines[docstring.end_lineno :]]).rstrip(
        "\n"
    ), " ".join(paragraph.split())


def examples(files: Iterable[SourceFile], tokenizer: Tokenizer) -> list[Example]:
    """Every function with a docstring, and every longer docstring with its own first paragraph;
    each answer to a source once.
    """
    texts = [
        asked(function.opening + function.body)
        for file in files
        for function in functions(file.text)
    ]
    texts += [
        (text, " ".join(text.split("\n\n")[0].split()))
        for file in files
        for text in docstrings(file.text)
    ]
    texts = list(dict.fromkeys(texts))
    sources = [
        encoding.ids[:SOURCE_TOKENS]
        for encoding in tokenizer.encode_batch([source for source, _ in texts])
    ]
    answers = [
        [*encoding.ids, END][:ANSWER_TOKENS]
        for encoding in tokenizer.encode_batch([answer for _, answer in texts])
    ]
    return [
        Example(tuple(s), tuple(a))
        for s, a in zip(sources, answers, strict=True)
        if s and len(a) >= LEAST_ANSWER_TOKENS
    ]


def stream(examples: Sequence[Example]) -> np.ndarray:
    """All tokens of all examples in one array: what a fingerprint is taken of."""
    return np.concatenate(
        [
            np.array([*example.source, END, *example.answer, END], dtype=np.uint16)
            for example in examples
        ]
    )


def make_prompts(files: Sequence[SourceFile], tokenizer: Tokenizer, folder: Path) -> int:
    """Write docstring.jsonl; the number of prompts in it.

    Raises ValueError if the held-out files do not yield enough.
    """
    found = [
        prompt
        for split in SPLITS
        for prompt in _prompts([file for file in files if file.split == split], split, tokenizer)
    ]
    if len(found) < PROMPTS * len(SPLITS):
        raise ValueError(
            f"{PROMPTS * len(SPLITS)} docstring prompts are wanted, the held-out files yield"
            f" {len(found)}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "docstring.partial"
    partial.write_text(
        "".join(json.dumps(asdict(prompt), ensure_ascii=False) + "\n" for prompt in found),
        encoding="utf-8",
    )
    os.replace(partial, folder / "docstring.jsonl")
    return len(found)


def _prompts(files: Sequence[SourceFile], split: str, tokenizer: Tokenizer) -> list[Prompt]:
    found: dict[str, Prompt] = {}
    for file in files:
        named = [
            (f"docstring/{file.name}:{function.line}", asked(function.opening + function.body)[0])
            for function in functions(file.text)
        ]
        fitting = [
            (name, text) for name, text in named if len(tokenizer.encode(text).ids) in PROMPT_TOKENS
        ]
        for name, text in sorted(fitting, key=lambda one: _digest(one[0]))[:PER_FILE]:
            found.setdefault(text, Prompt(name, text, "docstring", split, file.name))
    return sorted(found.values(), key=lambda prompt: _digest(prompt.name))[:PROMPTS]


def _padded(
    rows: Sequence[Sequence[int]],
) -> tuple[Int[Tensor, "rows places"], Bool[Tensor, "rows places"]]:
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(row) for row in rows], batch_first=True, padding_value=END
    )
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
