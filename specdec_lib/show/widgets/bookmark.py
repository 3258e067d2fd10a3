"""A setting of an explorer as text that brings it back: parameters of its notebook for papermill,
and what has none as a line of Python.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from specdec_lib.core.files import REPOSITORY
from specdec_lib.show.figure_place import ASKED, changed_parameters, session_values
from specdec_lib.show.widgets.knobs import Values


@dataclass(frozen=True)
class Bookmark:
    """How an explorer's setting comes back.

    notebook    that shows it, such as "01_tree_construction"; "" for none
    variable    under which the notebook has it
    named       knobs whose values are those of the notebook's parameters of the same name
    more        from the knobs' values to further parameters; one of a knob's name, such as the
                number of a prompt, stands for that knob
    always      knobs that Python turns even if they stand where the explorer begins, as it may
                begin elsewhere on another machine
    implied     knobs that follow others, and are not turned
    """

    notebook: str = ""
    variable: str = "explorer"
    named: tuple[str, ...] = ()
    more: Callable[[Values], Mapping[str, object]] = lambda at: {}
    always: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()

    def parameters(self, at: Values) -> dict[str, object]:
        """The notebook's parameters for a setting, and those that this session has changed."""
        named = {name: plain_value(at[name]) for name in self.named} | dict(self.more(at))
        path = REPOSITORY / "notebooks" / f"{self.notebook}.ipynb"
        changed = changed_parameters(path, session_values()) if path.is_file() else {}
        changed.pop(ASKED, None)
        return changed | named

    def text(self, at: Values, start: Values) -> str:
        """The setting as lines to paste; where nothing has to be turned, that is a line too.

        start    where the explorer begins
        """
        parameters = self.parameters(at)
        rest = {
            name: plain_value(value)
            for name, value in at.items()
            if name not in parameters
            and name not in self.implied
            and (value != start.get(name) or name in self.always)
        }
        lines = []
        if parameters:
            content = yaml.safe_dump(
                parameters,
                default_flow_style=True,
                sort_keys=False,
                width=10_000,
                allow_unicode=True,
            )
            place = f"notebooks/{self.notebook}.ipynb"
            lines.append(f"papermill {place} out.ipynb -y {shlex.quote(content.strip())}")
        if rest or not parameters:
            turned = ", ".join(f"{name}={value!r}" for name, value in rest.items())
            where = "in a cell below it" if rest else "where it begins"
            lines.append(f"{self.variable}.turn({turned})  # {where}")
        return "\n".join(lines)


def plain_value(value: Any) -> Any:
    """A value as Python's own: NumPy's numbers are others, that no text brings back."""
    if isinstance(value, np.generic):
        return value.item()
    return value
