"""Figures as PNG, drawn by kaleido in a child process that serves one figure after another.

The child (`export_guard`) keeps the time of each image, and ends no later than its parent.
"""

import atexit
import base64
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.resources import files
from typing import IO, Any

import plotly.graph_objects as go

from specdec_lib.core.locking import in_turn
from specdec_lib.show import export_guard

PATIENCE = 30  # seconds for one image
TRIES = 7  # children that are tried
# pixels of a figure without a size of its own
WIDTH = 700
HEIGHT = 500
LAST_WORDS = 2000  # bytes of what a child wrote before it ended


def draw_png(figure: go.Figure, scale: int) -> bytes:
    """The figure as a PNG, with `scale` pixels in each direction for one of the figure.

    Now and then the exporter hangs as it starts (github.com/plotly/Kaleido/issues/134): after
    `PATIENCE` seconds it is killed and a new one tried, as where it ended, `TRIES` in all; then
    ValueError, and so for a figure that cannot be drawn.  Raises ImportError without kaleido.
    """
    layout: Any = figure.layout
    asked = {
        "data": json.loads(str(figure.to_json())),
        "format": "png",
        "width": layout.width or WIDTH,
        "height": layout.height or HEIGHT,
        "scale": scale,
    }
    return _exporter_of(os.getpid()).draw(json.dumps(asked).encode() + b"\n")


class Exporter:
    """A child process that draws figures. It starts with the first one, and anew where it ended."""

    def __init__(self) -> None:
        self._child: subprocess.Popen | None = None
        self._errors: IO[bytes] | None = None  # what the child writes there
        self._last_words = ""

    @in_turn
    def draw(self, request: bytes) -> bytes:
        """The PNG that a line of JSON asks for, as kaleido reads it."""
        hung = 0
        for _ in range(TRIES):
            answer = self._answer(request)
            if answer.startswith(b"{"):
                found = json.loads(answer)
                if found["code"]:
                    raise ValueError(f"the image exporter cannot draw this: {found['message']}")
                return base64.b64decode(found["result"])
            hung += answer == export_guard.HUNG
        raise ValueError(
            f"the image exporter hung {hung} times for {PATIENCE} s, and ended {TRIES - hung} times"
            f" without an image; it last wrote: {self._last_words}"
        )

    def close(self) -> None:
        """End the child and all that it started."""
        if self._child is None:
            return
        child = self._child
        self._child = None
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it may have ended
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # what the child did not read
                pipe.close()
        assert self._errors is not None  # since the child was started
        with self._errors as written:
            written.seek(0)
            self._last_words = written.read()[-LAST_WORDS:].decode(errors="replace").strip()

    def _answer(self, request: bytes) -> bytes:
        """The answer as a line of JSON; something else from a child that then is no more."""
        answer = b""
        try:
            if self._child is None:
                self._start()
            child = self._child
            assert child is not None and child.stdin is not None and child.stdout is not None
            with contextlib.suppress(BrokenPipeError):  # there may be an answer all the same
                child.stdin.write(request)
                child.stdin.flush()
            answer = child.stdout.readline()
        finally:
            if not _is_whole(answer):  # also where the caller is interrupted as it waits
                self.close()
        return answer if _is_whole(answer) or answer == export_guard.HUNG else b""

    def _start(self) -> None:
        guard = [sys.executable, "-I", "-S", export_guard.__file__, str(os.getpid()), str(PATIENCE)]
        self._errors = tempfile.TemporaryFile()
        self._child = subprocess.Popen(
            [*guard, *kaleido_command()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # so that it is the first process of a group
        )


def kaleido_command() -> list[str]:
    """How kaleido is started: with plotly's script, but without that of formulas, of which no
    figure has one: there may be no network to fetch it.
    """
    from kaleido.scopes.plotly import PlotlyScope  # late: without it there are no images

    script = str(files("plotly") / "package_data" / "plotly.min.js")
    flags = [f"--plotlyjs={script!r}", *PlotlyScope.default_chromium_args()]
    return [PlotlyScope.executable_path(), "plotly", *flags]


def _is_whole(answer: bytes) -> bool:
    return answer.startswith(b"{") and answer.endswith(b"\n")


@functools.cache
def _exporter_of(process: int) -> Exporter:
    """The exporter of a process: one that is forked off must not read the answers of another."""
    exporter = Exporter()
    atexit.register(exporter.close)
    return exporter
