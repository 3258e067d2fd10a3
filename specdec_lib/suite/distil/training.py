"""Trains a student on lessons: the target's distributions over the tokens of stored answers."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.files import tensor_file, write_whole
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.students import own_weights
from specdec_lib.suite.distil.lessons import Lesson, pad

CHECKPOINT_SECONDS = 120
ROWS = 512  # answer tokens whose logits are computed at a time


@dataclass(frozen=True)
class TrainingPlan:
    """How a student is trained.

    answer_tokens    how many are seen in all; lessons are repeated in another order
    batch_tokens     tokens of a step, requests and padding included
    rate             AdamW's, after a warm-up; it falls to a tenth along a cosine
    undistilled      learn the tokens of the text themselves, not the target's distribution
    origin           what the student begins as and learns from, in words; a checkpoint of another
                     origin is refused
    """

    answer_tokens: int
    batch_tokens: int = 2048
    rate: float = 1e-3
    warm_up: float = 0.02
    weight_decay: float = 0.01
    seed: int = 0
    undistilled: bool = False
    origin: str = ""

    def share(self, done: float) -> float:
        """The share of `rate` when `done` of the steps are done."""
        return min(1.0, (done + 1e-3) / self.warm_up) * (0.55 + 0.45 * math.cos(math.pi * done))


class Batch:
    """Some lessons as tensors: one row per answer token, all conversations one after the other."""

    def __init__(self, lessons: Sequence[Lesson], place_of: Int[Tensor, " vocabulary"]) -> None:
        texts = [lesson.conversation for lesson in lessons]
        self.ids = pad([one.ids for one in texts])
        spans = [(one.start - 1, len(one.ids) - 1) for one in texts]  # what predicts the answer
        self.rows = torch.cat([torch.full((b - a,), row) for row, (a, b) in enumerate(spans)])
        self.columns = torch.cat([torch.arange(a, b) for a, b in spans])
        self.places = torch.cat([lesson.places for lesson in lessons]).int().long()
        self.probs = torch.cat([lesson.log_probs for lesson in lessons]).float().exp()
        self.written = place_of[self.ids[self.rows, self.columns + 1]]  # -1: not in the head

    def hidden(self, student: LlamaForCausalLM) -> Float[Tensor, "answer width"]:
        """What the student's head reads before every answer token."""
        dtype = fastest_dtype()
        with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
            return student.model(self.ids, use_cache=False)[0][self.rows, self.columns]

    def of_text(self) -> tuple[Tensor, Tensor, Tensor]:
        """Places, probabilities and the rest for learning the written tokens themselves; a token
        that is not in the head weighs nothing.
        """
        known = (self.written >= 0).float()[:, None]
        return self.written.clamp(min=0)[:, None], known, torch.zeros(len(known))

    def of_target(self) -> tuple[Tensor, Tensor, Tensor]:
        """Places and probabilities of the target's likeliest tokens, and the rest."""
        return self.places, self.probs, (1 - self.probs.sum(dim=1)).clamp(min=1e-6)


def divergence(
    hidden: Float[Tensor, "answer width"],
    head: Float[Tensor, "head width"],
    places: Int[Tensor, "answer top"],
    probs: Float[Tensor, "answer top"],
    rest: Float[Tensor, " answer"],
) -> Float[Tensor, " answer"]:
    """Kullback-Leibler divergence, in nats, of the student from a distribution that gives `probs`
    to `places` of the head and `rest` to all others together.
    """
    return _Divergence.apply(hidden, head, places, probs, rest)


class _Divergence(torch.autograd.Function):
    """Loss and gradient together, a few rows at a time: the logits of a whole step, 8,192 for each
    token, would go through memory ten times.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: torch.autograd.function.FunctionCtx,
        hidden: Tensor,
        head: Tensor,
        places: Tensor,
        probs: Tensor,
        rest: Tensor,
    ) -> Tensor:
        """The divergence of each row; the gradient is kept."""
        losses, slopes = [], []
        parts = (hidden, places, probs, rest)
        for row, place, wanted, left in zip(*(one.split(ROWS) for one in parts), strict=True):
            guessed = (row.to(head.dtype) @ head.T).float().softmax(dim=-1)
            among = guessed.gather(1, place)
            beyond = (1 - among.sum(dim=1)).clamp(min=1e-6)
            apart = wanted * (wanted.clamp(min=1e-9).log() - among.clamp(min=1e-30).log())
            others = left * (left.clamp(min=1e-9).log() - beyond.log())
            losses.append(apart.sum(dim=1) + others)
            pull = left / beyond  # d(−left·log beyond) is pull · d(Σ among)
            slope = guessed * (wanted.sum(dim=1) - pull * (1 - beyond))[:, None]
            slope.scatter_add_(1, place, pull[:, None] * among - wanted)
            slopes.append(slope.to(head.dtype) @ head)
        ctx.save_for_backward(torch.cat(slopes).to(hidden.dtype))
        return torch.cat(losses)

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: torch.autograd.function.FunctionCtx, weights: Tensor
    ) -> tuple:
        """The gradient of the hidden states; the head is frozen."""
        (slopes,) = ctx.saved_tensors
        return slopes * weights[:, None], None, None, None, None


def train_student(
    student: LlamaForCausalLM,
    lessons: Sequence[Lesson],
    head: Sequence[int],
    plan: TrainingPlan,
    checkpoint: Path,
) -> None:
    """Train a student in place; goes on from `checkpoint` if it is there.

    A line of loss per 20 steps goes to `checkpoint` with the suffix .jsonl.
    Raises ValueError if the checkpoint is of another plan.
    """
    place_of = torch.full((student.config.vocab_size,), -1)
    place_of[list(head)] = torch.arange(len(head))
    rows = student.lm_head.weight.detach()[list(head)].to(fastest_dtype())
    steps = list(schedule(lessons, plan))
    optimizer = torch.optim.AdamW(
        own_weights(student).values(), plan.rate, weight_decay=plan.weight_decay
    )
    start = _restore(checkpoint, plan, student, optimizer)
    saved = time.monotonic()
    student.train()
    bar = tqdm(total=len(steps), initial=start, unit="step", mininterval=5, desc=checkpoint.stem)
    for step in range(start, len(steps)):
        batch = Batch([lessons[number] for number in steps[step]], place_of)
        optimizer.param_groups[0]["lr"] = plan.rate * plan.share(step / len(steps))
        wanted = batch.of_text() if plan.undistilled else batch.of_target()
        loss = divergence(batch.hidden(student), rows, *wanted).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own_weights(student).values(), 1.0)
        optimizer.step()
        bar.update()
        if step % 20 == 0:
            bar.set_postfix(loss=f"{loss:.3f}")
            with checkpoint.with_suffix(".jsonl").open("a") as log:
                log.write(json.dumps({"step": step, "loss": round(loss.item(), 4)}) + "\n")
        if step == len(steps) - 1 or time.monotonic() - saved > CHECKPOINT_SECONDS:
            _store(checkpoint, plan, student, optimizer, step + 1)
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


def _store(
    path: Path,
    plan: TrainingPlan,
    student: LlamaForCausalLM,
    optimizer: torch.optim.AdamW,
    step: int,
) -> None:
    """Write weights and optimiser state whole."""
    content = {f"weights/{name}": weights for name, weights in own_weights(student).items()}
    for number, state in optimizer.state_dict()["state"].items():
        content |= {f"state/{number}/{name}": tensor for name, tensor in state.items()}
    about = {"plan": json.dumps(asdict(plan)), "step": str(step)}
    write_whole(path, save({name: one.detach() for name, one in content.items()}, about))


def _restore(
    path: Path, plan: TrainingPlan, student: LlamaForCausalLM, optimizer: torch.optim.AdamW
) -> int:
    """Read a checkpoint into student and optimiser; how many steps were done, 0 without one."""
    if not path.is_file():
        return 0
    with tensor_file(path) as file:
        about = file.metadata()
        stored = {name: file.get_tensor(name) for name in file.keys()}
    if json.loads(about["plan"]) != asdict(plan):
        raise ValueError(f"{path} is of another training: {about['plan']}; delete it to begin anew")
    with torch.no_grad():
        for name, weights in own_weights(student).items():
            weights.copy_(stored[f"weights/{name}"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in stored.items():
        kind, _, rest = name.partition("/")
        if kind == "state":
            number, _, part = rest.partition("/")
            state.setdefault(int(number), {})[part] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return int(about["step"])
