"""The table of code lines and density counts what it says, in a source where each occurs."""

from pathlib import Path

import pytest
import size

SOURCE = '''"""A module's docstring,
of two lines."""

# a comment
import os  # noqa: F401


def f(x):
    """One line."""
    a, b = g(x), h(x)
    a, b = b, a
    text = """not a
docstring"""
    wanted = f"a whole {a}"
    if b:
        raise ValueError(f"{wanted}, got {x}")
    if a:
        raise ValueError(f"{text[:1]} is one string, got {x}")
    sizes = {"a": a}
    h(**sizes)
    h(**x)
    return g(c := a)
'''


def test_every_column_is_counted():
    assert size.density(SOURCE) == {
        "code": 15,
        "docstring": 3,
        "raise": 2,
        "glued": 1,
        "squeezed": 1,
        "walrus": 1,
        "splat": 1,
        "noqa": 1,
    }
    assert [*size.sizes(SOURCE)] == [(15, ""), (14, "f")]


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("squeezed", "a, b = g(x), h(x)"),
        ("glued", 'raise ValueError(f"{wanted}, got {x}")'),
        ("splat", "h(**sizes)"),
        ("walrus", "return g(c := a)"),
        ("noqa", "import os  # noqa: F401"),
    ],
)
def test_the_places_are_those_of_the_column_alone(column, line):
    (number,) = size.places(SOURCE, column)
    assert SOURCE.splitlines()[number - 1].strip() == line


def checkout(folder: Path, code: str) -> Path:
    wing = folder / "specdec_lib" / "workload"
    wing.mkdir(parents=True)
    (wing / "one.py").write_text(code)
    return folder


def test_the_table_of_any_checkout_is_printed_and_never_fails(tmp_path, capsys):
    size.main([str(checkout(tmp_path, "x = 1\n" * 600))])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("workload")]
    assert row.split()[:3] == ["workload", "450", "600"] and row.endswith("a tenth above")


def test_a_wing_a_little_above_its_number_is_not_marked(tmp_path, capsys):
    size.main([str(checkout(tmp_path, "x = 1\n" * 490))])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("workload")]
    assert row.split()[:3] == ["workload", "450", "490"] and "above" not in row


def test_a_folder_without_the_library_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="is no checkout of the project: it has no folder"):
        size.main([str(tmp_path)])
