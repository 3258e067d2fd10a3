"""Published prompt sets: where each lies on the hub, and how a line becomes the text of a prompt,
zero-shot and without a chat template.

Sources: Chen et al. 2021 (HumanEval), Cobbe et al. 2021 (GSM8K), Hendrycks et al. 2021 (MMLU; its
own wording, without the examples), Xia et al. 2024 (Spec-Bench).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from huggingface_hub import constants
from pydantic import Field, StrictInt

from specdec_lib.models.hub import why_offline
from specdec_lib.workload.jsonl import Text

LETTERS = "ABCD"
QUESTIONS = (
    "https://raw.githubusercontent.com/hemingkx/Spec-Bench/main/data/spec_bench/question.jsonl"
)


@dataclass(frozen=True)
class HumanEval:
    """The signature and docstring as they stand.

    hub     repository, configuration and split for `datasets.load_dataset`; or "json", an address
            and "train"
    keys    by which a line of this set is recognised
    """

    hub: ClassVar = ("openai/openai_humaneval", "openai_humaneval", "test")
    keys: ClassVar = {"task_id", "prompt"}
    task_id: Text
    prompt: Text
    entry_point: Text
    canonical_solution: Text
    test: Text

    def as_prompt(self, number: int) -> tuple[str, str, str]:
        """Name, text and domain of the prompt of line `number`, counted from 0."""
        return self.task_id, self.prompt, "humaneval"


@dataclass(frozen=True)
class GSM8K:
    """`Question: …`, and `Answer:` on the next line."""

    hub: ClassVar = ("openai/gsm8k", "main", "test")
    keys: ClassVar = {"question", "answer"}
    question: Text
    answer: Text

    def as_prompt(self, number: int) -> tuple[str, str, str]:
        """See `HumanEval`."""
        return f"gsm8k/{number}", f"Question: {self.question}\nAnswer:", "gsm8k"


@dataclass(frozen=True)
class MMLU:
    """The subject in a sentence, the question, its four choices after letters, and `Answer:`."""

    hub: ClassVar = ("cais/mmlu", "all", "test")
    keys: ClassVar = {"question", "subject", "choices"}
    question: Text
    subject: Text
    choices: Annotated[list[str], Field(min_length=4, max_length=4)]
    answer: Annotated[StrictInt, Field(ge=0, le=3)]

    def as_prompt(self, number: int) -> tuple[str, str, str]:
        """See `HumanEval`."""
        subject = self.subject.replace("_", " ")
        heading = f"The following is a multiple choice question (with answer) about {subject}."
        pairs = zip(LETTERS, self.choices, strict=True)
        listed = "\n".join(f"{letter}. {choice}" for letter, choice in pairs)
        text = f"{heading}\n\n{self.question}\n{listed}\nAnswer:"
        return f"mmlu/{self.subject}/{number}", text, "mmlu"


@dataclass(frozen=True)
class SpecBench:
    """The first turn as it stands; a later one would follow the model's own answer."""

    hub: ClassVar = ("json", QUESTIONS, "train")
    keys: ClassVar = {"question_id", "turns"}
    question_id: StrictInt | Text
    category: Text
    turns: Annotated[list[Text], Field(min_length=1)]

    def as_prompt(self, number: int) -> tuple[str, str, str]:
        """See `HumanEval`."""
        return f"spec-bench/{self.question_id}", self.turns[0], f"spec-bench/{self.category}"


Schema = type[HumanEval | GSM8K | MMLU | SpecBench]
SCHEMAS = {"humaneval": HumanEval, "gsm8k": GSM8K, "mmlu": MMLU, "spec-bench": SpecBench}


def recognise(line: object) -> Schema | None:
    """The published set whose keys a line has, the one with most keys; None for none."""
    known = set(line) if isinstance(line, dict) else set()
    fitting = [schema for schema in SCHEMAS.values() if schema.keys <= known]
    return max(fitting, key=lambda schema: len(schema.keys), default=None)


def hub_lines(name: str) -> Iterator[tuple[str, object]]:
    """The lines of a published set with their places, downloaded once; raises ValueError if
    `datasets` is not installed, or the set cannot be had.
    """
    repository, configuration, split = SCHEMAS[name].hub
    instead = f"or give a local file in its published form, {name}.jsonl"
    try:
        from datasets import load_dataset
    except ImportError as error:
        remedy = f'`pip install -e ".[hub]"`; {instead}'
        raise ValueError(f"{name} by name needs the package `datasets`: {remedy}") from error
    bare = repository == "json"
    place = configuration if bare else f"{repository}, {configuration}, {split}"
    unreachable = why_offline(configuration if bare else None)
    if unreachable and not constants.is_offline_mode():  # `datasets` would try for minutes
        raise ValueError(f"{name} cannot be had from {place}: {unreachable}; {instead}")
    options = {"data_files": configuration} if bare else {"name": configuration}
    try:
        found = load_dataset(repository, split=split, **options)
    except Exception as error:  # of whichever client `datasets` uses underneath
        why = unreachable or error
        raise ValueError(f"{name} cannot be had from {place}: {why}; {instead}") from error
    for number, line in enumerate(found, 1):
        yield f"{place}, row {number}", dict(line)
