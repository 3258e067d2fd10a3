"""Digests of drafts, models and code, the same in any process: kept rows stay with their makers."""

import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import version
from modulefinder import ModuleFinder
from numbers import Integral, Real
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.core.protocols import LanguageModel

PACKAGE = __name__.partition(".")[0]
LIBRARY = Path(sys.modules[PACKAGE].__file__).resolve().parent
COMPUTING = ("torch", "transformers", "tokenizers", "numpy", "numba")  # their versions count


@runtime_checkable
class _Networked(LanguageModel, Protocol):
    """A language model that runs a network."""

    model: object


@dataclass
class _Seen:
    """What was described before, by `id` (a model that many drafts share is read once), the modules
    of the library that it comes from, and whether some comes from elsewhere.
    """

    things: dict[int, object] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    outside: bool = False


def fingerprint(*things: object) -> str:
    """A digest of values, functions, dataclasses, arrays, tokenizers and models, by their content.

    A model is its kind, its runtime and device, its configuration and every weight. A field of a
    dataclass with `repr=False` is a memory and does not count. A function or class counts with its
    code: the library's with its file and all of the library that this imports, code from outside
    with its source and the whole library.
    Raises ValueError for anything that cannot be told apart from another of its kind, such as a
    function that remembers variables.
    """
    seen = _Seen()
    described = [_described(thing, seen) for thing in things]
    files = sorted(_library()) if seen.outside else reachable_files(frozenset(seen.modules))
    return short_digest(json.dumps([described, _contents(files)]))


def short_digest(content: str | bytes | memoryview) -> str:
    """The first 16 hexadecimal digits of a SHA-256."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


def code(*makers: Callable) -> str:
    """A digest of the code that rows follow from, of versions, and of PyTorch's number of threads.

    makers    functions of the library that decode and that make a row: their files count, and all
              of the library that these import; drafts that they are given count in `fingerprint`
    """
    files = reachable_files(frozenset(maker.__module__ for maker in makers))
    versions = [version(package) for package in COMPUTING]
    return short_digest(json.dumps([_contents(files), versions, torch.get_num_threads()]))


@functools.cache
def reachable_files(modules: frozenset[str]) -> list[str]:
    """The files of the library, by their path in it, that these modules of it import, at any depth
    and wherever imports stand in a file, packages' `__init__.py` on the way included; sorted.

    Files are only read, not imported.
    """
    finder = ModuleFinder(path=[str(LIBRARY.parent)])
    for module in sorted(modules):
        try:
            if not _is_own(module):
                raise ImportError(module)
            finder.import_hook(module)
        except ImportError as error:
            raise ValueError(
                f"rows follow from modules of {LIBRARY}, and {module} is none of them"
            ) from error
    found = [one.__file__ for name, one in finder.modules.items() if _is_own(name)]
    return sorted(Path(file).relative_to(LIBRARY).as_posix() for file in found)


@functools.cache
def _library() -> dict[str, str]:
    """The text of every Python file, by its path: "a/b.py"."""
    texts = {path: path.read_text(encoding="utf-8") for path in LIBRARY.rglob("*.py")}
    return {path.relative_to(LIBRARY).as_posix(): text for path, text in texts.items()}


def _contents(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(path, _library()[path]) for path in paths]


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _described(thing: object, seen: _Seen) -> object:
    """The same as lists, texts and numbers."""
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, Real):
        return int(thing) if isinstance(thing, Integral) else float(thing)
    if isinstance(thing, list | tuple):
        return [_described(one, seen) for one in thing]
    if isinstance(thing, Mapping):
        return ["mapping", sorted((_described(item, seen) for item in thing.items()), key=repr)]
    if isinstance(thing, Path | torch.dtype | torch.device):
        return [type(thing).__name__, str(thing)]
    if isinstance(thing, np.ndarray | torch.Tensor):
        return _array(thing)
    if isinstance(thing, functools.partial):
        return ["partial", _described([thing.func, thing.args, thing.keywords], seen)]
    if isinstance(thing, type) or inspect.isroutine(thing):
        return _named(thing, seen)
    if id(thing) not in seen.things:
        seen.things[id(thing)] = _composed(thing, seen)
    return seen.things[id(thing)]


def _composed(thing: object, seen: _Seen) -> object:
    kind = type(thing)
    if isinstance(thing, PreTrainedTokenizerFast):
        return ["tokenizer", short_digest(thing.backend_tokenizer.to_str())]
    if isinstance(thing, torch.nn.Module):
        called = _named(kind, seen) if _is_own(kind.__module__) else [kind.__qualname__]
        weights = thing.state_dict().items()
        return ["module", *called, [[name, _described(value, seen)] for name, value in weights]]
    if is_dataclass(thing):
        counted = [one.name for one in fields(thing) if one.repr]
        values = [[name, _described(getattr(thing, name), seen)] for name in counted]
        return [_named(kind, seen), values]
    if isinstance(thing, _Networked) and isinstance(network := thing.model, PreTrainedModel):
        config = network.config.to_dict().items()
        config = {key: value for key, value in config if not key.startswith("_")}
        called = [thing.name, thing.vocabulary, thing.max_positions, thing.runtime]
        where = [str(network.dtype), network.device.type]
        plain = json.loads(json.dumps(config, default=str))
        return [_named(kind, seen), *called, *where, plain, _described(network, seen)]
    raise ValueError(
        f"{kind.__qualname__} cannot be told apart from another of its kind; a sweep that is"
        " kept or shared has drafts made of dataclasses,"
        " plain values, arrays, functions of a module, and models"
    )


def _array(array: np.ndarray | torch.Tensor) -> list:
    if isinstance(array, torch.Tensor):
        content = array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    else:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return ["array", str(array.dtype), list(array.shape), short_digest(content.data)]


def _named(thing: type | Callable, seen: _Seen) -> list[str]:
    """Its name, and the source of what is not the library's."""
    if "<" in thing.__qualname__ or inspect.ismethod(thing) or not thing.__module__:
        raise ValueError(
            f"{thing.__qualname__} may remember variables, so it cannot be told apart: give a"
            " function or class of a module instead"
        )
    name = f"{thing.__module__}.{thing.__qualname__}"
    if inspect.isbuiltin(thing):
        return [name]
    if _is_own(thing.__module__):
        seen.modules.add(thing.__module__)
        return [name]
    seen.outside = True
    try:
        return [name, inspect.getsource(inspect.unwrap(thing))]
    except (OSError, TypeError) as error:
        raise ValueError(
            f"the source of {name} cannot be read ({error}), so that rows made with it cannot be"
            " kept or shared"
        ) from error
