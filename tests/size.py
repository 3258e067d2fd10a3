"""`python tests/size.py [FOLDER]` prints how much code a checkout has and how dense it is, by wing.
`python tests/size.py FOLDER COLUMN` lists the places of one column.

A code line holds code: docstrings, comments and blank lines do not count. Rates are per 1,000 of
them. The numbers beside the wings are aims: nothing fails at the next line.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

LIBRARY = "specdec_lib"
PLANNED = {  # code lines per wing
    "core": 1_500,
    "theory": 800,
    "models": 3_200,
    "drafts": 1_200,
    "workload": 450,
    "measure": 4_000,
    "show": 3_000,
    "suite": 2_300,
}
SLACK = 1.1  # above a wing's number times this, CONTRIBUTING says what earned it
TOTAL, TESTS = "library", "tests"
WITHOUT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Kind = Callable[[ast.expr], bool]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COUNTED = {  # by column: what is counted, and whether per 1,000 code lines
    "code": False,
    "docstring": False,
    "raise": False,
    "glued": False,
    "squeezed": True,
    "walrus": True,
    "splat": True,
    "noqa": False,
}
LEGEND = """\
code       lines without docstrings, comments and blanks
docstring  lines of docstrings
raise      raise statements
glued      raised messages in which a text stands that the function put into a variable before
squeezed   a, b = f(x), g(y) and the like, but not a, b = b, a
walrus     := inside a call
splat      calls with ** of a dict that the function built before
noqa       comments that silence the linter"""


def docstring_lines(tree: ast.Module) -> set[int]:
    """The numbers of the lines that docstrings take."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            found.update(range(docstring.lineno, docstring.end_lineno + 1))
    return found


def code_lines(text: str) -> set[int]:
    """The numbers of a source's lines that hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in WITHOUT_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    return found - docstring_lines(ast.parse(text))


def sizes(text: str) -> Iterator[tuple[int, str]]:
    """The code lines of a source ("") and of each of its functions, decorators excluded."""
    code = code_lines(text)
    yield len(code), ""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS):
            own = range(node.lineno, node.end_lineno + 1)
            yield len(code.intersection(own)), node.name


def density(text: str) -> Counter[str]:
    """How often each column of the table occurs in a source."""
    tree = ast.parse(text)
    return Counter(
        {
            "code": len(code_lines(text)),
            "docstring": len(docstring_lines(tree)),
            "raise": sum(isinstance(node, ast.Raise) for node in ast.walk(tree)),
            "glued": len(places(text, "glued")),
            "squeezed": len(places(text, "squeezed")),
            "walrus": len(places(text, "walrus")),
            "splat": len(places(text, "splat")),
            "noqa": len(places(text, "noqa")),
        }
    )


def places(text: str, column: str) -> list[int]:
    """The numbers of the lines where a source is dense in one of the ways of `LEGEND`."""
    tree = ast.parse(text)
    if column == "squeezed":
        return [node.lineno for node in ast.walk(tree) if _is_squeezed(node)]
    if column == "walrus":
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        named = [one for call in calls for one in ast.walk(call) if isinstance(one, ast.NamedExpr)]
        return sorted({node.lineno for node in named})
    if column == "noqa":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        return [token.start[0] for token in comments if "noqa" in token.string]
    scopes = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    if column == "glued":
        return sorted({line for scope in scopes for line in _glued(scope)})
    if column == "splat":
        return sorted({line for scope in scopes for line in _splats(scope)})
    raise ValueError(f"places are listed of glued, squeezed, walrus, splat and noqa, got {column}")


def _is_squeezed(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    value = [ast.unparse(one) for one in node.value.elts]
    for target in node.targets:
        if isinstance(target, ast.Tuple | ast.List):
            into = [ast.unparse(one) for one in target.elts]
            if sorted(into) != sorted(value):
                return True
    return False


def _glued(scope: ast.AST) -> Iterator[int]:
    """Lines of the raise statements in a function whose message has a text from a variable."""
    texts = set(_assigned(scope, _is_text))
    for node in ast.walk(scope):
        if isinstance(node, ast.Raise) and node.exc is not None:
            formatted = [one for one in ast.walk(node.exc) if isinstance(one, ast.FormattedValue)]
            parts = [one.value for one in formatted]
            if any(isinstance(one, ast.Name) and one.id in texts for one in parts):
                yield node.lineno


def _splats(scope: ast.AST) -> Iterator[int]:
    """Lines of the calls in a function that unpack a dict which the function made."""
    made = set(_assigned(scope, _is_dict))
    for node in ast.walk(scope):
        if isinstance(node, ast.Call):
            unpacked = [one.value for one in node.keywords if one.arg is None]
            if any(isinstance(one, ast.Name) and one.id in made for one in unpacked):
                yield node.lineno


def _assigned(scope: ast.AST, kind: Kind) -> Iterator[str]:
    """The variables that get a value of a kind in a function, in assignments of tuples too."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value, kind)
        elif isinstance(node, ast.NamedExpr) and kind(node.value):
            yield node.target.id


def _pairs(target: ast.expr, value: ast.expr, kind: Kind) -> Iterator[str]:
    if isinstance(target, ast.Name) and kind(value):
        yield target.id
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its, kind)


def _is_text(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _is_text(value.body) or _is_text(value.orelse)
    if isinstance(value, ast.BinOp):
        return _is_text(value.left) or _is_text(value.right)
    words = isinstance(value, ast.Constant) and isinstance(value.value, str) and " " in value.value
    return words or isinstance(value, ast.JoinedStr)


def _is_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return _is_dict(value.left) or _is_dict(value.right)
    called = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    return isinstance(value, ast.Dict | ast.DictComp) or (called and value.func.id == "dict")


def measured(folder: Path) -> dict[str, Counter[str]]:
    """The counts of each wing of a checkout, of all of them, and of the tests."""
    table: dict[str, Counter[str]] = {wing: Counter() for wing in (*PLANNED, TOTAL, TESTS)}
    for path in sorted((folder / LIBRARY).rglob("*.py")):
        counts = density(path.read_text(encoding="utf-8"))
        wing = path.relative_to(folder / LIBRARY).parts[0]
        table[TOTAL].update(counts)
        if wing in PLANNED:
            table[wing].update(counts)
    for path in sorted((folder / "tests").rglob("*.py")):
        table[TESTS].update(density(path.read_text(encoding="utf-8")))
    return table


def formatted(table: dict[str, Counter[str]]) -> Iterator[str]:
    """The table's lines, and what its columns are."""
    yield f"{'wing':10}{'planned':>9}" + "".join(f"{name:>11}" for name in COUNTED)
    for wing, counts in table.items():
        planned = PLANNED.get(wing, sum(PLANNED.values()) if wing == TOTAL else None)
        cells = [f"{wing:10}", f"{'' if planned is None else f'{planned:,}':>9}"]
        for name, is_rate in COUNTED.items():
            rate = 1000 * counts[name] / max(counts["code"], 1)
            cells.append(f"{rate:>11.1f}" if is_rate else f"{counts[name]:>11,}")
        above = planned is not None and counts["code"] > SLACK * planned
        yield "".join(cells) + ("  more than a tenth above" if above else "")
    yield "squeezed, walrus and splat are per 1,000 code lines"
    yield LEGEND


def main(arguments: list[str]) -> None:
    """Print the table; with a column's name behind the folder, the places of that column."""
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    if not (folder / LIBRARY).is_dir():
        raise SystemExit(f"{folder} is no checkout of the project: it has no folder {LIBRARY}")
    if len(arguments) < 2:
        print("\n".join(formatted(measured(folder))))
        return
    for path in sorted((folder / LIBRARY).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for line in places(text, arguments[1]):
            print(f"{path.relative_to(folder)}:{line}: {lines[line - 1].strip()}")


if __name__ == "__main__":
    main(sys.argv[1:])
