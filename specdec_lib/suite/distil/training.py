"""`specdec distil train`: a draft of some target layers learns the target's distributions. An
interrupted run goes on where it stopped.
"""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import kl_div
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.files import cache_folder
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.cut_head import output_weight
from specdec_lib.models.network_passes import logits_divisor
from specdec_lib.models.students import build_student, own_weights, save_student
from specdec_lib.suite.distil.checkpoints import (
    CHECKPOINT_SECONDS,
    Trained,
    restore_checkpoint,
    store_checkpoint,
)
from specdec_lib.suite.distil.lessons import Lesson, before_answers, read_head, read_lessons
from specdec_lib.suite.distil.shards import read_text
from specdec_lib.suite.setup import load_target

BATCH_TOKENS = 1024  # of a step, requests and padding included
WARM_UP = 0.02  # share of the steps
HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from


class TrainingPlan(NamedTuple):
    """How a student is trained.

    layers           numbers of the target's layers, from 0, whose copies it begins as
    answer_tokens    how many are seen in all; lessons are repeated in another order
    rate             AdamW's learning rate after a warm-up; it falls to a tenth along a cosine
    """

    layers: Sequence[int]
    answer_tokens: int
    rate: float


def train_draft(name: str, plan: TrainingPlan, text: Path) -> pd.DataFrame:
    """Train a draft on the lessons over a folder's answers, store it in the cache, and judge it on
    held-out answers.
    """
    cache = cache_folder()
    folder = cache / "drafts"
    head = read_head(cache / "lessons")
    found = read_lessons(read_text(text), head, cache / "lessons")
    learnt = [one for number, one in enumerate(found) if number % HELD_OUT]
    student = build_student(load_target(), plan.layers)
    folder.mkdir(parents=True, exist_ok=True)
    train_student(student, learnt, head, plan, folder / f"{name}.checkpoint")
    save_student(student, folder / f"{name}.safetensors", plan._asdict())
    return judge(student, found[::HELD_OUT], head)


def divergence(
    hidden: Float[Tensor, "answer width"],
    head: Float[Tensor, "head width"],
    places: Int[Tensor, "answer top"],
    probs: Float[Tensor, "answer top"],
) -> Float[Tensor, " answer"]:
    """Kullback-Leibler divergence, in nats, of the student from a distribution that gives `probs`
    to `places` of the head and the rest to all others together.
    """
    scored = (hidden.to(head.dtype) @ head.T).float().log_softmax(dim=-1)
    among = scored.gather(1, places)
    beyond = (1 - among.exp().sum(dim=1, keepdim=True)).clamp(min=1e-6).log()
    rest = (1 - probs.sum(dim=1, keepdim=True)).clamp(min=1e-6)
    guessed = torch.cat([among, beyond], dim=1)
    wanted = torch.cat([probs, rest], dim=1)
    return kl_div(guessed, wanted, reduction="none").sum(dim=1)


def mean_divergence(
    student: PreTrainedModel, lessons: Sequence[Lesson], rows: Float[Tensor, "head width"]
) -> Float[Tensor, ""]:
    """The mean divergence of some lessons, per answer token; `rows` are those of the head."""
    dtype = fastest_dtype()
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        hidden = before_answers(student.get_decoder(), [one.conversation for one in lessons])
    places = torch.cat([lesson.places for lesson in lessons]).int().long()
    probs = torch.cat([lesson.log_probs for lesson in lessons]).float().exp()
    scored = torch.cat(hidden) / logits_divisor(student)
    return divergence(scored, rows, places, probs).mean()


def train_student(
    student: PreTrainedModel,
    lessons: Sequence[Lesson],
    head: Sequence[int],
    plan: TrainingPlan,
    checkpoint: Path,
) -> None:
    """Train a student in place; goes on from `checkpoint` if it is there.

    Raises ValueError if the checkpoint is of another plan, head or number of lessons.
    """
    weights = list(own_weights(student).values())
    rows = output_weight(student).detach()[list(head)].to(fastest_dtype())
    optimizer = torch.optim.AdamW(weights)
    steps = list(schedule(lessons, plan.answer_tokens))
    of = f"{plan}, {len(lessons)} lessons over {len(head)} tokens"
    trained = [Trained(own_weights(student), optimizer)]
    start = restore_checkpoint(checkpoint, trained, of)
    saved = time.monotonic()
    student.train()
    bar = tqdm(range(start, len(steps)), "steps", len(steps), initial=start, mininterval=5)
    for step in bar:
        done = step / len(steps)
        share = min(1.0, (done + 1e-3) / WARM_UP) * (0.55 + 0.45 * math.cos(math.pi * done))
        optimizer.param_groups[0]["lr"] = plan.rate * share
        loss = mean_divergence(student, steps[step], rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        if step == len(steps) - 1 or time.monotonic() - saved > CHECKPOINT_SECONDS:
            store_checkpoint(checkpoint, trained, of, step + 1)
            saved = time.monotonic()
    student.eval()


def schedule(lessons: Sequence[Lesson], answer_tokens: int) -> Iterator[list[Lesson]]:
    """The lessons of each step, until so many answer tokens are seen.

    A step has lessons of similar length; each time round, all are seen once in another order.
    """
    random = Random(0)
    seen = 0
    while True:
        lengths = [len(one.conversation.ids) + random.random() * 32 for one in lessons]
        steps: list[list[Lesson]] = [[]]
        for length, number in sorted(zip(lengths, range(len(lessons)), strict=True)):
            if (len(steps[-1]) + 1) * length > BATCH_TOKENS and steps[-1]:
                steps.append([])
            steps[-1].append(lessons[number])
        random.shuffle(steps)
        for step in steps:
            yield step
            seen += sum(len(one.places) for one in step)
            if seen >= answer_tokens:
                return


@torch.inference_mode()
def judge(student: PreTrainedModel, lessons: Sequence[Lesson], head: Sequence[int]) -> pd.DataFrame:
    """Shares of answer tokens whose likeliest token within the head is the student's likeliest
    (`first`) or among its four (`best_4`), by domain and way of writing, and of all domains.
    """
    rows = output_weight(student).detach()[list(head)]
    found = []
    for lesson in lessons:
        (hidden,) = before_answers(student.get_decoder(), [lesson.conversation])
        right = (hidden @ rows.T).topk(4).indices == lesson.places[:, :1].int()
        own = pd.DataFrame({"first": right[:, 0], "best_4": right.any(dim=1)})
        way = "greedy" if lesson.conversation.greedy else "T = 1"
        found.append(own.assign(domain=lesson.conversation.kind, way=way, tokens=1))
    table = pd.concat(found)
    both = pd.concat([table, table.assign(domain="all")]).groupby(["domain", "way"])
    return both.agg({"tokens": "sum", "first": "mean", "best_4": "mean"})
