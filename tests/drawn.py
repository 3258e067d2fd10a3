"""What explorers hand to figure functions, for tests that look at tables and not at plotly."""

from functools import partial
from inspect import isfunction
from typing import Any

import pytest

from specdec_lib.show import figures


class Drawn:
    """The latest call of each figure function; all still draw."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, tuple[tuple, dict[str, Any]]] = {}
        for name, draw in list(vars(figures).items()):
            if isfunction(draw):
                monkeypatch.setattr(figures, name, partial(self._record, name, draw))

    def _record(self, name: str, draw: Any, *given: Any, **named: Any) -> Any:
        self.calls[name] = given, named
        return draw(*given, **named)

    def given(self, name: str, place: int = 0) -> Any:
        """A positional argument of the latest call."""
        return self.calls[name][0][place]

    def named(self, name: str, argument: str) -> Any:
        """A keyword argument of the latest call."""
        return self.calls[name][1][argument]
