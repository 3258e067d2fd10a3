"""What holds in every test: one torch thread, a seed, and no figure lands in the repository.

The library is imported where it is used: the process that hands tests to others needs none of it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jaxtyping
import pytest
from jaxtyping import _decorator

if TYPE_CHECKING:
    from drawn import Drawn
    from fakes import Clock

    from specdec_lib.workload import Ladder, Prompt

collect_ignore = [] if "SPECDEC_UI" in os.environ else ["ui"]  # they need a browser: `make test-ui`
CHECKED = 2000  # calls of a test whose shapes and types are checked
VIEWS = "application/vnd.plotly.v1+json", "application/vnd.jupyter.widget-view+json"
SEEN_NOT_COMPARED = (*VIEWS, "text/html")


class Notebooks:
    """For nbval's items, which know no fixtures: what is in compared cells and differs by run."""

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if hasattr(collector, "skip_compare"):
            collector.skip_compare = (*collector.skip_compare, *SEEN_NOT_COMPARED)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Notebooks())
    if "SPECDEC_FIGURES" not in os.environ:
        folder = tempfile.mkdtemp(prefix="specdec-figures-")
        os.environ["SPECDEC_FIGURES"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder))
        config.add_cleanup(lambda: os.environ.pop("SPECDEC_FIGURES"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Before a test and its fixtures of any scope: random weights are the same in every run,
    whichever tests a process ran before.
    """
    import torch

    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """PyTorch has one thread: each of the tests' processes would take all processors."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `show.saving.save` writes to during one test."""
    folder = tmp_path / "figures"
    monkeypatch.setenv("SPECDEC_FIGURES", str(folder))
    return folder


@pytest.fixture
def toys(tmp_path: Path) -> Path:
    """The folder of a test's own small notebooks."""
    return tmp_path / "notebooks"


class FirstCalls(type(jaxtyping.config)):
    """jaxtyping's configuration, by which the first `CHECKED` calls of a test are checked: what
    runs in a loop has been seen by then.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.off = False
        super().__init__()

    @property
    def jaxtyping_disable(self) -> bool:
        self.calls += 1
        return self.off or self.calls > CHECKED

    @jaxtyping_disable.setter
    def jaxtyping_disable(self, off: bool) -> None:
        self.off = off


@pytest.fixture(autouse=True)
def checked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes and types are checked at run time in the first calls of every test."""
    monkeypatch.setattr(_decorator, "config", FirstCalls())


@pytest.fixture
def unchecked(checked_at_first: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run-time check of shapes and types: for tests that run, thousands of times, code that
    others run checked (five times faster). Functions within functions, which would be given their
    checks anew by every call, get none.
    """
    checked = jaxtyping.jaxtyped

    def lenient(**options: object) -> Callable[[Callable], Callable]:
        return lambda one: one if "<locals>" in one.__qualname__ else checked(**options)(one)

    monkeypatch.setattr(_decorator.config, "jaxtyping_disable", True)
    monkeypatch.setattr(jaxtyping, "jaxtyped", lenient)


@pytest.fixture
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default's size is chosen by two turns of rounds: where nothing hangs on which it is."""
    from specdec_lib.measure.latency import needed

    monkeypatch.setattr(needed, "REPEATS", 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    """The clock of everything that is timed."""
    from fakes import Clock

    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


@pytest.fixture(scope="session")
def ladder() -> "Ladder":
    """The ladder of tiny random models, in float32 on the CPU."""
    from tiny import tiny_ladder

    return tiny_ladder()


@pytest.fixture(scope="session")
def prompts() -> "list[Prompt]":
    """The development code prompts."""
    from specdec_lib.workload import load_prompts

    return load_prompts("code", "development")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> "Drawn":
    """What explorers hand to figure functions."""
    from drawn import Drawn

    return Drawn(monkeypatch)
