"""`specdec distil train`: a draft of some of the target's layers learns the target's distributions.

An interrupted run goes on where it stopped.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from transformers import LlamaForCausalLM

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder
from specdec_lib.models.students import build_student, save_student
from specdec_lib.suite.distil.lessons import Lesson, add_sources, read_head, read_lessons
from specdec_lib.suite.distil.text import read_text
from specdec_lib.suite.distil.training import Batch, TrainingPlan, train_student
from specdec_lib.suite.setup import load_target

HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a student, and print how well it guesses on held-out answers."""
    parser = Parser("distil train", "train a draft of some of the target's layers")
    add, more = parser.add_argument, "a folder of `distil continue`, to learn from as well"
    add("name", help="of the draft, such as draft or middle")
    add("--layers", required=True, help="the target's layers to start from: 0,15")
    add("--answer-tokens", type=int, default=25_000_000, help="seen in all")
    add("--continued", type=Path, help=more)
    add("--rate", type=float, default=1e-3, help="AdamW's largest learning rate")
    add("--batch-tokens", type=int, default=2048, help="of a step, in all")
    add_sources(parser)
    parser.add_common("--seed", 0)
    parser.add_common("--out", cache_folder() / "drafts")
    given = parser.parse_args(arguments)
    layers, head = [int(number) for number in given.layers.split(",")], read_head(given.lessons)
    found = read_lessons(read_text(given.text), head, given.lessons)
    learnt = [one for number, one in enumerate(found) if number % HELD_OUT]
    if given.continued:
        learnt += read_lessons(read_text(given.continued), head, given.continued / "lessons")
    student = build_student(load_target(), layers)
    origin = f"layers {given.layers}, {len(learnt)} lessons over {len(head)} tokens"
    size = given.batch_tokens
    plan = TrainingPlan(given.answer_tokens, size, given.rate, given.seed, origin)
    train_student(student, learnt, head, plan, given.out / f"{given.name}.checkpoint")
    about = {"layers": layers} | asdict(plan)
    save_student(student, given.out / f"{given.name}.safetensors", about)
    print(judge(student, found[::HELD_OUT], head).round(3).to_string())


@torch.inference_mode()
def judge(
    student: LlamaForCausalLM, lessons: Sequence[Lesson], head: Sequence[int]
) -> pd.DataFrame:
    """How well a student guesses: a row per domain and way of writing (greedy or at temperature 1),
    and one of all.

    first      share of answer tokens where the student's likeliest token is the target's
    best_4     share where the target's likeliest is among the student's four
    overlap    mean of Σ min(target, student): the acceptance rate of one guess at temperature 1

    The target's distribution is the one within the head.
    """
    rows, found = student.lm_head.weight.detach()[list(head)], []
    for lesson in lessons:
        batch, one = Batch([lesson]), lesson.conversation
        logits = (batch.hidden(student).to(rows.dtype) @ rows.T).float()
        best = logits.topk(4).indices
        guessed = logits.softmax(dim=-1).gather(1, batch.places)
        rest = torch.minimum(1 - batch.probs.sum(1), 1 - guessed.sum(1)).clamp(min=0)
        measured = {
            "first": best[:, 0] == batch.places[:, 0],
            "best_4": (best == batch.places[:, :1]).any(1),
            "overlap": torch.minimum(guessed, batch.probs).sum(1) + rest,
        }
        rates = pd.DataFrame({name: values.float() for name, values in measured.items()})
        found.append(rates.assign(domain=one.domain, way="greedy" if one.greedy else "T = 1"))
    table = pd.concat(found)
    grouped = pd.concat([table, table.assign(domain="all")]).groupby(["domain", "way"])
    return grouped.mean().assign(tokens=grouped.size())
