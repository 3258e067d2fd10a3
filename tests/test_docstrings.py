"""What a field of a public class means stands in the class's docstring, where `help` shows it."""

import ast
import tokenize
from io import StringIO
from pathlib import Path

import pytest

from specdec_lib.core.files import REPOSITORY

LIBRARY = REPOSITORY / "specdec_lib"
COMMENTED = '''
class Box:
    """A box."""

    size: int  # in centimetres
    paths: dict = {}  # noqa: RUF012
    _seen: int = 0  # how often

    def half(self):
        size: int = 2  # not a field
'''


def commented_fields(source: str) -> list[str]:
    """The fields "Class.field" of public classes that a comment beside them describes."""
    comments = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:"))
    }
    return [
        f"{one.name}.{field.target.id}"
        for one in ast.walk(ast.parse(source))
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_")
        for field in one.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and not field.target.id.startswith("_")
        and field.end_lineno in comments
    ]


def test_a_field_with_a_comment_is_found():
    assert commented_fields(COMMENTED) == ["Box.size"]


@pytest.mark.parametrize("wing", sorted(one.parent for one in LIBRARY.glob("*/__init__.py")))
def test_no_field_is_described_by_a_comment_alone(wing: Path):
    found = {path: commented_fields(path.read_text("utf-8")) for path in wing.rglob("*.py")}
    assert {str(path): fields for path, fields in found.items() if fields} == {}
