"""One set of dependencies, said in several files that agree."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import specdec_lib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CARD = {"jupyterlab", "torch", "transformers", "ipywidgets", "plotly", "papermill", "nbval"}
IMPORT_NAMES = {"yaml": "pyyaml", "PIL": "pillow", "pydantic_core": "pydantic"}


def lock() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line.partition("==") for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s+]+", "".join(pin)) for pin in pins)
    return {canonicalize_name(name): version for name, _, version in pins}


def requirements(*extras: str) -> list[Requirement]:
    optional = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(one for extra in extras for one in optional[extra])]
    return [Requirement(line) for line in lines]


def test_the_lock_satisfies_the_project():
    pins = lock()
    for one in requirements("dev"):
        assert one.specifier.contains(pins[canonicalize_name(one.name)]), one
    assert pins["torch"] == "2.13.0" and "torch==2.13.0" in PROJECT["dependencies"]
    assert not [name for name in pins if name.startswith(("nvidia", "cuda", "triton"))]


def test_the_lock_is_closed():
    """What a locked package asks for on this system is locked too: pip installs no other."""
    assert not unlocked(lock())
    assert unlocked({name: pin for name, pin in lock().items() if name != "numpy"})


def unlocked(pins: dict[str, str]) -> list[str]:
    """What locked packages ask for, and the lock lacks or has in a version that they refuse."""
    missing = []
    for name in pins:
        for line in distribution(name).requires or ():
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate({"extra": ""}):
                pin = pins.get(canonicalize_name(asked.name))
                if pin is None or not asked.specifier.contains(pin, prereleases=True):
                    missing.append(f"{name} needs {line}")
    return missing


def test_the_conda_environment_is_the_locks():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *_, section = environment["dependencies"]
    packages = {one for one in section["pip"] if not one.startswith("-")}
    assert packages == CARD and packages <= set(lock())
    assert {"-c requirements.lock", "-e .[dev]"} <= set(section["pip"])
    assert "pip" in environment["dependencies"]


def test_every_package_that_the_library_imports_is_declared():
    extras = requirements(*PROJECT["optional-dependencies"])
    known = {canonicalize_name(one.name) for one in extras} | {"specdec-lib"}
    for path in (ROOT / "specdec_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {name.split(".")[0] for name in names} - set(sys.stdlib_module_names):
                assert canonicalize_name(IMPORT_NAMES.get(name, name)) in known, (path, name)
    declared = {canonicalize_name(one.name) for one in requirements()}
    assert {*specdec_lib.CORE, *specdec_lib.IN_NOTEBOOKS} <= declared


def test_the_metadata_names_the_pythons_that_are_tested():
    path = ROOT / ".github" / "workflows" / "test.yml"
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert named == tested == [f"3.{n}" for n in range(30) if allowed.contains(f"3.{n}")]


def test_binder_installs_the_lock_and_the_library():
    binder = ROOT / "binder"
    lines = (binder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    index, pins = [line for line in lines if not line.startswith("#")]
    assert index == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert (binder / pins.removeprefix("-r ")).resolve() == ROOT / "requirements.lock"
    python = (binder / "runtime.txt").read_text(encoding="utf-8").strip()
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python-"))
    after = binder / "postBuild"
    assert after.stat().st_mode & 0o111 and "--no-deps -e ." in after.read_text(encoding="utf-8")


def test_what_ci_calls_is_what_the_readme_says():
    script = ROOT / ".ci" / "run"
    called = re.findall(r"^(?:exec )?make ([a-z-]+)", script.read_text(encoding="utf-8"), re.M)
    assert called == ["test", "test-ui"] and script.stat().st_mode & 0o111


def without(*missing: str, notebook: bool) -> str:
    """What importing the library says where these packages are not installed; "" if it imports."""
    script = f"""
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {missing!r} else real(name, *more)
if {notebook}:
    import ipykernel
try:
    import specdec_lib
except ModuleNotFoundError as problem:
    print(problem)
"""
    run = [sys.executable, "-c", script]
    return subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_a_missing_package_is_named_with_the_line_that_installs_it():
    pins = lock()
    message = without("jaxtyping", "anywidget", notebook=True)
    assert "jaxtyping, anywidget" in message
    install = f"install -q anywidget=={pins['anywidget']} jaxtyping=={pins['jaxtyping']}"
    assert f"%pip {install}" in message
    assert f"-m pip install -q torch=={pins['torch']}" in without("torch", notebook=False)
    assert without(notebook=True) == "" == without("plotly", "anywidget", notebook=False)


PLAIN = """
import sys, warnings
if {hidden}:
    sys.modules["anywidget"] = None  # as where it is not installed
import ipykernel
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import specdec_lib
import plotly.graph_objects as go
from specdec_lib.show import widgets
panel = widgets.sliders(
    lambda width: go.Figure(go.Bar(y=[width])), {{"width": [1, 2, 3]}}, start={{"width": 1}}
)
panel.turn(width=3)
[surface] = panel.figures
print(type(surface).__name__, list(getattr(surface, "figure", surface).data[0].y))
print([one["data"].keys() for one in getattr(surface, "outputs", ())])
print(*(one.message for one in said if "anywidget" in str(one.message)))
print(panel.children[0].value if hasattr(panel.children[0], "value") else "no note")
print("image/png" in panel._repr_mimebundle_())
"""


@pytest.mark.parametrize("hidden", [True, False])
def test_without_anywidget_explorers_draw_plain_figures_and_say_how_to_install_it(hidden):
    """The control: with it, plotly's own widget, and not a word."""
    run = [sys.executable, "-W", "ignore", "-c", PLAIN.format(hidden=hidden)]
    said = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    install = f"%pip install -q anywidget=={lock()['anywidget']}"
    if hidden:
        assert "PlainFigure [3]" in said and "application/vnd.plotly.v1+json" in said
        assert said.count(install) == 2, "as a warning, and above the explorer"
    else:
        assert "FigureWidget [3]" in said and "no note" in said and install not in said
    assert said.strip().endswith("True")


def test_a_python_without_the_packages_names_another_one_and_shows_no_traceback():
    run = [sys.executable, "-S", "-m", "specdec_lib", "--help"]
    bare = {"cwd": ROOT, "env": {"PATH": "/usr/bin:/bin"}}
    done = subprocess.run(run, capture_output=True, text=True, check=False, **bare)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    first, install, other = done.stderr.splitlines()
    assert first.startswith("specdec_lib needs torch, ") and "-m pip install" in install
    assert ".venv/bin/python" in other


def test_tracked_files_are_small():
    asked = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    tracked = subprocess.run(["git", "ls-files", "-z"], **asked).stdout.split("\0")[:-1]
    if not tracked:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in tracked if (ROOT / name).is_file()}
    assert sum(sizes.values()) <= 100e6 and max(sizes.values()) <= 15e6
    weights = ("data/ladder/", "data/pair/")
    assert sum(size for name, size in sizes.items() if name.startswith(weights)) <= 45e6
