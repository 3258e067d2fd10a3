"""A digest of drafts, models, values and code, the same in any process: what was measured with one
digest is what would be measured again.
"""

import ast
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel

PACKAGE = __name__.partition(".")[0]
LIBRARY = Path(str(sys.modules[PACKAGE].__file__)).resolve().parent
ABOVE = ("show", "suite")  # wings that nothing here imports: their files do not count
DECODING = """core/chance core/context.py core/decode core/tree core/verify.py drafts models/cached
    models/fast models/katz""".split()  # whose code runs while a generation is timed
COMPUTING = ("torch", "transformers", "tokenizers", "numpy", "numba")  # their versions count


def fingerprint(*things: object) -> str:
    """A digest of values, functions, dataclasses, arrays, tokenizers and models, by their content,
    of the library's code up to this wing, of versions, and of PyTorch's number of threads.

    A field of a dataclass with `repr=False` is a memory and does not count. A function or class
    from outside the library counts with its source.  Raises ValueError for anything that cannot be
    told apart from another of its kind, such as a function that remembers variables.
    """
    threads = torch.get_num_threads()
    return short_digest(json.dumps([_descriptions(things), library(), _versions(), threads]))


def identity(*things: object) -> dict[str, str]:
    """What has to be the same on two machines for the same counts: the library's code, the
    versions of packages that compute, and the weights (and all else) in these things.
    """
    return {
        "code": library(),
        "versions": ", ".join(_versions()),
        "weights": short_digest(json.dumps(_descriptions(things))),
    }


def _descriptions(things: Sequence[object]) -> list[object]:
    seen: dict[int, object] = {}  # by `id`: a model that many drafts share is read once
    return [_described(thing, seen) for thing in things]


def _versions() -> list[str]:
    return [f"{package} {version(package)}" for package in COMPUTING]


def short_digest(content: str | bytes | memoryview) -> str:
    """The first 16 hexadecimal digits of a SHA-256."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def library() -> str:
    """A digest of every Python file of the library up to this wing."""
    paths = sorted(path.relative_to(LIBRARY) for path in LIBRARY.rglob("*.py"))
    texts = [
        (str(path), (LIBRARY / path).read_text(encoding="utf-8"))
        for path in paths
        if path.parts[0] not in ABOVE
    ]
    return short_digest(json.dumps(texts))


@functools.cache
def decoding() -> str:
    """A digest of the code that runs while a generation is timed, without comments and docstrings,
    and of the embedded drafts: a table that was clocked with another one is of older code.
    """
    places = [LIBRARY / place for place in DECODING]
    paths = [path for place in places for path in (place.rglob("*.py"), [place])[place.is_file()]]
    named = {str(path.relative_to(LIBRARY)): _without_words(path) for path in paths}
    card = json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8"))
    drafts = {name: sha for name, sha in card["files"].items() if not name.endswith(".csv")}
    return short_digest(json.dumps([sorted(named.items()), sorted(drafts.items())]))


def _without_words(path: Path) -> str:
    """The code of a file as Python reads it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            assert isinstance(body, list)
            body[0] = ast.Pass()
    return ast.unparse(tree)


def _described(thing: object, seen: dict[int, object]) -> object:
    """The same as lists, texts and numbers."""
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, Real):
        return int(thing) if isinstance(thing, Integral) else float(thing)
    if isinstance(thing, list | tuple):
        return [_described(one, seen) for one in thing]
    if isinstance(thing, Mapping):
        return ["mapping", sorted((_described(item, seen) for item in thing.items()), key=repr)]
    if isinstance(thing, np.ndarray | torch.Tensor):
        return _array(thing)
    if isinstance(thing, type) or inspect.isroutine(thing):
        return _named(thing)
    if id(thing) not in seen:
        seen[id(thing)] = _composed(thing, seen)
    return seen[id(thing)]


def _composed(thing: object, seen: dict[int, object]) -> object:
    kind = type(thing)
    if isinstance(thing, PreTrainedTokenizerFast):
        return ["tokenizer", short_digest(thing.backend_tokenizer.to_str()), thing.chat_template]
    if isinstance(thing, torch.nn.Module):
        weights = thing.state_dict().items()
        return ["module", kind.__qualname__, _described(list(weights), seen)]
    if is_dataclass(thing):
        counted = [one.name for one in fields(thing) if one.repr]
        return [_named(kind), [[name, _described(getattr(thing, name), seen)] for name in counted]]
    network = getattr(thing, "model", None)
    if isinstance(thing, LanguageModel) and isinstance(network, PreTrainedModel):
        config = network.config.to_dict().items()
        config = {key: value for key, value in config if not key.startswith("_")}
        called = [thing.name, thing.vocabulary, thing.max_positions, thing.runtime]
        where = [str(network.dtype), network.device.type]
        plain = json.loads(json.dumps(config, default=str))
        return [_named(kind), *called, *where, plain, _described(network, seen)]
    raise ValueError(
        f"{kind.__qualname__} cannot be told apart from another of its kind; a kept sweep has"
        " dataclasses, plain values, arrays, functions of a module, and models"
    )


def _array(array: np.ndarray | torch.Tensor) -> list:
    kind = str(array.dtype)
    shape = list(array.shape)
    if isinstance(array, torch.Tensor):  # NumPy lacks bfloat16
        array = array.detach().cpu().reshape(-1).view(torch.uint8).numpy()
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return ["array", kind, shape, short_digest(content.data)]


def _named(thing: type | Callable) -> list[str]:
    """Its name, and the source of what is not the library's."""
    if "<" in thing.__qualname__ or inspect.ismethod(thing) or not thing.__module__:
        raise ValueError(
            f"{thing.__qualname__} may remember variables, so it cannot be told apart: give a"
            " function or class of a module instead"
        )
    name = f"{thing.__module__}.{thing.__qualname__}"
    package, *rest = thing.__module__.split(".")
    if inspect.isbuiltin(thing) or (package == PACKAGE and {*rest[:1]}.isdisjoint(ABOVE)):
        return [name]
    try:
        return [name, inspect.getsource(inspect.unwrap(thing))]
    except (OSError, TypeError) as error:
        raise ValueError(f"the source of {name}, which is needed, cannot be read") from error
