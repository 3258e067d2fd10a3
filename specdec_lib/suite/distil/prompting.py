"""`specdec distil prompts`: the prompt sets, 60 development and 60 held-out ones per domain.

Chat requests and word problems are the target's own, under other seeds and at a lower temperature
than the text that drafts learn from; functions and passages are those of installed packages. A
request is chosen by its form, never by what a model makes of it.
"""

import ast
import hashlib
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.models.tokenizers import load_tokenizer
from specdec_lib.suite.distil.text import TEXT, read_text
from specdec_lib.suite.distil.writing import Writer, plain
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import SPLITS, Prompt

PER_SPLIT = 60
PACKAGES = ("json", "email", "logging", "asyncio", "networkx", "numpy", "pandas", "scipy")
PER_FILE = 2
WORDS = range(60, 181)  # of a passage
OPENING = range(60, 700)  # characters of a signature and its docstring
FORMULA = {"..", "math::", "versionadded::"}  # words of a passage that is not prose
FORMS = {  # of a request in plain ASCII: a whole sentence; a question about two numbers
    "chat": re.compile(r"(?s)(?=(\S+\s+){3})[\x20-\x7e\n]*[.?!]"),
    "math": re.compile(r"(?s)(?=(\D*\d[\d.,]*[^\d.,]){2})[\x20-\x7e\n]*\?"),
}
TEMPERATURE = 0.7  # of requests: at 1, one in three is no sentence that a person would write
SEED = 1_000_003  # the text is written with seeds that count conversations


class Request(NamedTuple):
    """What a prompt is made of."""

    name: str
    text: str
    origin: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the prompts of every domain."""
    parser = Parser("distil prompts", __doc__.partition(": ")[2])
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_common("--out", DATA / "prompts")
    given = parser.parse_args(arguments)
    sources = list(source_files(PACKAGES))
    found = {"code": openings(sources), "summary": passages(sources)} | own_requests(given.text)
    for domain, requests in found.items():
        prompts = chosen(domain, requests)
        lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in prompts)
        write_whole(given.out / f"{domain}.jsonl", "".join(lines).encode())


def chosen(domain: str, requests: Iterable[Request]) -> list[Prompt]:
    """PER_SPLIT prompts of each split, in the order of a hash of their names.

    Requests of one origin file are of one split.  Raises ValueError if there are too few.
    """
    found: dict[str, list[Prompt]] = {split: [] for split in SPLITS}
    for one in sorted(set(requests), key=lambda one: _digest(one.name)):
        split = SPLITS[int(_digest(one.origin or one.name), 16) % 2]
        name, origin = f"{domain}/{one.name}", one.origin or "the target"
        found[split].append(Prompt(name, one.text, domain, split, origin))
    for split, those in found.items():
        if len(those) < PER_SPLIT:
            raise ValueError(f"{PER_SPLIT} {split} {domain} prompts are wanted, got {len(those)}")
    return [one for those in found.values() for one in those[:PER_SPLIT]]


def own_requests(text: Path) -> dict[str, list[Request]]:
    """Chat requests and word problems that the target writes for itself, none of them a request of
    the stored text.
    """
    found: dict[str, dict[str, Request]] = {"chat": {}, "math": {}}
    how = {"answer_tokens": 1, "temperature": TEMPERATURE, "domains": tuple(found)}
    tokenizer = load_tokenizer(prepare_target())
    writer = Writer(load_target(), tokenizer, sequences=64, seed=SEED, **how)
    enough, written = 3 * PER_SPLIT, writer.write()
    learnt = {plain(writer.request(one)) for one in read_text(text)}
    with tqdm(total=2 * enough, desc="requests", mininterval=5) as bar:
        while any(len(those) < enough for those in found.values()):
            one = next(written)
            asked, those = writer.request(one), found[one.domain]
            new = len(those) < enough and plain(asked) not in learnt | those.keys()
            if new and FORMS[one.domain].fullmatch(asked):
                those[plain(asked)] = Request(_digest(asked)[:8], asked, "")
                bar.update()
    return {domain: list(those.values()) for domain, those in found.items()}


def source_files(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and text of the Python files of installed packages, without tests.

    Raises ValueError if a package is not installed.
    """
    for package in packages:
        found = find_spec(package)
        if found is None or found.origin is None:
            raise ValueError(f"the package {package} is not installed: pip install {package}")
        root = Path(found.origin).parent
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).parts
            if not {"test", "tests"} & set(parts):
                yield "/".join(parts), path.read_text(encoding="utf-8", errors="replace")


def openings(sources: Iterable[tuple[str, str]]) -> Iterator[Request]:
    """Requests to complete a function from its signature and docstring."""
    for file, text in sources:
        lines, found = text.split("\n"), []
        for node in _documented(text, ast.FunctionDef):
            opening = lines[node.lineno - 1 : node.body[0].end_lineno]
            shown = textwrap.dedent("\n".join(opening))
            plain_form = len(node.body) > 2 and opening[0].lstrip().startswith("def ")
            if plain_form and len(shown) in OPENING:
                asked = f"Complete this Python function:\n\n{shown}"
                found.append(Request(f"{file}:{node.lineno}", asked, file))
        yield from sorted(found, key=lambda one: _digest(one.name))[:PER_FILE]


def passages(sources: Iterable[tuple[str, str]]) -> Iterator[Request]:
    """Requests to shorten a passage of documentation, and to answer a question from it."""
    for file, text in sources:
        found = []
        for node in _documented(text, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            whole = ast.get_docstring(node).split("\n\n")
            passage = "\n\n".join(part for part in whole if ">>>" not in part and "---" not in part)
            if len(passage.split()) in WORDS and not FORMULA & set(passage.split()):
                name = getattr(node, "name", file)
                asked = (
                    f"Summarize the following text:\n\n{passage}"
                    if int(_digest(passage), 16) % 2
                    else f"Read the following passage and answer the question.\n\n{passage}\n\n"
                    f"Question: What is {name} for, and what should one know before using it?"
                )
                found.append(Request(f"{file}#{_digest(passage)[:8]}", asked, file))
        yield from sorted(found, key=lambda one: _digest(one.name))[:PER_FILE]


def _documented(text: str, kinds: type | tuple[type, ...]) -> list:
    """The definitions of a file that have a docstring; none if it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
