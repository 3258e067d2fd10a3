"""Published prompt sets: where each lies on the hub, and how a line becomes the text of a prompt.

Questions are zero-shot and without a chat template, which `tokenizer.apply_chat_template` can add.
Sources: Chen et al. 2021 (HumanEval), Cobbe et al. 2021 (GSM8K), Hendrycks et al. 2021 (MMLU; its
own wording, without the examples), Xia et al. 2024 (Spec-Bench).
"""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from specdec_lib.workload.jsonl import Line, entries, field, whole

LETTERS = "ABCD"
QUESTIONS = (
    "https://raw.githubusercontent.com/hemingkx/Spec-Bench/main/data/spec_bench/question.jsonl"
)


@dataclass(frozen=True)
class Schema:
    """A published set.

    hub       repository, configuration and split for `datasets.load_dataset`; or "json", the
              address of a JSONL file, and "train"
    fields    by which a line of this set is recognised
    name      of a line's prompt, from its place, the line and its number from 0
    text      of the prompt
    category  the part of the set that a line belongs to
    """

    hub: tuple[str, str, str]
    fields: tuple[str, ...]
    name: Callable[[str, Line, int], str]
    text: Callable[[str, Line], str]
    category: Callable[[str, Line], str] = lambda where, line: ""


def _humaneval(where: str, line: Line) -> str:
    """The signature and docstring as they stand."""
    for name in ("entry_point", "canonical_solution", "test"):
        field(where, line, name)
    return field(where, line, "prompt")


def _gsm8k(where: str, line: Line) -> str:
    """`Question: …`, and `Answer:` on the next line."""
    field(where, line, "answer")
    return f"Question: {field(where, line, 'question')}\nAnswer:"


def _mmlu(where: str, line: Line) -> str:
    """The subject in a sentence, the question, its four choices after letters, and `Answer:`."""
    choices = entries(where, line, "choices", str, least=len(LETTERS), filled=False)
    answer = field(where, line, "answer", int)
    if len(choices) > len(LETTERS) or not 0 <= answer < len(choices):
        raise ValueError(
            f"{where}: there are 4 choices and the answer is the number of one, 0 to 3; got"
            f" {len(choices)} and {answer}"
        )
    subject = field(where, line, "subject").replace("_", " ")
    listed = "\n".join(
        f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=True)
    )
    heading = f"The following is a multiple choice question (with answer) about {subject}."
    return f"{heading}\n\n{field(where, line, 'question')}\n{listed}\nAnswer:"


def _spec_bench(where: str, line: Line) -> str:
    """The first turn as it stands; a later one would follow the model's own answer."""
    return entries(where, line, "turns", str)[0]


SCHEMAS = {
    "humaneval": Schema(
        ("openai/openai_humaneval", "openai_humaneval", "test"),
        ("task_id", "prompt"),
        lambda where, line, number: field(where, line, "task_id"),
        _humaneval,
    ),
    "gsm8k": Schema(
        ("openai/gsm8k", "main", "test"),
        ("question", "answer"),
        lambda where, line, number: f"gsm8k/{number}",
        _gsm8k,
    ),
    "mmlu": Schema(
        ("cais/mmlu", "all", "test"),
        ("question", "subject", "choices"),
        lambda where, line, number: f"mmlu/{field(where, line, 'subject')}/{number}",
        _mmlu,
    ),
    "spec-bench": Schema(
        ("json", QUESTIONS, "train"),
        ("question_id", "turns"),
        lambda where, line, number: f"spec-bench/{field(where, line, 'question_id', (int, str))}",
        _spec_bench,
        lambda where, line: field(where, line, "category"),
    ),
}


def recognise(line: Line) -> str | None:
    """The published set whose fields a line has, the one with most fields; None for none."""
    fitting = [name for name, schema in SCHEMAS.items() if set(schema.fields) <= line.keys()]
    return max(fitting, key=lambda name: len(SCHEMAS[name].fields), default=None)


def mmlu_table(path: Path) -> Iterator[tuple[str, Line]]:
    """The lines of MMLU as it was first published: no heading, a question, four choices, the letter
    of the answer; the file is SUBJECT_test.csv.

    Raises ValueError for a row with other columns.
    """
    subject = path.stem.removesuffix("_test").removesuffix("_val").removesuffix("_dev")
    reader = csv.reader(io.StringIO(whole(path), newline=""), strict=True)
    try:
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            if len(row) != len(LETTERS) + 2 or row[-1] not in tuple(LETTERS):
                raise ValueError(
                    f"{where}: a row of MMLU has a question, 4 choices and a letter, A to D; got"
                    f" {len(row)} columns, last {row[-1:]}"
                )
            yield (
                where,
                {
                    "question": row[0],
                    "subject": subject,
                    "choices": row[1:-1],
                    "answer": LETTERS.index(row[-1]),
                },
            )
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: it is not CSV ({error})") from error
