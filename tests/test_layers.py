"""A module imports from its own wing of the library or a lower one, and never in a circle."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from size import sizes

LIBRARY = Path(__file__).resolve().parents[1] / "specdec_lib"
WINGS = ("core", "theory", "models", "drafts", "workload", "measure", "show", "suite")  # upwards
HEAVY = {"plotly", "papermill", "pandas", "ipywidgets", "nbval"}
MAY_BE_HEAVY = {"show", "suite"}  # and all that `measure` returns are tables of pandas
START = "__main__"  # starts the command line; not a wing

Sources = dict[str, str]  # by dotted name without the library's own; "core.tree" is a package


def sources() -> Sources:
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[module] = path.read_text(encoding="utf-8")
    del found[""], found[START]
    return found


def wing(module: str) -> str:
    return module.split(".")[0]


def height(module: str) -> int:
    return WINGS.index(wing(module)) if wing(module) in WINGS else -1


def imported(text: str, known: Sources) -> Iterator[str]:
    """The library's modules that a source imports; of `from a import b` a.b if there is one."""
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
    found = [f"{name} is no wing" for name in sorted(set(map(wing, known)) - set(WINGS))]
    below = {module: set(imported(text, known)) - {module} for module, text in known.items()}
    for module, text in known.items():
        nodes = ast.walk(ast.parse(text))
        if any(isinstance(node, ast.ImportFrom) and node.level for node in nodes):
            found.append(f"{module} imports relatively")
        higher = [other for other in below[module] if height(other) > height(module)]
        found += [f"{module} imports {other}, which is higher" for other in higher]
        if wing(module) not in MAY_BE_HEAVY:
            free = {"pandas"} if wing(module) == "measure" else set()
            heavy = sorted((HEAVY - free) & set(top_level(text)))
            found += [f"{module} imports {name} at the top" for name in heavy]
    try:
        TopologicalSorter(below).prepare()
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


def test_imports_go_down_and_heavy_packages_stay_up():
    assert problems(sources()) == [] and {wing(module) for module in sources()} == set(WINGS)


def circles_of_rooms(known: Sources, wing_of_rooms: str = "measure") -> list[str]:
    """The rooms of a wing, its folders and other modules, that import each other in a circle."""
    below: dict[str, set[str]] = {}
    for module, text in known.items():
        parts = module.split(".")
        if parts[0] == wing_of_rooms and len(parts) > 1:
            others = (other.split(".") for other in imported(text, known))
            rooms = {other[1] for other in others if other[0] == wing_of_rooms and len(other) > 1}
            below.setdefault(parts[1], set()).update(rooms - {parts[1]})
    try:
        TopologicalSorter(below).prepare()
    except CycleError as circle:
        return circle.args[1]
    return []


def test_rooms_of_measure_do_not_import_each_other_in_a_circle():
    """Control: two folders whose modules do not, but who do."""
    assert circles_of_rooms(sources()) == []
    ring = {
        "measure.a.one": f"{FROM}.measure.b.one import x",
        "measure.b.two": f"{FROM}.measure.a.two import x",
        "measure.a.two": "",
        "measure.b.one": "",
    }
    assert problems(ring) == [] and set(circles_of_rooms(ring)) == {"a", "b"}


def used_by_settings(known: Sources) -> set[str]:
    """What the selections of drafts import of `measure`, their own room apart."""
    room = "measure.settings"
    every = {
        other
        for module in known
        if module.startswith(room)
        for other in imported(known[module], known)
    }
    return {other for other in every if wing(other) == "measure" and not other.startswith(room)}


def test_the_selections_of_drafts_import_nothing_that_measures():
    assert used_by_settings(sources()) == set()
    known = {"measure.settings.a": f"{FROM}.measure.racing import x", "measure.racing": ""}
    assert used_by_settings(known) == {"measure.racing"}, "the control"


def test_the_library_itself_exports_nothing():
    text = (LIBRARY / "__init__.py").read_text(encoding="utf-8")
    assert not list(imported(text, sources())) and "__all__" not in text
    assert set(top_level(text)) <= set(sys.stdlib_module_names)


def test_a_public_function_or_class_is_defined_once():
    """Verbs are named after their files."""
    defined = Counter(
        node.name
        for module, text in sources().items()
        if ".commands." not in module
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in defined.items() if times > 1} == {"main"}


def too_long(text: str) -> list[tuple[int, str]]:
    """Code lines and name of each function of more than 40, and the file's ("") if above 250."""
    return [(lines, name) for lines, name in sizes(text) if lines > (40 if name else 250)]


def test_files_and_functions_stay_small():
    for folder in (LIBRARY, LIBRARY.parent / "tests"):
        for path in folder.rglob("*.py"):
            assert too_long(path.read_text(encoding="utf-8")) == [], path


def test_a_long_file_and_a_long_function_are_found():
    assert too_long("x = 1\n" * 250) == []
    assert too_long("x = 1\n" * 251) == [(251, "")]
    assert too_long("def f():\n" + "    x = 1\n" * 39) == []
    assert too_long("def f():\n" + "    x = 1\n" * 40) == [(41, "f")]


FROM = "from specdec_lib"
CIRCLE = {"core": "", "core.a": f"{FROM}.core.b import x", "core.b": f"{FROM}.core import a"}
OFFENDING = {
    "core.t imports drafts, which is higher": {"core.t": f"{FROM}.drafts import A", "drafts": ""},
    "models imports show.a, which is higher": {"models": "import specdec_lib.show.a", "show.a": ""},
    "core imports show, which is higher": {"core": f"def f():\n  {FROM} import show", "show": ""},
    "utils is no wing": {"utils": ""},
    "models.table imports pandas at the top": {"models.table": "import pandas as pd"},
    "measure imports plotly at the top": {"measure": "from plotly.graph_objects import Figure"},
    "drafts imports relatively": {"drafts": "from . import models", "models": ""},
    "imports go round in a circle": CIRCLE,
}


@pytest.mark.parametrize("complaint", OFFENDING)
def test_the_checker_finds_an_offending_module(complaint):
    assert any(problem.startswith(complaint) for problem in problems(OFFENDING[complaint]))


def test_the_checker_finds_nothing_in_a_late_heavy_import_or_a_lower_wing():
    late = {"core": "", "core.a": "def f():\n    import pandas"}
    assert problems(late | {"drafts": "from specdec_lib.core.a import x"}) == []
