"""Checkpoints: what a training has changed, and its optimisers' states, in one file that is written
whole. An interrupted training goes on from it as if it had not been interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor

from specdec_lib.core.files import tensor_file, write_whole

CHECKPOINT_SECONDS = 120  # between two checkpoints
STATE = ("step", "exp_avg", "exp_avg_sq")  # of AdamW, per weight


class Trained(NamedTuple):
    """Weights that are trained, by name, and the optimiser that changes them."""

    weights: Mapping[str, Tensor]
    optimizer: torch.optim.AdamW


def store_checkpoint(path: Path, trained: Sequence[Trained], of: str, steps: int) -> None:
    """Write weights and their optimisers' states.

    of       which training it is, in words: another one cannot go on from it
    steps    that were made
    """
    content = {}
    for name, weights, optimizer in _each(trained):
        content[name] = weights.detach().contiguous()
        for part in STATE:
            content[f"{name}/{part}"] = optimizer.state[weights][part]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save(content, {"of": of, "steps": str(steps)}))


def restore_checkpoint(path: Path, trained: Sequence[Trained], of: str) -> int:
    """Read a checkpoint into weights and optimisers; how many steps were made, 0 without one.
    Raises ValueError if it is of another training.
    """
    if not path.is_file():
        return 0
    with tensor_file(path) as file:
        about = file.metadata()
        if about.get("of") != of:
            raise ValueError(f"{path} is of another training: {about.get('of')}; delete it")
        for name, weights, optimizer in _each(trained):
            weights.data.copy_(file.get_tensor(name))
            optimizer.state[weights] = {
                part: file.get_tensor(f"{name}/{part}").to(weights.device) for part in STATE
            }
    return int(about["steps"])


def _each(trained: Sequence[Trained]) -> Iterator[tuple[str, Tensor, torch.optim.AdamW]]:
    """Each weight with its name and its optimiser."""
    for one in trained:
        for name, weights in one.weights.items():
            yield name, weights, one.optimizer
