"""`python -m specdec_lib.gpu.training`: a model of one of the headline's shapes from scratch, on the Python source that is installed here.

Meant for the background: it trains for so many minutes in bfloat16 with large batches, saves weights as it goes, and goes on from them; the embedded
tokenizer's 4,096 tokens are padded to GPT-2's 50,257 rows, so that the head costs what the paper's did. The optimiser's state is not saved:
a run that is continued warms up anew. Files of the held-out prompts are not learnt from.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import GPT2LMHeadModel

from specdec_lib.gpu.setting import SHAPES, parser, recipe
from specdec_lib.ladder.corpus import PACKAGES, documents, encode, source_files
from specdec_lib.ladder.training import Recipe, build
from specdec_lib.ladder.windows import windows
from specdec_lib.workload import DATA, DTYPES

PEAK_RATE, WARM_STEPS, SAVED_EVERY = 6e-4, 100, 120.0
EXTRA_PACKAGES = ("torch", "transformers", "sympy", "scipy", "sklearn", "setuptools", "pip", "triton")  # where they are installed


def stream(cache: Path, packages: Sequence[str]) -> np.ndarray:
    """The training text as tokens, made once."""
    path = cache / "stream.npy"
    if not path.is_file():
        found = [package for package in packages if _installed(package)]
        tokenizer = Tokenizer.from_file(str(DATA / "ladder" / "tokenizer.json"))
        tokens = encode(tokenizer, documents(source_files(found)))
        cache.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".partial").open("wb") as file:
            np.save(file, tokens)
        os.replace(path.with_suffix(".partial"), path)
    return np.load(path)


def _installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def weights_path(folder: str | Path, name: str) -> Path:
    """Where a model's weights lie."""
    return Path(folder) / f"{name.replace(' ', '-')}.safetensors"


def katz_path(folder: str | Path, name: str) -> Path:
    """Where the n-gram table of a draft lies."""
    return Path(folder) / f"katz-{name.replace(' ', '-')}.npz"


def trained(folder: str | Path, name: str, device: str, dtype: str) -> GPT2LMHeadModel:
    """A model that was trained here.  Raises ValueError if there is none."""
    path = weights_path(folder, name)
    if not path.is_file():
        raise ValueError(f"there is no {path}; train it with `python -m specdec_lib.gpu.training --model {name!r} --cache {folder}`")
    shape = Recipe(**json.loads(path.with_suffix(".json").read_text())["recipe"])
    model = build(shape)
    model.load_state_dict(load_file(path), strict=False)
    model.tie_weights()
    return model.to(device, DTYPES[dtype]).eval()


def train(name: str, shape: Recipe, text: np.ndarray, folder: Path, device: str, *, seconds: float, steps: int | None, compiled: bool) -> dict:
    """Train until the time, or the number of steps, is up; what the card says of it.

    The learning rate rises, stays, and falls to nothing over the last fifth of the time.
    """
    model, path = build(shape).to(device), weights_path(folder, name)
    card = {"recipe": vars(shape), "tokens": 0, "seconds": 0.0, "loss": float("nan")}
    if path.is_file():
        card = json.loads(path.with_suffix(".json").read_text())
        model.load_state_dict(load_file(path), strict=False)
        model.tie_weights()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=device.startswith("cuda"))
    forward: Callable = torch.compile(model) if compiled else model
    rows, before, begun = shape.batch_tokens // shape.positions, card["seconds"], time.monotonic()
    saved, step, done = begun, 0, 0.0
    while done < 1:
        batch = windows(text, shape.positions, rows, shape.seed, card["tokens"] // shape.batch_tokens).to(device)
        with torch.autocast(device.partition(":")[0], torch.bfloat16):
            logits = forward(batch.tokens[:, :-1], use_cache=False).logits.flatten(0, 1)
        loss = functional.cross_entropy(logits.float(), batch.wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        done = (step + 1) / steps if steps else (time.monotonic() - begun) / seconds
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(1.0, (step + 1) / WARM_STEPS, max(0.0, (1 - done) / 0.2))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, card["tokens"] = step + 1, card["tokens"] + shape.batch_tokens
        if done >= 1 or time.monotonic() - saved > SAVED_EVERY:
            card |= {"loss": float(loss.detach()), "seconds": before + time.monotonic() - begun, "device": device}
            _save(model, path, card)
            saved = time.monotonic()
    return card


def _save(model: GPT2LMHeadModel, path: Path, card: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file({name: weight.detach().contiguous() for name, weight in model.named_parameters()}, partial)
    os.replace(partial, path)
    path.with_suffix(".json").write_text(json.dumps(card, indent=1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, train one model, and print its card."""
    options = parser("training", __doc__)
    options.add_argument("--model", default="target", choices=tuple(SHAPES))
    options.add_argument("--cache", type=Path, default=DATA / "cache" / "gpu", help="text and weights; ignored by git")
    options.add_argument("--minutes", type=float, default=9.0)
    options.add_argument("--batch-tokens", type=int, default=65536)
    options.add_argument("--eager", action="store_true", help="without torch.compile")
    given = options.parse_args(arguments)
    shape = recipe(given.model, tiny=given.tiny, positions=64 if given.tiny else 1024)
    text = stream(given.cache, () if given.tiny else (*PACKAGES, *EXTRA_PACKAGES)) if not given.tiny else np.arange(5000, dtype=np.uint16) % 300
    shape = Recipe(**vars(shape) | {"batch_tokens": 128 if given.tiny else given.batch_tokens})
    limits = {"seconds": 60 * given.minutes, "steps": 2 if given.tiny else None, "compiled": not (given.tiny or given.eager)}
    card = train(given.model, shape, text, given.cache, given.device, **limits)
    print(f"{given.model}: {card['tokens']} tokens in {card['seconds']:.0f} s, loss {card['loss']:.3f}")


if __name__ == "__main__":
    main()
