"""What a draft or a model is, as a digest that any process finds the same: so that kept rows stay with what made them."""

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

LIBRARY = Path(__file__).resolve().parents[1]
ROOMS = {"context", "chance", "tree", "verify", "lm", "theory", "seq2seq", "ngram", "runtime", "draft", "decode", "staged", "cascade", "workload"}
FILES = {"sweep/grid.py", "sweep/statistics.py"}  # with these rooms, all the code that a row follows from

Known = dict[int, object]


def fingerprint(*things: object) -> str:
    """A digest of values, functions, dataclasses, arrays, tokenizers and models: of what they say, not of where they lie.

    A model is its kind, its runtime and device, its configuration and every weight. A field of a dataclass with `repr=False` is a memory and does
    not count. Code from outside this library counts with its source.
    Raises ValueError for anything that cannot be told apart from another of its kind, such as a function that remembers variables.
    """
    known: Known = {}
    return _digest(json.dumps([_described(thing, known) for thing in things]).encode())


def code() -> str:
    """A digest of the library's code that rows follow from, of the versions of what it computes with, and of PyTorch's number of threads."""
    return _digest(json.dumps([_sources(), torch.get_num_threads()]).encode())


@functools.cache
def _sources() -> str:
    paths = (path.relative_to(LIBRARY) for path in sorted(LIBRARY.rglob("*.py")))
    told = [path for path in paths if path.parts[0].removesuffix(".py") in ROOMS or path.as_posix() in FILES]
    sources = [[path.as_posix(), (LIBRARY / path).read_text(encoding="utf-8")] for path in told]
    versions = [version(package) for package in ("torch", "transformers", "tokenizers", "numpy", "numba")]
    return _digest(json.dumps([sources, versions]).encode())


def _digest(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _described(thing: object, known: Known) -> object:
    """The same as lists, texts and numbers.

    known    what was described before, by `id`: a model that many drafts share is read once
    """
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, Real):
        return int(thing) if isinstance(thing, Integral) else float(thing)
    if isinstance(thing, list | tuple):
        return [_described(one, known) for one in thing]
    if isinstance(thing, Mapping):
        return ["mapping", sorted(([_described(key, known), _described(value, known)] for key, value in thing.items()), key=repr)]
    if isinstance(thing, Path | torch.dtype | torch.device):
        return [type(thing).__name__, str(thing)]
    if isinstance(thing, np.ndarray | torch.Tensor):
        return _array(thing)
    if isinstance(thing, functools.partial):
        return ["partial", _described(thing.func, known), _described(thing.args, known), _described(thing.keywords, known)]
    if isinstance(thing, type) or inspect.isroutine(thing):
        return _named(thing)
    if id(thing) not in known:
        known[id(thing)] = _composed(thing, known)
    return known[id(thing)]


def _composed(thing: object, known: Known) -> object:
    if isinstance(thing, PreTrainedTokenizerFast):
        return ["tokenizer", _digest(thing.backend_tokenizer.to_str().encode())]
    if isinstance(thing, torch.nn.Module):
        return ["module", type(thing).__qualname__, [[name, _described(value, known)] for name, value in thing.state_dict().items()]]
    if is_dataclass(thing):
        return [_named(type(thing)), [[field.name, _described(getattr(thing, field.name), known)] for field in fields(thing) if field.repr]]
    network = getattr(thing, "model", None)
    if isinstance(network, torch.nn.Module):
        config = {key: value for key, value in network.config.to_dict().items() if not key.startswith("_")}
        said = [thing.name, thing.vocabulary, thing.max_positions, getattr(thing, "runtime", "")]
        where = [str(network.dtype), network.device.type]
        return [_named(type(thing)), *said, *where, json.loads(json.dumps(config, default=str)), _described(network, known)]
    raise ValueError(
        f"{type(thing).__qualname__} cannot be told apart from another of its kind; a sweep that is kept or shared has drafts made of dataclasses,"
        " plain values, arrays, functions of a module, and models"
    )


def _array(array: np.ndarray | torch.Tensor) -> list:
    if isinstance(array, torch.Tensor):
        content = array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    else:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return ["array", str(array.dtype), list(array.shape), _digest(content.data)]


def _named(thing: type | Callable) -> list[str]:
    """Its name, and its source where that is not the library's."""
    if "<" in thing.__qualname__ or inspect.ismethod(thing) or not thing.__module__:
        raise ValueError(f"{thing.__qualname__} may remember variables, so it cannot be told apart: give a function or class of a module instead")
    name = f"{thing.__module__}.{thing.__qualname__}"
    if thing.__module__.partition(".")[0] == "specdec_lib" or inspect.isbuiltin(thing):
        return [name]
    try:
        return [name, _digest(inspect.getsource(thing).encode())]
    except (OSError, TypeError) as error:
        raise ValueError(f"the source of {name} cannot be read ({error}), so that rows made with it cannot be kept or shared") from error
