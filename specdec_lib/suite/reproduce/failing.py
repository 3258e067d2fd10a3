"""Explains why a notebook failed, and in which cell."""

import json
import re
from pathlib import Path

TRACEBACK_LINES = 6
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def explain_failure(problem: Exception, notebook: Path, kept: Path, parameters: str) -> str:
    """The notebook, the cell, the reason, the parameters and the end of the traceback, as lines.

    kept    the executed notebook as far as it came; it may be missing or cut off
    """
    reason, trace = f"{type(problem).__name__}: {problem}", []
    if "ename" in vars(problem):  # papermill's error with the kernel's own exception
        reason = f"{problem.ename}: {problem.evalue}"
        trace = COLOURS.sub("", "\n".join(problem.traceback)).splitlines()
    lines = [
        f"{notebook.name}{_failed_cell(kept)}: {reason.strip().splitlines()[0]}",
        f"    parameters: {f'{parameters}; the rest' if parameters else 'all'} as in the notebook",
        *[f"    | {line}" for line in trace if line.strip(" -")][-TRACEBACK_LINES:],
        f"    the run is kept in {kept}" if kept.exists() else "    nothing of the run was kept",
    ]
    return "\n".join(lines)


def _failed_cell(kept: Path) -> str:
    """The code cell that failed or was running: its number, its count and its first line."""
    try:
        cells = [
            cell
            for cell in json.loads(kept.read_text(encoding="utf-8"))["cells"]
            if cell["cell_type"] == "code"
            and "injected-parameters" not in cell["metadata"].get("tags", [])
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    for number, cell in enumerate(cells, 1):
        if cell["metadata"].get("papermill", {}).get("status") in ("running", "failed"):
            first = next(filter(str.strip, "".join(cell["source"]).splitlines()), "").strip()
            count = cell.get("execution_count") or " "
            return f", code cell {number} of {len(cells)} (In [{count}]), which begins {first!r}"
    return ""
