"""Staged and cascade speculative decoding: see the README.

Importing this says in one line how to install what is missing, and does nothing else.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

CORE = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "jaxtyping", "tqdm")
IN_NOTEBOOKS = ("pandas", "plotly", "kaleido", "ipywidgets", "anywidget")
LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"


def _remedy() -> str:
    """What to type where a package is missing; "" where none is."""
    notebook = "ipykernel" in sys.modules
    missing = [
        name for name in (*CORE, *(IN_NOTEBOOKS if notebook else ())) if find_spec(name) is None
    ]
    if not missing:
        return ""
    pins = (
        [
            line
            for line in LOCK.read_text(encoding="utf-8").splitlines()
            if line.partition("==")[0] in missing
        ]
        if LOCK.is_file()
        else []
    )
    install = f"{'%pip' if notebook else f'{sys.executable} -m pip'} install -q {' '.join(pins or missing)}"
    return f"specdec_lib needs {', '.join(missing)}, not installed for {sys.executable}. Install with:\n{install}"


if _told := _remedy():
    raise ModuleNotFoundError(_told)
