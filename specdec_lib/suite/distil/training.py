"""Trains a student on lessons: the target's distributions over the tokens of stored answers."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError
from random import Random

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recomputed
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.files import write_whole
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.students import own_weights
from specdec_lib.suite.distil.lessons import Lesson, pad

CHECKPOINT_SECONDS = 120
ROWS = 512  # answer tokens whose logits are in memory at a time
WARM_UP, WEIGHT_DECAY = 0.02, 0.01  # the share of steps until the rate is reached; AdamW's


@dataclass(frozen=True)
class TrainingPlan:
    """How a student is trained.

    answer_tokens    how many are seen in all; lessons are repeated in another order
    batch_tokens     tokens of a step, requests and padding included
    rate             AdamW's, after a warm-up; it falls to a tenth along a cosine
    origin           what the student begins as and learns from, in words; a checkpoint of another
                     origin is refused
    """

    answer_tokens: int
    batch_tokens: int = 2048
    rate: float = 1e-3
    seed: int = 0
    origin: str = ""

    def rate_at(self, done: float) -> float:
        """The rate when this share of the steps is done."""
        falling = 0.55 + 0.45 * math.cos(math.pi * done)
        return self.rate * min(1.0, (done + 1e-3) / WARM_UP) * falling


class Batch:
    """Some lessons as tensors: one row per answer token, all conversations one after the other."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        texts = [lesson.conversation for lesson in lessons]
        self.ids = pad([one.ids for one in texts])
        spans = [(one.start - 1, len(one.ids) - 1) for one in texts]  # what predicts the answer
        self.rows = torch.cat([torch.full((b - a,), row) for row, (a, b) in enumerate(spans)])
        self.columns = torch.cat([torch.arange(a, b) for a, b in spans])
        self.places = torch.cat([lesson.places for lesson in lessons]).int().long()
        self.probs = torch.cat([lesson.log_probs for lesson in lessons]).float().exp()

    def hidden(self, student: LlamaForCausalLM) -> Float[Tensor, "answer width"]:
        """What the student's head reads before every answer token."""
        dtype = fastest_dtype()
        with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
            return student.model(self.ids, use_cache=False)[0][self.rows, self.columns]


def divergence(
    hidden: Float[Tensor, "answer width"],
    head: Float[Tensor, "head width"],
    places: Int[Tensor, "answer top"],
    probs: Float[Tensor, "answer top"],
) -> Float[Tensor, " answer"]:
    """Kullback-Leibler divergence, in nats, of the student from a distribution that gives `probs`
    to `places` of the head and the rest to all others together.

    The logits, 8,192 for each token, are computed a few rows at a time and again for the gradient.
    """

    def of_some(hidden: Tensor, places: Tensor, probs: Tensor) -> Tensor:
        guessed = (hidden.to(head.dtype) @ head.T).float().log_softmax(dim=-1).gather(1, places)
        rest = (1 - probs.sum(dim=1)).clamp(min=1e-6)
        beyond = (1 - guessed.exp().sum(dim=1)).clamp(min=1e-6)
        apart = probs * (probs.clamp(min=1e-9).log() - guessed)
        return apart.sum(dim=1) + rest * (rest / beyond).log()

    parts = zip(*(one.split(ROWS) for one in (hidden, places, probs)), strict=True)
    return torch.cat([recomputed(of_some, *part, use_reentrant=False) for part in parts])


def train_student(
    student: LlamaForCausalLM,
    lessons: Sequence[Lesson],
    head: Sequence[int],
    plan: TrainingPlan,
    checkpoint: Path,
) -> None:
    """Train a student in place; goes on from `checkpoint` if it is there.

    Raises ValueError if the checkpoint is of another plan.
    """
    rows = student.lm_head.weight.detach()[list(head)].to(fastest_dtype())
    steps, weights = list(schedule(lessons, plan)), own_weights(student)
    optimizer = torch.optim.AdamW(weights.values(), plan.rate, weight_decay=WEIGHT_DECAY)
    start, saved = _restore(checkpoint, plan, weights, optimizer), time.monotonic()
    student.train()
    bar = tqdm(total=len(steps), initial=start, unit="step", mininterval=5, desc=checkpoint.stem)
    for step in range(start, len(steps)):
        batch = Batch([lessons[number] for number in steps[step]])
        optimizer.param_groups[0]["lr"] = plan.rate_at(step / len(steps))
        loss = divergence(batch.hidden(student), rows, batch.places, batch.probs).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        bar.update()
        if step % 20 == 0:
            bar.set_postfix(loss=f"{loss:.3f}")
        if step == len(steps) - 1 or time.monotonic() - saved > CHECKPOINT_SECONDS:
            state = {"weights": weights, "optimizer": optimizer.state_dict(), "step": step + 1}
            torch.save(state | {"plan": asdict(plan)}, content := BytesIO())
            write_whole(checkpoint, content.getvalue())
            saved = time.monotonic()
    student.eval()


def schedule(lessons: Sequence[Lesson], plan: TrainingPlan) -> Iterator[list[int]]:
    """The numbers of the lessons of each step, until `plan.answer_tokens` are seen.

    A step has lessons of similar length; each time round, all are seen once in another order.
    """
    random, seen = Random(plan.seed), 0
    while True:
        near = [
            (len(one.conversation.ids) + random.random() * 32, at) for at, one in enumerate(lessons)
        ]
        steps: list[list[int]] = [[]]
        for length, number in sorted(near):
            if (len(steps[-1]) + 1) * length > plan.batch_tokens and steps[-1]:
                steps.append([])
            steps[-1].append(number)
        random.shuffle(steps)
        for step in steps:
            yield step
            seen += sum(len(lessons[number].places) for number in step)
            if seen >= plan.answer_tokens:
                return


def _restore(
    path: Path, plan: TrainingPlan, weights: dict[str, Tensor], optimizer: torch.optim.AdamW
) -> int:
    """Read a checkpoint into weights and optimiser; how many steps were done, 0 without one."""
    if not path.is_file():
        return 0
    try:
        stored = torch.load(path, weights_only=True)
    except (RuntimeError, UnpicklingError) as error:
        raise ValueError(f"{path} is damaged ({error}); delete it to go anew") from error
    if stored["plan"] != asdict(plan):
        raise ValueError(
            f"{path} is of another training: {stored['plan']}; delete it to begin anew"
        )
    with torch.no_grad():
        for name, tensor in weights.items():
            tensor.copy_(stored["weights"][name])
    optimizer.load_state_dict(stored["optimizer"])
    return stored["step"]
