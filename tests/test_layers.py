"""The wings of the library: a module imports from its own wing or a lower one, and no import goes
round in a circle.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "specdec_lib"
WINGS = (
    "core",
    "theory",
    "models",
    "drafts",
    "workload",
    "measure",
    "show",
    "suite",
)  # lowest first
HEAVY = {"plotly", "papermill", "pandas", "ipywidgets", "nbval", "dask", "distributed"}
MAY_BE_HEAVY = {"show", "suite"}
START = "__main__"  # starts the command line; not a wing

Sources = dict[
    str, str
    # by dotted module name without the library's own, "core.tree.nodes"; "core.tree" is the package
    # itself
]


def sources() -> Sources:
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(
            encoding="utf-8"
        )
    del found[""], found[START]
    return found


def wing(module: str) -> str:
    return module.split(".")[0]


def height(module: str) -> int:
    return WINGS.index(wing(module)) if wing(module) in WINGS else -1


def imported(text: str, known: Sources) -> Iterator[str]:
    """The library's own modules that a source imports, wherever in it; of `from a import b` the
    module a.b if there is one, else a.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            library, _, module = name.partition(".")
            if library == "specdec_lib" and module:
                yield module if module in known or "." not in module else module.rpartition(".")[0]


def problems(known: Sources) -> list[str]:
    """Everything that the modules do against the order of the wings."""
    found = [
        f"{name} is no wing" for name in sorted({wing(module) for module in known} - set(WINGS))
    ]
    for module, text in known.items():
        if any(
            isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(text))
        ):
            found.append(f"{module} imports relatively")
        found += [
            f"{module} imports {other}, which is higher"
            for other in imported(text, known)
            if height(other) > height(module)
        ]
        if wing(module) not in MAY_BE_HEAVY:
            found += [
                f"{module} imports {name} at the top"
                for name in sorted(HEAVY & set(top_level(text)))
            ]
    try:
        TopologicalSorter(
            {module: set(imported(text, known)) - {module} for module, text in known.items()}
        ).prepare()
    except CycleError as circle:
        found.append(f"imports go round in a circle: {' -> '.join(circle.args[1])}")
    return found


def top_level(text: str) -> Iterator[str]:
    """The packages that are imported as soon as the module is."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_imports_go_down_and_heavy_packages_stay_up() -> None:
    assert problems(sources()) == []


def test_every_wing_is_there() -> None:
    assert {wing(module) for module in sources()} == set(WINGS)


def test_the_library_itself_exports_nothing() -> None:
    text = (LIBRARY / "__init__.py").read_text(encoding="utf-8")
    assert not list(imported(text, sources())) and "__all__" not in text
    assert set(top_level(text)) <= set(sys.stdlib_module_names)


def test_a_public_function_or_class_is_defined_once() -> None:
    defined = Counter(
        node.name
        for text in sources().values()
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in defined.items() if times > 1} == {"main"}


@pytest.mark.parametrize(
    "made_up, complaint",
    [
        (
            {"core.tree": "from specdec_lib.drafts import Chain", "drafts": ""},
            "core.tree imports drafts, which is higher",
        ),
        (
            {"models": "import specdec_lib.show.steps", "show.steps": ""},
            "models imports show.steps, which is higher",
        ),
        (
            {"core": "def f():\n    from specdec_lib import models", "models": ""},
            "core imports models, which is higher",
        ),
        ({"utils": ""}, "utils is no wing"),
        ({"measure.sweep": "import pandas as pd"}, "measure.sweep imports pandas at the top"),
        (
            {"measure": "from plotly.graph_objects import Figure"},
            "measure imports plotly at the top",
        ),
        ({"drafts": "from . import models", "models": ""}, "drafts imports relatively"),
        (
            {
                "core": "",
                "core.a": "from specdec_lib.core.b import x",
                "core.b": "from specdec_lib.core import a",
            },
            "imports go round in a circle",
        ),
    ],
)
def test_the_checker_finds_an_offending_module(made_up: Sources, complaint: str) -> None:
    assert any(problem.startswith(complaint) for problem in problems(made_up))


def test_the_checker_finds_nothing_in_a_late_heavy_import_or_a_lower_wing() -> None:
    assert (
        problems(
            {
                "core": "",
                "core.a": "def f():\n    import pandas",
                "drafts": "from specdec_lib.core.a import x",
            }
        )
        == []
    )
