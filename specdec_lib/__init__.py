"""Staged and cascade speculative decoding: see the README, and "Where things are" in CONTRIBUTING.

Importing this says in one line how to install what is missing, and does nothing else.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

CORE = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "jaxtyping", "tqdm")
IN_NOTEBOOKS = ("pandas", "plotly", "kaleido", "ipywidgets", "anywidget")
REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"


def _remedy() -> str:
    """What to type where a package is missing; "" where none is."""
    notebook = "ipykernel" in sys.modules
    needed = (*CORE, *(IN_NOTEBOOKS if notebook else ()))
    missing = [name for name in needed if find_spec(name) is None]
    if not missing:
        return ""
    lines = LOCK.read_text(encoding="utf-8").splitlines() if LOCK.is_file() else []
    pins = [line for line in lines if line.partition("==")[0] in missing]
    pip = "%pip" if notebook else f"{sys.executable} -m pip"
    return (
        f"specdec_lib needs {', '.join(missing)}, not installed for {sys.executable}. Install with:"
        f"\n{pip} install -q {' '.join(pins or missing)}"
    )


if _missing := _remedy():
    if sys.argv[:1] == ["-m"]:  # no traceback on the command line
        sys.exit(f"{_missing}\nOr run `make setup` in {REPOSITORY}, and use its .venv/bin/python.")
    raise ModuleNotFoundError(_missing)
