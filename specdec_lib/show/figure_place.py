"""Where the figures of a notebook go: into the folder in git only if all its parameters are the
defaults, so that a run with others, by papermill alone or in JupyterLab, overwrites nothing there.
"""

import ast
import functools
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdec_lib.core.files import REPOSITORY, figures_folder

ASKED = "figures_folder"  # the parameter of every notebook that names a folder
OWN = Path("runs", "own")  # in the figures' folder, where other parameters write; not in git


def figures_place(number: str, notebooks: Path = REPOSITORY / "notebooks") -> Path:
    """The folder for the figures of the notebook with that number, as the session in which it runs
    has its parameters: what its `figures_folder` names; else figures/, or with other parameters
    than the defaults a folder of its own, of which a warning tells.

    `specdec reproduce`, which knows its parameters, and SPECDEC_FIGURES come first; outside a
    notebook it is figures/.
    """
    values = session_values()
    if os.environ.get("SPECDEC_FIGURES") or ASKED not in values:
        return figures_folder()
    if named := str(values[ASKED]).strip():
        return Path(named).expanduser().resolve()
    path = next(iter(sorted(notebooks.glob(f"{number}_*.ipynb"))), None)
    changed = {} if path is None else changed_parameters(path, values)
    if path is None or not changed:
        return figures_folder()
    place = figures_folder() / OWN / path.stem
    given = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    _warn(f"figures go to {place}, for {given}; figures_folder names another folder")
    return place


def session_values() -> Mapping[str, Any]:
    """The variables of the notebook session that this runs in; none outside one."""
    if "ipykernel" not in sys.modules:
        return {}
    from IPython import get_ipython  # late: only a kernel has it loaded already

    shell = get_ipython()
    return {} if shell is None else shell.user_ns


def changed_parameters(notebook: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have another value than the notebook's own cell gives them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    own = next(cell for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
    found = {}
    for line in ast.parse("".join(own["source"])).body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value:
            name, default = line.target.id, ast.literal_eval(line.value)
            if values.get(name, default) != default:
                found[name] = values[name]
    return found


@functools.cache
def _warn(line: str) -> None:
    """Warn, once."""
    warnings.warn(line, stacklevel=4)  # the line of the notebook that saves a figure
