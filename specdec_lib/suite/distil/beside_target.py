"""Training beside the target: of the ladder's drafts, and of a draft that reads the target, from
the ladder's one-layer draft.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from transformers import PreTrainedModel

from specdec_lib.core.files import write_whole
from specdec_lib.measure.guesses import LONG
from specdec_lib.measure.options import write_csv
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.models.reading import load_reading
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.lessons import HEAD_TOKENS, frequent_tokens
from specdec_lib.suite.distil.online import (
    LayerStudent,
    ReadingStudent,
    Student,
    Teacher,
    check_training_length,
    judge_online,
    save_weights,
    train_online,
)
from specdec_lib.suite.distil.places import LADDER
from specdec_lib.suite.distil.shards import Conversation, read_text
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import Prompt, load_prompts
from specdec_lib.workload.encoding import encode_prompt

HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from
WINDOW = 128  # tokens that the one-layer drafts see
MIDDLE_WINDOW = 512  # tokens that the middle model sees
RATES = {"draft": 2e-3, "middle": 1e-3, "reading": 2e-3}  # AdamW's
WRITTEN = 128  # tokens after a prompt that is judged on
TOGETHER = 64  # such prompts at a time
GUESSES = 3  # that the reading draft learns to make in a row


@dataclass(frozen=True)
class OnlinePlan:
    """How drafts go on learning beside the target.

    steps, seconds    of training: one of both
    batch_tokens      of a step, padding included
    begin             the folder of the drafts to go on from; else the ladder's
    drafts            names of those that learn, of RATES
    rate              factor of their RATES
    seed              of the order in which text is seen
    """

    steps: int | None
    seconds: float | None
    batch_tokens: int
    begin: Path
    drafts: Sequence[str] = tuple(RATES)
    rate: float = 1.0
    seed: int = 0


def train_beside_target(
    plan: OnlinePlan,
    text: Path,
    judged: Path | None,
    prompts: Sequence[Path],
    out: Path,
    *,
    device: str = "cpu",
) -> pd.DataFrame | None:
    """Judge the ladder's drafts, train the plan's on the shards of `text`, write them into `out`,
    and judge them too, on the shards `judged` and prompt files; the judgements come back.

    Without `judged` nothing is.  Raises ValueError for a plan of no draft or an unknown one.
    """
    check_plan(plan)
    conversations = read_text(text)
    target = load_target(device)
    shown = _judged(conversations, judged, prompts, target) if judged else None
    before = judge_stored(target, shown, plan) if shown else None
    head = frequent_tokens(conversations, HEAD_TOKENS, target.generation_config.eos_token_id)
    write_whole(out / "head.json", json.dumps(head).encode())
    students = built_students(target, plan)
    teacher = Teacher(target, head)
    torch.manual_seed(0)
    seen = train_online(
        students,
        teacher,
        [one for number, one in enumerate(conversations) if number % HELD_OUT],
        batch_tokens=plan.batch_tokens,
        steps=plan.steps,
        seconds=plan.seconds,
        folder=out if plan.steps else None,
        seed=plan.seed,
    )
    for student in students:
        save_weights(student, out / f"{student.name}.safetensors", student.about | seen)
    print(seen)
    if shown is None:
        return None
    after = judged_rows(students, teacher, shown, plan.batch_tokens, "now")
    table = pd.concat([before, after])
    write_csv(table, out / "judged.csv")
    return table


def check_plan(plan: OnlinePlan) -> None:
    """Raises ValueError for a length, a rate or a choice of drafts that cannot be trained."""
    check_training_length(plan.steps, plan.seconds)
    if not plan.drafts or not {*plan.drafts} <= {*RATES}:
        raise ValueError(f"drafts that learn are some of {[*RATES]}, got {[*plan.drafts]}")
    if not 0 < plan.rate <= 10:
        raise ValueError(f"the learning rates' factor is above 0 and at most 10, got {plan.rate}")


def _judged(
    conversations: Sequence[Conversation],
    folder: Path,
    prompts: Sequence[Path],
    target: PreTrainedModel,
) -> dict[str, list[Conversation]]:
    """What is judged on by name: every 50th of the conversations, a folder's shards, and what the
    target writes after prompt files.  Raises ValueError for files of one name.
    """
    names = [path.stem for path in prompts]
    if len({*names, "own", "kept-out"}) < len(names) + 2:
        raise ValueError(f"prompt files are named apart, and neither own nor kept-out, got {names}")
    found = {"own": [*conversations[::HELD_OUT]], "kept-out": read_text(folder)}
    return found | {path.stem: written_after(target, load_prompts(path)) for path in prompts}


def written_after(target: PreTrainedModel, prompts: Sequence[Prompt]) -> list[Conversation]:
    """What the target writes after each prompt in float32, greedily and drawn at temperature 1."""
    tokenizer = load_tokenizer(prepare_target())
    end = target.generation_config.eos_token_id
    given = [list(encode_prompt(tokenizer, prompt)) for prompt in prompts]
    order = sorted(range(len(given)), key=lambda number: len(given[number]))
    generator = torch.Generator(target.device).manual_seed(0)
    found = []
    for first in range(0, len(order), TOGETHER):
        group = order[first : first + TOGETHER]
        ids = [given[number] for number in group]
        for greedy in (True, False):
            heat = torch.full((len(ids),), 0.0 if greedy else 1.0, device=target.device)
            positions = max(map(len, ids)) + WRITTEN
            passes = BatchedPasses(target, len(ids), positions, dtype=torch.float32)
            texts = [list(one) for one in ids]
            logits = torch.cat([passes.read([row], [one], [0]) for row, one in enumerate(ids)])
            for _ in range(WRITTEN):
                chosen = draw(logits, heat, generator, greedy=heat == 0).tolist()
                for text, token in zip(texts, chosen, strict=True):
                    text.append(token)
                places = torch.tensor([len(text) - 1 for text in texts])
                logits = passes.logits(torch.tensor(chosen), places)
            for number, text, own in zip(group, texts, ids, strict=True):
                answer = text[len(own) :]
                size = answer.index(end) + 1 if end in answer else len(answer)
                span = (len(own), len(own) + size)
                kind = prompts[number].domain
                found.append(Conversation(tuple(text[: span[1]]), (span,), greedy, True, kind))
    return found


def built_students(target: PreTrainedModel, plan: OnlinePlan) -> list[Student]:
    """The plan's drafts, to go on learning. Those that its folder lacks are the ladder's; a reading
    draft begins as the ladder's one-layer draft.
    """

    def stored(name: str) -> Path:
        own = plan.begin / f"{name}.safetensors"
        return own if own.is_file() else LADDER / f"{name}.safetensors"

    def built(name: str) -> Student:
        rate = RATES[name] * plan.rate
        if name != "reading":
            window = WINDOW if name == "draft" else MIDDLE_WINDOW
            return LayerStudent(name, assemble(target, stored(name)), rate, window)
        begun = assemble(target, LADDER / "draft.safetensors")
        reading = ReadingStudent(name, begun, rate, WINDOW, GUESSES)
        if stored(name).is_file():
            load_reading(reading.draft, stored(name))
        return reading

    return [built(name) for name in RATES if name in plan.drafts]


def judge_stored(
    target: PreTrainedModel,
    judged: dict[str, list[Conversation]],
    plan: OnlinePlan,
) -> pd.DataFrame:
    """Rows of the ladder's drafts as they are, and of its plain ones without a window too."""
    teacher = Teacher(target, json.loads((LADDER / "head.json").read_text(encoding="utf-8")))
    draft = assemble(target, LADDER / "draft.safetensors")
    middle = assemble(target, LADDER / "middle.safetensors")
    students = [
        LayerStudent("draft, all", draft, 0.0, None),
        LayerStudent("middle, all", middle, 0.0, None),
        *built_students(target, replace(plan, begin=LADDER, drafts=tuple(RATES))),
    ]
    return judged_rows(students, teacher, judged, plan.batch_tokens, "before")


def judged_rows(
    students: Sequence[Student],
    teacher: Teacher,
    judged: dict[str, list[Conversation]],
    batch_tokens: int,
    when: str,
) -> pd.DataFrame:
    """What `judge_online` counts, summed by set, kind and length of the prompt."""
    rows = []
    for name, conversations in judged.items():
        found = pd.DataFrame(judge_online(students, teacher, conversations, batch_tokens))
        rows.append(found.assign(text=name, when=when))
    table = pd.concat(rows)
    table["prompts"] = 1
    table["long"] = table.pop("prompt_tokens") > LONG
    keys = ["when", "text", "draft", "guess", "kind", "way", "long"]
    return table.groupby(keys, as_index=False).sum()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of right first guesses and best four, by set, draft, way and length of the prompt."""
    keys = ["text", "long", "way", "draft", "guess", "when"]
    sums = table.groupby(keys)[["tokens", "first", "best_4"]].sum()
    shares = sums[["first", "best_4"]].div(sums["tokens"], axis=0).round(3)
    return shares.assign(tokens=sums["tokens"])
