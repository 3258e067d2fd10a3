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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from tqdm import tqdm

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.suite.distil.text import add_text, read_text
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
Request = tuple[str, str, str]  # name, text and origin, of what a prompt is made of


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the prompts of every domain."""
    parser = Parser("distil prompts", __doc__.partition(": ")[2])
    add_text(parser)
    parser.add_common("--out", DATA / "prompts")
    given = parser.parse_args(arguments)
    sources = list(source_files(PACKAGES))
    found = {"code": from_files(sources, opening), "summary": from_files(sources, passage)}
    for domain, requests in (found | own_requests(given.text)).items():
        prompts = chosen(domain, requests)
        lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in prompts)
        write_whole(given.out / f"{domain}.jsonl", "".join(lines).encode())


def chosen(domain: str, requests: Iterable[Request]) -> list[Prompt]:
    """PER_SPLIT prompts of each split, in the order of a hash of their names.

    Requests of one origin file are of one split.  Raises ValueError if there are too few.
    """
    found: dict[str, list[Prompt]] = {split: [] for split in SPLITS}
    for name, text, origin in sorted(set(requests), key=lambda one: _digest(one[0])):
        split = SPLITS[int(_digest(origin or name), 16) % 2]
        whole = Prompt(f"{domain}/{name}", text, domain, split, origin or "the target")
        found[split].append(whole)
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
                those[plain(asked)] = _digest(asked)[:8], asked, ""
                bar.update()
    return {domain: list(those.values()) for domain, those in found.items()}


def source_files(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and text of the Python files of installed packages, without tests."""
    for package in packages:
        if (found := find_spec(package)) is None:
            raise ValueError(f"prompts are made from {package}'s source, which is not installed")
        root = Path(found.origin).parent
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).parts
            if not {"test", "tests"} & set(parts):
                yield "/".join(parts), path.read_text(encoding="utf-8", errors="replace")


def from_files(
    sources: Iterable[tuple[str, str]],
    make: Callable[[str, str, ast.AST], Request | None],
) -> Iterator[Request]:
    """What `make` makes of the documented definitions in some files, at most PER_FILE of a file."""
    for file, text in sources:
        try:
            nodes = ast.walk(ast.parse(text))
        except (SyntaxError, ValueError):
            continue
        kinds = ast.Module, ast.ClassDef, ast.FunctionDef
        documented = (one for one in nodes if isinstance(one, kinds) and ast.get_docstring(one))
        found = [one for node in documented if (one := make(file, text, node))]
        yield from sorted(found, key=lambda one: _digest(one[0]))[:PER_FILE]


def opening(file: str, text: str, node: ast.AST) -> Request | None:
    """A request to complete a function from its signature and docstring."""
    if not isinstance(node, ast.FunctionDef) or len(node.body) < 3:
        return None
    lines = text.split("\n")[node.lineno - 1 : node.body[0].end_lineno]
    shown = textwrap.dedent("\n".join(lines))
    if not lines[0].lstrip().startswith("def ") or len(shown) not in OPENING:
        return None
    return f"{file}:{node.lineno}", f"Complete this Python function:\n\n{shown}", file


def passage(file: str, text: str, node: ast.AST) -> Request | None:
    """A request to shorten a passage of documentation, or to answer a question from it."""
    parts = ast.get_docstring(node).split("\n\n")
    prose = "\n\n".join(part for part in parts if ">>>" not in part and "---" not in part)
    if len(prose.split()) not in WORDS or FORMULA & set(prose.split()):
        return None
    asked = f"Summarize the following text:\n\n{prose}"
    if int(_digest(prose), 16) % 2 == 0:
        name = getattr(node, "name", file)
        question = f"Question: What is {name} for, and what should one know before using it?"
        asked = f"Read the following passage and answer the question.\n\n{prose}\n\n{question}"
    return f"{file}#{_digest(prose)[:8]}", asked, file


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
