"""Digests of drafts, models and code, the same in any process: kept rows stay with their makers."""

import ast
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.core.protocols import LanguageModel

PACKAGE = __name__.partition(".")[0]
LIBRARY = Path(sys.modules[PACKAGE].__file__).resolve().parent
COMPUTING = ("torch", "transformers", "tokenizers", "numpy", "numba")  # their versions count

Sources = Mapping[str, str]  # the text of each file of the library, by its path there: "a/b.py"
Known = dict[int, object]


def fingerprint(*things: object) -> str:
    """A digest of values, functions, dataclasses, arrays, tokenizers and models, by their content.

    A model is its kind, its runtime and device, its configuration and every weight. A field of a
    dataclass with `repr=False` is a memory and does not count. A function or class counts with its
    code: the library's with its file and all of the library that this imports, code from outside
    with its source and all of the library that its file imports.
    Raises ValueError for anything that cannot be told apart from another of its kind, such as a
    function that remembers variables.
    """
    known: Known = {}
    return digest(json.dumps([_described(thing, known) for thing in things]))


def digest(content: str | bytes | memoryview) -> str:
    """The first 16 hexadecimal digits of a SHA-256."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


def code(*makers: Callable) -> str:
    """A digest of the code that rows follow from, of versions, and of PyTorch's number of threads.

    makers    functions of the library that decode and that make a row: their files count, and all
              of the library that these import; drafts that they are given count in `fingerprint`

    Raises ValueError if one of them is not the library's.
    """
    own = [_code_from(module) for module in sorted({maker.__module__ for maker in makers})]
    versions = [version(package) for package in COMPUTING]
    return digest(json.dumps([own, versions, torch.get_num_threads()]))


def read_sources(library: Path) -> dict[str, str]:
    """Every Python file below a folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(library.rglob("*.py"))}
    return {path.relative_to(library).as_posix(): text for path, text in texts.items()}


def reachable_files(names: Iterable[str], known: Sources) -> list[str]:
    """The paths of what is named and of all that it imports of the library, at any depth; sorted.

    names    dotted ones of modules, or of things in modules

    Imports count wherever they stand in a file, and so does the `__init__.py` of every package on
    the way, which runs with each of its modules. Nothing is imported here: files are only read.
    """
    found: set[str] = set()
    waiting = [path for name in names for path in _files(name, known)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for name in imports(known[path], tuple(path.split("/")[:-1])):
                waiting += _files(name, known)
    return sorted(found)


@functools.cache
def imports(text: str, folder: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The library's dotted names that a source imports, sorted; for `from a import b` that is a.b.

    folder    where in the library the file lies, for relative imports; None for one outside of it
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                if folder is None:
                    continue
                base = [PACKAGE, *folder[: len(folder) + 1 - node.level], *base]
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return tuple(sorted(name for name in found if name.partition(".")[0] == PACKAGE))


def _files(name: str, known: Sources) -> list[str]:
    """The files that importing a dotted name runs: the module's, and every package's on the way."""
    parts = name.split(".")[1:]
    places = [path for end in range(len(parts) + 1) for path in _places(parts[:end])]
    return [path for path in places if path in known]


def _places(parts: Sequence[str]) -> tuple[str, str]:
    """Where a module can lie: in a folder of its own, or in a file."""
    return "/".join([*parts, "__init__.py"]), "/".join(parts) + ".py"


@functools.cache
def _library() -> Sources:
    return read_sources(LIBRARY)


def _digest_files(paths: Iterable[str]) -> str:
    return digest(json.dumps([[path, _library()[path]] for path in paths]))


@functools.cache
def _code_from(module: str) -> str:
    """A digest of all that a module reaches.  Raises ValueError if it is not the library's."""
    if not (_is_own(module) and set(_places(module.split(".")[1:])) & set(_library())):
        raise ValueError(f"rows follow from modules of {LIBRARY}, and {module} is none of them")
    return _digest_files(reachable_files([module], _library()))


def _code_outside(thing: type | Callable) -> list[str]:
    """Digests of its source, and of all of the library that its file imports.

    A notebook's cell uses what other cells import, and so it counts with the whole library.
    """
    thing = inspect.unwrap(thing)
    source, (lines, _) = inspect.getsource(thing), inspect.findsource(thing)
    in_file = Path(inspect.getsourcefile(thing)).is_file()
    paths = reachable_files(imports("".join(lines)), _library()) if in_file else sorted(_library())
    return [digest(source), _digest_files(paths)]


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


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
        return ["mapping", sorted((_described(item, known) for item in thing.items()), key=repr)]
    if isinstance(thing, Path | torch.dtype | torch.device):
        return [type(thing).__name__, str(thing)]
    if isinstance(thing, np.ndarray | torch.Tensor):
        return _array(thing)
    if isinstance(thing, functools.partial):
        return ["partial", _described([thing.func, thing.args, thing.keywords], known)]
    if isinstance(thing, type) or inspect.isroutine(thing):
        return _named(thing)
    if id(thing) not in known:
        known[id(thing)] = _composed(thing, known)
    return known[id(thing)]


def _composed(thing: object, known: Known) -> object:
    if isinstance(thing, PreTrainedTokenizerFast):
        return ["tokenizer", digest(thing.backend_tokenizer.to_str())]
    if isinstance(thing, torch.nn.Module):
        kind = type(thing)
        called = _named(kind) if _is_own(kind.__module__) else [kind.__qualname__]
        weights = thing.state_dict().items()
        return ["module", *called, [[name, _described(value, known)] for name, value in weights]]
    if is_dataclass(thing):
        counted = [field.name for field in fields(thing) if field.repr]
        values = [[name, _described(getattr(thing, name), known)] for name in counted]
        return [_named(type(thing)), values]
    network = getattr(thing, "model", None)
    if isinstance(thing, LanguageModel) and isinstance(network, PreTrainedModel):
        config = network.config.to_dict().items()
        config = {key: value for key, value in config if not key.startswith("_")}
        called = [thing.name, thing.vocabulary, thing.max_positions, thing.runtime]
        where = [str(network.dtype), network.device.type]
        plain = json.loads(json.dumps(config, default=str))
        return [_named(type(thing)), *called, *where, plain, _described(network, known)]
    raise ValueError(
        f"{type(thing).__qualname__} cannot be told apart from another of its kind; a sweep that is"
        " kept or shared has drafts made of dataclasses,"
        " plain values, arrays, functions of a module, and models"
    )


def _array(array: np.ndarray | torch.Tensor) -> list:
    if isinstance(array, torch.Tensor):
        content = array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    else:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return ["array", str(array.dtype), list(array.shape), digest(content.data)]


def _named(thing: type | Callable) -> list[str]:
    """Its name and digests of its code."""
    if "<" in thing.__qualname__ or inspect.ismethod(thing) or not thing.__module__:
        raise ValueError(
            f"{thing.__qualname__} may remember variables, so it cannot be told apart: give a"
            " function or class of a module instead"
        )
    name = f"{thing.__module__}.{thing.__qualname__}"
    if inspect.isbuiltin(thing):
        return [name]
    if _is_own(thing.__module__):
        return [name, _code_from(thing.__module__)]
    try:
        return [name, *_code_outside(thing)]
    except (OSError, TypeError) as error:
        raise ValueError(
            f"the source of {name} cannot be read ({error}), so that rows made with it cannot be"
            " kept or shared"
        ) from error
