"""A sweep but for its prompts, the same in whichever process it runs."""

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from specdec_lib.measure.sweep.grid import Setting, check_settings, decode_prompt, generation_row
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.texts import Texts, check_texts
from specdec_lib.workload import Ladder, Pair, Prompt

# models remember what they read, so a process decodes one prompt at a time, whatever its threads
_ONE = threading.Lock()


@dataclass(frozen=True)
class Job:
    """A sweep but for its prompts.

    texts               that settings are replayed along, see `decode_prompt`
    settings, ladder    as they are, or recipes of them: `ladder()` and `settings(ladder)`; only
                        recipes can be sent to another process
    """

    settings: Sequence[Setting] | Recipe
    ladder: Ladder | Pair | Recipe
    seed: int = 0
    max_new_tokens: int = 128
    texts: tuple[Texts, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.ladder, Recipe) and not isinstance(self.settings, Recipe):
            raise ValueError(
                "the ladder is a recipe and the settings are not, so that they belong to other"
                " models: give a recipe of the settings too"
            )
        check_texts(self.texts, self.seed, self.max_new_tokens)

    def stage(self) -> tuple[tuple[Setting, ...], Ladder | Pair]:
        """The settings and the ladder; those of recipes are made once per process."""
        if isinstance(self.ladder, Recipe):
            return _staged(self.settings, self.ladder)
        given = self.settings
        made = given.make(self.ladder) if isinstance(given, Recipe) else given
        return check_settings(made), self.ladder

    def fingerprint(self) -> str:
        """A digest of all that decides rows but the prompt: settings, models, seed, length."""
        recipes = isinstance(self.ladder, Recipe)
        find = _staged_fingerprint if recipes else lambda *_: fingerprint(*self.stage())
        made = find(self.settings, self.ladder)
        return fingerprint(made, self.seed, self.max_new_tokens, self.texts)

    def rows(self, prompt: Prompt) -> list[Row]:
        """The rows of one prompt, a setting after the other."""
        settings, ladder = self.stage()
        limits = {"seed": self.seed, "max_new_tokens": self.max_new_tokens}
        made = decode_prompt(settings, prompt, ladder, **limits, texts=self.texts)
        name = ladder.target.name
        return [generation_row(setting, prompt, one, target=name) for setting, one in made]


_loaded = functools.lru_cache(maxsize=1)(Recipe.make)


@functools.lru_cache(maxsize=4)
def _staged(settings: Recipe, ladder: Recipe) -> tuple[tuple[Setting, ...], Ladder | Pair]:
    loaded = _loaded(ladder)
    return check_settings(settings.make(loaded)), loaded


@functools.lru_cache(maxsize=4)
def _staged_fingerprint(settings: Recipe, ladder: Recipe) -> str:
    return fingerprint(*_staged(settings, ladder))


def fingerprint_of(job: Job) -> str:
    """In a worker: the job's fingerprint."""
    with _alone():
        return job.fingerprint()


def rows_of(prompt: Prompt, job: Job, expected: str) -> list[Row]:
    """In a worker: the rows of one prompt.  Raises ValueError unless its fingerprint is the
    expected one, which another worker found: its rows could differ too.
    """
    with _alone():
        found = job.fingerprint()
        if found != expected:
            raise ValueError(
                "workers differ in models, code, versions or kind of device: fingerprints"
                f" {expected} and {found}"
            )
        return job.rows(prompt)


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
