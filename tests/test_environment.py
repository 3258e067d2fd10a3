"""One set of dependencies, said in several files that agree."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CARD = {"jupyterlab", "torch", "transformers", "ipywidgets", "plotly", "papermill", "nbval"}
IMPORT_NAMES = {"yaml": "pyyaml"}


def lock() -> dict[str, str]:
    lines = [line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s+]+)", line) for line in lines]
    assert all(pins), f"a line is no plain pin: {[line for line, pin in zip(lines, pins, strict=True) if not pin]}"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def requirements(*extras: str) -> list[Requirement]:
    asked = [*PROJECT["dependencies"], *(one for extra in extras for one in PROJECT["optional-dependencies"][extra])]
    return [Requirement(one) for one in asked]


def test_the_lock_satisfies_the_project() -> None:
    pins = lock()
    for one in requirements("dev"):
        assert one.specifier.contains(pins[canonicalize_name(one.name)]), f"{one}, locked at {pins[canonicalize_name(one.name)]}"


def test_torch_is_pinned_for_any_device() -> None:
    pins = lock()
    assert pins["torch"] == "2.13.0" and "torch==2.13.0" in PROJECT["dependencies"]
    assert not [name for name in pins if name.startswith(("nvidia", "cuda", "triton"))]


def test_the_conda_environment_is_the_locks() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *_, section = environment["dependencies"]
    packages = {one for one in section["pip"] if not one.startswith("-")}
    assert packages == CARD and packages <= set(lock())
    assert {"-c requirements.lock", "-e .[dev]"} <= set(section["pip"])
    assert "pip" in environment["dependencies"]


def test_every_package_that_the_library_imports_is_declared() -> None:
    declared = {canonicalize_name(one.name) for one in requirements(*PROJECT["optional-dependencies"])}
    for path in (ROOT / "specdec_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"specdec_lib"}:
                assert canonicalize_name(IMPORT_NAMES.get(name, name)) in declared, f"{path.relative_to(ROOT)} imports {name}"


def test_every_make_target_that_is_written_about_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in (ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run", ROOT / "README.md"):
        told = set(re.findall(r"(?:`|exec )make ([a-z-]+)", path.read_text(encoding="utf-8"))) if path.exists() else set()
        assert told <= targets, f"{path.name} names {sorted(told - targets)}"
    assert {"figures", "test", "lab", "check", "refresh", "full", "ladder", "lossless", "table"} <= targets
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
