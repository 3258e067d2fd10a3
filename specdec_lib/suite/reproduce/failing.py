"""Why a notebook failed, in words that lead to the cell."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

TRACEBACK_LINES = 6
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def explained(
    problem: Exception, *, notebook: Path, kept: Path, parameters: Mapping[str, object]
) -> str:
    """Notebook, cell (its number among the notebook's own code cells, and its first line), reason,
    parameters, end of the traceback, kept run.

    kept    the executed notebook as far as it came; it may be missing or cut off
    """
    name, text = (
        getattr(problem, "ename", type(problem).__name__),
        getattr(problem, "evalue", str(problem)),
    )
    reason = f"{name}: {text}".strip().splitlines()[0]
    lines = [f"{notebook.name}{_place(kept)}: {reason}"]
    given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    lines.append(f"    parameters: {given + '; the rest' if given else 'all'} as in the notebook")
    trace = COLOURS.sub("", "\n".join(getattr(problem, "traceback", None) or [])).splitlines()
    lines += [
        f"    | {line}" for line in [line for line in trace if line.strip(" -")][-TRACEBACK_LINES:]
    ]
    lines.append(
        f"    the run is kept in {kept}" if kept.exists() else "    nothing of the run was kept"
    )
    return "\n".join(lines)


def _place(kept: Path) -> str:
    """Which cell failed or was running, as the kept run tells."""
    try:
        cells = list(_code(json.loads(kept.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    for number, cell in enumerate(cells, 1):
        failed = any(output.get("output_type") == "error" for output in cell.get("outputs", ()))
        if failed or cell.get("metadata", {}).get("papermill", {}).get("status") in (
            "running",
            "failed",
        ):
            first = next(
                (line.strip() for line in "".join(cell["source"]).splitlines() if line.strip()), ""
            )
            return f", code cell {number} of {len(cells)} (In [{cell.get('execution_count') or ' '}]), which begins {first!r}"
    return ""


def _code(run: Mapping) -> Iterator[Mapping]:
    """The notebook's own code cells; the runner's cell of parameters is none."""
    for cell in run["cells"]:
        if cell["cell_type"] == "code" and "injected-parameters" not in cell.get(
            "metadata", {}
        ).get("tags", []):
            yield cell
