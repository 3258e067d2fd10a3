"""The layers of the library: a module imports from strictly lower ones, a package is one room, and nothing goes round in a circle."""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "specdec_lib"
LAYERS = (
    {"context", "chance", "intervals", "places", "notebook"},
    {"tree"},
    {"verify", "lm", "theory"},
    {"seq2seq", "ngram", "runtime"},
    {"draft"},
    {"decode", "steps"},
    {"staged", "cascade"},
    {"workload"},
    {"latency", "acceptance", "replay", "sweep", "published", "ties"},
    {"ladder", "figures"},
    {"bench", "widgets", "hf", "gallery"},
    {"reproduce", "compare"},
)
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
HEAVY = {"plotly", "papermill", "pandas", "ipywidgets", "nbval", "dask", "distributed"}
MAY_BE_HEAVY = {"figures", "widgets", "gallery", "reproduce"}

Sources = dict[str, str]  # dotted module name without the library's own, "lm.cached"; "lm" is the package itself


def sources() -> Sources:
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    del found[""]
    return found


def room(module: str) -> str:
    return module.split(".")[0]


def imported(text: str, known: Sources) -> Iterator[str]:
    """The library's own modules that a source imports, wherever in it; of `from a import b` the module a.b if there is one, else a."""
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
    """Everything that the modules do against the layers."""
    found = [f"{name} is in no layer" for name in sorted({room(module) for module in known} - set(LAYER))]
    for module, text in known.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                found.append(f"{module} imports relatively")
        for other in imported(text, known):
            if room(other) != room(module) and LAYER.get(room(other), -1) >= LAYER.get(room(module), len(LAYERS)):
                found.append(f"{module} (layer {LAYER.get(room(module))}) imports {other} (layer {LAYER.get(room(other))})")
        if room(module) not in MAY_BE_HEAVY:
            found += [f"{module} imports {name} at the top" for name in sorted(HEAVY & set(top_level(text)))]
    try:
        TopologicalSorter({module: set(imported(text, known)) - {module} for module, text in known.items()}).prepare()
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


def test_the_library_itself_exports_nothing() -> None:
    text = (LIBRARY / "__init__.py").read_text(encoding="utf-8")
    assert not list(imported(text, sources())) and "__all__" not in text
    assert set(top_level(text)) <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "made_up, complaint",
    [
        ({"tree": "from specdec_lib.draft import Chain", "draft": ""}, "tree (layer 1) imports draft (layer 4)"),
        ({"verify": "import specdec_lib.lm", "lm": ""}, "verify (layer 2) imports lm (layer 2)"),
        ({"verify": "def f():\n    from specdec_lib import lm", "lm": ""}, "verify (layer 2) imports lm (layer 2)"),
        ({"utils": ""}, "utils is in no layer"),
        ({"sweep": "import pandas as pd"}, "sweep imports pandas at the top"),
        ({"sweep": "from plotly.graph_objects import Figure"}, "sweep imports plotly at the top"),
        ({"draft": "from . import lm", "lm": ""}, "draft imports relatively"),
        (
            {"lm": "", "lm.a": "from specdec_lib.lm.b import x", "lm.b": "from specdec_lib.lm import a"},
            "imports go round in a circle",
        ),
    ],
)
def test_the_checker_finds_an_offending_module(made_up: Sources, complaint: str) -> None:
    assert any(problem.startswith(complaint) for problem in problems(made_up))


def test_the_checker_finds_nothing_in_a_late_heavy_import_or_a_package_of_one_room() -> None:
    assert problems({"lm": "from specdec_lib.lm.a import x", "lm.a": "def f():\n    import pandas", "draft": "from specdec_lib.lm import x"}) == []
