"""`specdec distil online`: drafts learn the target's distributions, which are computed in the same
step instead of stored: with a GPU the target's pass costs less than keeping its results would.

Several drafts learn from one pass of the target: any number of layers of the target, with any
window, and a draft of one layer that also reads the target's hidden states.
"""

import json
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.files import write_whole
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.network_passes import head_logits, outputs_of
from specdec_lib.models.reading import LAYERS_READ, ReadingDraft, unrolled
from specdec_lib.models.students import own_weights, pack_weights
from specdec_lib.suite.distil.batches import Batch, batch_of, batches, grouped
from specdec_lib.suite.distil.checkpoints import (
    CHECKPOINT_SECONDS,
    Trained,
    restore_checkpoint,
    store_checkpoint,
)
from specdec_lib.suite.distil.shards import Conversation

WARM_UP = 0.02  # share of the training in which the rate rises
DECAY = 0.3  # share of the training at its end in which the rate falls to 0
SHOWN_EVERY = 100  # steps between two losses that are shown


class LayerStudent:
    """A draft of some target layers that learns, and the window it sees (None: everything)."""

    def __init__(
        self, name: str, network: PreTrainedModel, rate: float, window: int | None
    ) -> None:
        self.name = name
        self.network = network
        self.rate = rate
        self.window = window
        self.about = {"window": window}

    def weights(self) -> dict[str, Tensor]:
        """What is trained, by name."""
        return own_weights(self.network)

    def outputs(
        self, ids: Int[Tensor, "batch length"], hidden: Sequence[Tensor]
    ) -> list[Float[Tensor, "batch length width"]]:
        """The normed output at each position."""
        last, _ = outputs_of(self.network.get_decoder(), ids, window=self.window)
        return [last]


class ReadingStudent:
    """A draft that reads the target, and learns over so many steps of its own."""

    def __init__(
        self,
        name: str,
        network: PreTrainedModel,
        rate: float,
        window: int,
        steps: int,
        layers: Sequence[int] = LAYERS_READ,
    ) -> None:
        self.name = name
        self.network = network
        self.rate = rate
        self.window = window
        self.steps = steps
        self.draft = ReadingDraft(network, layers).to(network.device)
        self.about = {"window": window, "steps": steps, "layers_read": layers}

    def weights(self) -> dict[str, Tensor]:
        """What is trained, by name."""
        return dict(self.draft.named_parameters())

    def outputs(
        self, ids: Int[Tensor, "batch length"], hidden: Sequence[Tensor]
    ) -> list[Float[Tensor, "batch length width"]]:
        """The normed output at each position, as its first, second … guess in a row."""
        return unrolled(self.draft, self.network, ids, hidden, self.steps, self.window)


Student = LayerStudent | ReadingStudent


class Teacher:
    """The target in the device's fastest precision, the tokens that drafts score, and the layers
    whose hidden states a draft reads.
    """

    def __init__(
        self, target: PreTrainedModel, head: Sequence[int], layers: Sequence[int] = LAYERS_READ
    ) -> None:
        self.layers = tuple(layers)
        self.dtype = fastest_dtype(target.device)
        self.target = target
        whole: Any = target.get_decoder()
        self.body: Any = deepcopy(whole).to(self.dtype)
        self.body.rotary_emb = whole.rotary_emb  # bfloat16 would round its frequencies
        self.ids = torch.tensor(sorted(head), device=target.device)
        output: Any = target.get_output_embeddings()
        self.whole = output.weight.detach().to(self.dtype)
        self.rows = self.whole[self.ids]

    @torch.no_grad()
    def hidden(self, ids: Int[Tensor, "batch length"]) -> tuple[Tensor, list[Tensor]]:
        """The normed output at each position, and the hidden states after the layers read."""
        return outputs_of(self.body, ids, wanted=self.layers)

    def logits(
        self, output: Float[Tensor, "*batch width"], rows: Float[Tensor, "scored width"]
    ) -> Float[Tensor, "*batch scored"]:
        """The logits of some rows of the head after each normed output."""
        return head_logits(self.target, output.to(rows.dtype), rows)


def loss_of(
    student: Student, teacher: Teacher, batch: Batch, hidden: Sequence[Tensor], probs: Tensor
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the student's distribution over the head under the target's, over all
    answer tokens and steps.
    """
    device = batch.ids.device.type
    with torch.autocast(device, teacher.dtype, enabled=teacher.dtype != torch.float32):
        outputs = student.outputs(batch.ids, hidden)
        losses = []
        for output in outputs:
            scored = teacher.logits(batch.before_answers(output), teacher.rows)
            losses.append(-(probs * scored.float().log_softmax(dim=-1)).sum(dim=-1).mean())
    return torch.stack(losses).mean()


def train_online(
    students: Sequence[Student],
    teacher: Teacher,
    conversations: Sequence[Conversation],
    *,
    batch_tokens: int,
    steps: int | None = None,
    seconds: float | None = None,
    folder: Path | None = None,
    seed: int = 0,
) -> dict[str, object]:
    """Train students in place; what they saw, before an interruption too.

    steps      that are made, or
    seconds    for which steps are made (how many follows from the machine)
    folder     of checkpoints, from which an interrupted training by `steps` goes on
    """
    check_training_length(steps, seconds)
    trained = [trained_of(student) for student in students]
    optimizers = [one.optimizer for one in trained]
    names = [student.name for student in students]
    of = f"{names}, {steps} steps, {batch_tokens} of {len(conversations)} texts, seed {seed}"
    checkpoint = folder and folder / "online.checkpoint"
    begun = restore_checkpoint(checkpoint, trained, of) if checkpoint else 0
    source = batches(conversations, batch_tokens, teacher.ids.device, seed)
    sizes = [(batch.tokens, batch.ids.numel()) for batch in islice(source, begun)]
    step = begun
    losses: dict[str, Tensor] = {}
    first = saved = time.monotonic()
    bar = tqdm(total=steps, initial=begun, desc="steps", mininterval=5)
    while (share := step / steps if steps else (time.monotonic() - first) / (seconds or 1)) < 1:
        batch = next(source)
        losses = learn(students, optimizers, teacher, batch, share)
        step += 1
        sizes.append((batch.tokens, batch.ids.numel()))
        bar.update()
        if step % SHOWN_EVERY == 0:
            bar.set_postfix(rounded(losses), refresh=False)
        if checkpoint and time.monotonic() - saved > CHECKPOINT_SECONDS:
            store_checkpoint(checkpoint, trained, of, step)
            saved = time.monotonic()
    if checkpoint:
        store_checkpoint(checkpoint, trained, of, step)
    answers, positions = map(sum, zip(*sizes, (0, 0), strict=True))  # maybe of no step
    seen = {"answer_tokens": answers, "positions": positions}
    return {"steps": step, **seen, "losses": rounded(losses)}


def check_training_length(steps: int | None, seconds: float | None) -> None:
    """Raises ValueError unless one of them is given, and above 0."""
    if (steps is None) == (seconds is None):
        raise ValueError(f"one of steps and seconds is given, got {steps} and {seconds}")
    given = seconds if steps is None else steps
    if given is None or not given > 0:
        raise ValueError(f"a training has steps or seconds above 0, got {given}")


def rounded(losses: dict[str, Tensor]) -> dict[str, float]:
    """Losses by name, in nats, as they are shown."""
    return {name: round(float(loss), 3) for name, loss in losses.items()}


def trained_of(student: Student) -> Trained:
    """A student's own weights, under its name, and what changes them."""
    weights = {f"{student.name}/{name}": own for name, own in student.weights().items()}
    return Trained(weights, torch.optim.AdamW(weights.values(), betas=(0.9, 0.95), fused=True))


def learn(
    students: Sequence[Student],
    optimizers: Sequence[torch.optim.AdamW],
    teacher: Teacher,
    batch: Batch,
    share: float,
) -> dict[str, Tensor]:
    """One step of every student, from one pass of the target; the losses before it, by name.

    share    of the training that is done: the rate follows from it
    """
    output, hidden = teacher.hidden(batch.ids)
    probs = teacher.logits(batch.before_answers(output), teacher.rows).float().softmax(dim=-1)
    rising = min(1.0, share / WARM_UP + 1e-3)
    falling = min(1.0, (1 - share) / DECAY)
    losses = {}
    for student, optimizer in zip(students, optimizers, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = student.rate * rising * falling
        loss = loss_of(student, teacher, batch, hidden, probs)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(list(student.weights().values()), 1.0)
        optimizer.step()
        losses[student.name] = loss.detach()
    return losses


def save_weights(student: Student, path: Path, about: dict) -> None:
    """Store a student's own weights, matrices in 8 bits with a scale per row; and `about`."""
    write_whole(path, save(pack_weights(student.weights()), {"about": json.dumps(about)}))


@torch.no_grad()
def judge_online(
    students: Sequence[Student],
    teacher: Teacher,
    conversations: Sequence[Conversation],
    batch_tokens: int,
) -> Iterator[dict[str, Any]]:
    """A row per conversation, student and step: how many answer tokens there are, and at how many
    the target's likeliest token (of the whole vocabulary) is the student's likeliest, or among its
    best four. Students score the head and the tokens before the first answer.
    """
    device = teacher.ids.device
    for group in grouped(conversations, [len(one.ids) for one in conversations], batch_tokens):
        batch = batch_of(group, device)
        output, hidden = teacher.hidden(batch.ids)
        with torch.autocast(device.type, teacher.dtype, enabled=teacher.dtype != torch.float32):
            outputs = {one.name: one.outputs(batch.ids, hidden) for one in students}
        for row, one in enumerate(group):
            own = batch_of([one], device).taught
            wanted = teacher.logits(output[row][own], teacher.whole).argmax(dim=-1)
            prompt = torch.tensor(one.ids[: one.start], device=device)
            scored = torch.cat([teacher.ids, prompt]).unique()
            rows = teacher.whole[scored]
            about: dict[str, Any] = {"kind": one.kind, "way": "greedy" if one.greedy else "T = 1"}
            about |= {"prompt_tokens": one.start, "tokens": len(own)}
            for name, found in outputs.items():
                for step, each in enumerate(found):
                    logits = teacher.logits(each[row][own], rows)
                    right = scored[logits.topk(4).indices] == wanted[:, None]
                    counts = {"first": int(right[:, 0].sum()), "best_4": int(right.any(1).sum())}
                    yield {"draft": name, "guess": step + 1} | about | counts
