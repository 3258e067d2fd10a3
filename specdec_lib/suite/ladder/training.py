"""Training one model of the ladder: next-token loss on text, or a bigger model's
distribution; resumable at
every checkpoint.

The order of the data follows from the seed and the step alone and a checkpoint holds weights and
optimiser state whole (safetensors), so a run that was interrupted ends as if it had not been, up to
the machine's rounding.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from tqdm.auto import tqdm
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from specdec_lib.suite.ladder.windows import windows

Model = TypeVar("Model", bound=PreTrainedModel)
Optimizers = tuple[torch.optim.Optimizer, torch.optim.Optimizer]  # hidden matrices, all else


@dataclass(frozen=True)
class Recipe:
    """How one model is trained: its shape, how many tokens of text it sees, and on how many more it
    is taught the target's distribution.
    """

    layers: int
    width: int
    heads: int
    tokens: int
    taught_tokens: int = 0
    positions: int = 512
    vocabulary: int = 4096
    batch_tokens: int = 8192
    hidden_rate: float = 8e-3  # Muon, scaled to match the root mean square of AdamW's updates
    other_rate: float = 8e-3  # AdamW: embeddings, norms, biases
    decay: float = 0.4  # last part of the run, rates fall linearly to zero
    seed: int = 0

    def scaled(self, share: float) -> "Recipe":
        """The same on that share of its tokens, on two batches at least where it has any."""
        tokens, taught = (
            count and max(2 * self.batch_tokens, int(count * share))
            for count in (self.tokens, self.taught_tokens)
        )
        return replace(self, tokens=tokens, taught_tokens=taught)


@runtime_checkable
class Batch(Protocol):
    """What one step learns from.

    wanted    the right token at each place
    """

    wanted: Int[Tensor, " places"]

    def logits(self, model: PreTrainedModel) -> Float[Tensor, "places vocab"]:
        """What a model says at each place."""
        ...


def build(recipe: Recipe) -> GPT2LMHeadModel:
    """A GPT-2 of the recipe's shape with seeded random weights."""
    torch.manual_seed(recipe.seed)
    config = GPT2Config(
        vocab_size=recipe.vocabulary,
        n_positions=recipe.positions,
        n_embd=recipe.width,
        n_layer=recipe.layers,
        n_head=recipe.heads,
        activation_function="gelu_pytorch_tanh",
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def train(
    recipe: Recipe,
    stream: np.ndarray,
    checkpoint: Path,
    *,
    begin: GPT2LMHeadModel | None = None,
    teacher: GPT2LMHeadModel | None = None,
    device: str = "cpu",
) -> GPT2LMHeadModel:
    """Train a model on `stream` (tokens, one array), or on `teacher`'s distribution over it;
    continues from
    `checkpoint` if there is one.

    begin    starts from these weights, not from random ones

    Raises ValueError if the stream is shorter than one batch; the rest as for `fit`.
    """
    if len(stream) < recipe.batch_tokens + 1:
        raise ValueError(
            f"a batch needs {recipe.batch_tokens + 1} tokens, the stream has {len(stream)}"
        )
    origin = fingerprint(recipe, stream, begin, teacher)
    batches = partial(
        windows, stream, recipe.positions, recipe.batch_tokens // recipe.positions, recipe.seed
    )
    model = build(recipe)
    if begin is not None:
        model.load_state_dict(begin.state_dict())
    model.to(device)
    return fit(
        model,
        _optimizers(model, recipe),
        recipe,
        lambda step: batches(step).to(device),
        checkpoint,
        origin=origin,
        teacher=teacher,
    )


def fit(
    model: Model,
    optimizers: Optimizers,
    recipe: Recipe,
    batch: Callable[[int], Batch],
    checkpoint: Path,
    *,
    origin: str,
    teacher: PreTrainedModel | None = None,
) -> Model:
    """Train a model in place on one batch per step, or on `teacher`'s distribution over it;
    continues from
    `checkpoint` if there is one.

    batch     what a step learns from: a function of its number alone
    origin    see `fingerprint`

    A line of loss per 20 steps goes to `checkpoint` with the suffix .jsonl.  Raises ValueError if
    the checkpoint is damaged or of another origin.
    """
    model.train()
    start = _load(checkpoint, origin, model, optimizers) if checkpoint.exists() else 0
    steps = recipe.tokens // recipe.batch_tokens
    saved = time.monotonic()
    bar = tqdm(range(start, steps), initial=start, total=steps, desc=checkpoint.stem, mininterval=5)
    for step in bar:
        rate = min(1.0, (step + 1) / (0.02 * steps), (steps - step) / (recipe.decay * steps))
        loss = _step(model, optimizers, batch(step), recipe=recipe, rate=rate, teacher=teacher)
        if step % 20 == 0 or step == steps - 1:
            bar.set_postfix(loss=f"{loss:.3f}")
            with checkpoint.with_suffix(".jsonl").open("a") as log:
                log.write(
                    json.dumps(
                        {"step": step, "tokens": (step + 1) * recipe.batch_tokens, "loss": loss}
                    )
                    + "\n"
                )
        if time.monotonic() - saved > 120 or step == steps - 1:
            _save(checkpoint, model, optimizers, {"step": str(step + 1), "origin": origin})
            saved = time.monotonic()
    return model.eval()


def fingerprint(recipe: Recipe, stream: np.ndarray, *models: PreTrainedModel | None) -> str:
    """A digest of all that a training run follows from: recipe, text, and the weights it begins
    with and learns from.
    """
    digest = hashlib.sha256(repr(recipe).encode() + np.ascontiguousarray(stream).tobytes())
    for model in models:
        for weight in () if model is None else model.parameters():
            digest.update(weight.detach().cpu().numpy().tobytes())
        digest.update(b"/")
    return digest.hexdigest()


def bits_per_byte(model: GPT2LMHeadModel, stream: np.ndarray, text_bytes: int) -> float:
    """Cross-entropy of a whole token stream in bits, ÷ the bytes of the text it encodes.

    Windows half overlap: beyond the first one, no token has less than half a window before it.
    """
    length, total = model.config.n_positions, 0.0
    tokens = torch.from_numpy(stream.astype(np.int64)).to(model.device)
    with torch.inference_mode():
        for start in tqdm(
            range(0, len(tokens) - 1, length // 2), desc="held-out", leave=False, mininterval=5
        ):
            window = tokens[max(0, start - length // 2) : start + length // 2 + 1]
            logits = model(window[None, :-1], use_cache=False).logits[0].float()
            new = min(length // 2, len(tokens) - 1 - start)
            total += F.cross_entropy(logits[-new:], window[-new:], reduction="sum").item()
    return total / math.log(2) / text_bytes


def _step(
    model: PreTrainedModel,
    optimizers: Optimizers,
    batch: Batch,
    *,
    recipe: Recipe,
    rate: float,
    teacher: PreTrainedModel | None,
) -> float:
    logits = batch.logits(model).float()
    if teacher is None:
        loss = F.cross_entropy(logits, batch.wanted)
    else:
        with torch.no_grad():
            wanted = batch.logits(teacher).float().log_softmax(-1)
        loss = F.kl_div(logits.log_softmax(-1), wanted, log_target=True, reduction="batchmean")
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer, base in zip(optimizers, (recipe.hidden_rate, recipe.other_rate), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = base * rate
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def _optimizers(model: GPT2LMHeadModel, recipe: Recipe) -> Optimizers:
    hidden = [
        weight for name, weight in model.named_parameters() if weight.ndim == 2 and ".h." in name
    ]
    other = [
        weight for name, weight in model.named_parameters() if weight.ndim != 2 or ".h." not in name
    ]
    return (
        torch.optim.Muon(
            hidden, lr=recipe.hidden_rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(other, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
    )


def _save(
    path: Path, model: PreTrainedModel, optimizers: Optimizers, metadata: dict[str, str]
) -> None:
    tensors = {
        f"model/{name}": weight.detach().contiguous() for name, weight in model.named_parameters()
    }
    for which, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {
                f"optimizer/{which}/{index}/{name}": torch.as_tensor(value).contiguous()
                for name, value in state.items()
            }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata=metadata)
    os.replace(partial, path)


def _load(path: Path, origin: str, model: PreTrainedModel, optimizers: Optimizers) -> int:
    try:
        opened = safe_open(path, framework="pt")
    except SafetensorError as error:
        raise ValueError(
            f"checkpoint {path} is damaged ({error}); remove it to begin anew"
        ) from error
    with opened as file:
        if (file.metadata() or {}).get("origin") != origin:
            raise ValueError(
                f"checkpoint {path} was made by another recipe, from another text or by another"
                " teacher; remove it to begin anew"
            )
        names = list(file.keys())
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(file.get_tensor(f"model/{name}"))
        for which, optimizer in enumerate(optimizers):
            whole = optimizer.state_dict()
            whole["state"] = dict(_states(file, names, f"optimizer/{which}/"))
            optimizer.load_state_dict(whole)
        return int(file.metadata()["step"])


def _states(
    file: safe_open, names: list[str], start: str
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    found: dict[int, dict[str, Tensor]] = {}
    for name in names:
        if name.startswith(start):
            index, key = name.removeprefix(start).split("/")
            found.setdefault(int(index), {})[key] = file.get_tensor(name)
    return iter(found.items())
