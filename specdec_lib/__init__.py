"""Staged and cascade speculative decoding: see the README, and "Where things are" in CONTRIBUTING.

Importing this says in one line how to install what is missing, and does nothing else.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

CORE = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "jaxtyping", "tqdm")
IN_NOTEBOOKS = ("pandas", "plotly", "kaleido", "ipywidgets")
FOR_EXPLORERS = ("anywidget",)  # without it they draw plain figures
REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"


def how_to_install(missing: Sequence[str]) -> str:
    """What is missing, and the line to type that installs it as the lock has it."""
    lines = LOCK.read_text(encoding="utf-8").splitlines() if LOCK.is_file() else []
    pins = [line for line in lines if line.partition("==")[0] in missing]
    pip = "%pip" if _in_notebook() else f"{sys.executable} -m pip"
    return (
        f"specdec_lib needs {', '.join(missing)}, not installed for {sys.executable}. Install with:"
        f"\n{pip} install -q {' '.join(pins or missing)}"
    )


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _missing() -> list[str]:
    """The packages without which nothing works here, and are not installed."""
    needed = (*CORE, *(IN_NOTEBOOKS if _in_notebook() else ()))
    return [name for name in needed if find_spec(name) is None]


def _check_packages() -> None:
    """Say how to install what is missing: ModuleNotFoundError, or the exit of a command; a warning
    for what a notebook can go without.
    """
    missing = _missing()
    plain = [name for name in FOR_EXPLORERS if _in_notebook() and find_spec(name) is None]
    if missing:
        remedy = how_to_install([*missing, *plain])
        if sys.argv[:1] == ["-m"]:  # no traceback on the command line
            sys.exit(
                f"{remedy}\nOr run `make setup` in {REPOSITORY}, and use its .venv/bin/python."
            )
        raise ModuleNotFoundError(remedy)
    if plain:
        warnings.warn(
            f"explorers draw their figures as plain output: {how_to_install(plain)}", stacklevel=2
        )


_check_packages()
