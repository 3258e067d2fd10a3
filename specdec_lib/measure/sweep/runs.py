"""What every prompt of a sweep is put through, in whichever process."""

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from specdec_lib.measure.sweep.grid import Setting, checked, played, row
from specdec_lib.measure.sweep.identity import code, fingerprint
from specdec_lib.measure.sweep.kept import Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.workload import Ladder, Pair, Prompt

_ONE = (
    threading.Lock()
)  # models remember what they read, so a process decodes one prompt at a time, whatever its threads


@dataclass(frozen=True)
class Run:
    """A sweep but for its prompts.

    settings, ladder    as they are, or recipes of them: `ladder()` and `settings(ladder)`; only
                        recipes can be sent to another process

    Raises ValueError if the ladder is a recipe and the settings are not: they would belong to other
    models.
    """

    settings: Sequence[Setting] | Recipe
    ladder: Ladder | Pair | Recipe
    seed: int = 0
    max_new_tokens: int = 128

    def __post_init__(self) -> None:
        if isinstance(self.ladder, Recipe) and not isinstance(self.settings, Recipe):
            raise ValueError(
                "the ladder is a recipe and the settings are not, so that they belong to other"
                " models: give a recipe of the settings too"
            )

    def stage(self) -> tuple[tuple[Setting, ...], Ladder | Pair]:
        """The settings and the ladder; those of recipes are made once per process."""
        if isinstance(self.settings, Recipe):
            return (
                _staged(self.settings, self.ladder)
                if isinstance(self.ladder, Recipe)
                else (checked(self.settings.made(self.ladder)), self.ladder)
            )
        return checked(self.settings), self.ladder

    def fingerprint(self) -> str:
        """Of all that decides rows but the prompt: settings in order, models, seed, length, code.

        Raises ValueError as `identity` does.
        """
        recipes = isinstance(self.settings, Recipe) and isinstance(self.ladder, Recipe)
        made = (
            _staged_fingerprint(self.settings, self.ladder)
            if recipes
            else fingerprint(*self.stage())
        )
        return fingerprint(made, self.seed, self.max_new_tokens, code(played, row))

    def rows(self, prompt: Prompt, on_row: Callable[[], object] = lambda: None) -> list[Row]:
        """The rows of one prompt, a setting after the other; `on_row` is called after each."""
        settings, ladder = self.stage()
        found = []
        for setting, generation in played(
            settings, prompt, ladder, seed=self.seed, max_new_tokens=self.max_new_tokens
        ):
            found.append(row(setting, prompt, generation))
            on_row()
        return found


@functools.lru_cache(maxsize=1)
def _loaded(ladder: Recipe) -> Ladder | Pair:
    return ladder.made()


@functools.lru_cache(maxsize=4)
def _staged(settings: Recipe, ladder: Recipe) -> tuple[tuple[Setting, ...], Ladder | Pair]:
    loaded = _loaded(ladder)
    return checked(settings.made(loaded)), loaded


@functools.lru_cache(maxsize=4)
def _staged_fingerprint(settings: Recipe, ladder: Recipe) -> str:
    return fingerprint(*_staged(settings, ladder))


def prepared(run: Run) -> tuple[int, str]:
    """In a worker: how many settings there are, and the fingerprint."""
    with _alone():
        return len(run.stage()[0]), run.fingerprint()


def rows_of(prompt: Prompt, run: Run, expected: str) -> list[Row]:
    """In a worker: the rows of one prompt.

    expected    the fingerprint that another worker found

    Raises ValueError if this worker's is another: its models, its code or its versions differ, and
    its rows could too.
    """
    with _alone():
        found = run.fingerprint()
        if found != expected:
            raise ValueError(
                "workers differ in models, code, versions or kind of device: fingerprints"
                f" {expected} and {found}"
            )
        return run.rows(prompt)


@contextmanager
def _alone() -> Iterator[None]:
    """One prompt at a time per process, on one thread of torch."""
    with _ONE:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
