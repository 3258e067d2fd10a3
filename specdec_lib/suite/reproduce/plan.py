"""Which notebooks to run, with which parameters, and why: settled, and refused where wrong, before
anything runs.
"""

import ast
import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from specdec_lib.core.files import REPOSITORY
from specdec_lib.suite import notebook as written
from specdec_lib.suite.gallery.manifest import Manifest, digest, digest_of, remembered
from specdec_lib.suite.reproduce.settings import check_names, profile_values, split, value


@dataclass(frozen=True)
class Run:
    """One notebook and the parameters that differ from its defaults.

    figures    the folder its figures go to; `runs` below it keeps the executed notebook and the
               manifest
    """

    notebook: Path
    figures: Path
    profile: str = "smoke"
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.notebook.stem

    @property
    def kept(self) -> Path:
        """The executed notebook."""
        return self.figures / "runs" / self.notebook.name

    @property
    def manifest(self) -> Path:
        """What is remembered of the run."""
        return self.kept.with_suffix(".json")

    @property
    def values(self) -> dict[str, object]:
        """Every parameter as the run will have it."""
        own = {
            name: ast.literal_eval(one.default)
            for name, one in written.parameters(self.notebook).items()
        }
        return own | dict(self.parameters)

    @functools.cached_property
    def fingerprint(self) -> dict[str, str]:
        """A hash of each thing that the run depends on: cells, parameters, library, data, lock; not
        of stored outputs.
        """
        cells = [(kind, source) for kind, source, _ in written.cells(self.notebook)]
        own = {"cells": cells, "parameters": [dict(self.parameters), self.profile]}
        return {
            name: digest_of([json.dumps(one, sort_keys=True).encode()]) for name, one in own.items()
        } | _surroundings()

    def why(self) -> str:
        """Why the run is not superfluous; "" if an earlier one with the same fingerprint stands,
        and its figures are as it left them.
        """
        earlier = remembered(self.manifest)
        if earlier is None:
            return "never run in this folder"
        if earlier.state != "finished":
            return (
                "its last run failed"
                if earlier.state == "failed"
                else "its last run was interrupted"
            )
        changed = [
            name for name, one in self.fingerprint.items() if earlier.fingerprint.get(name) != one
        ]
        return (
            f"changed since its last run: {', '.join(changed)}"
            if changed
            else self._damage(earlier)
        )

    def _damage(self, earlier: Manifest) -> str:
        """What has become of an earlier run's figures; "" if nothing."""
        gone = [name for name in earlier.figures if not (self.figures / name).exists()]
        if gone:
            return f"missing: {', '.join(gone)}"
        other = [
            name for name, known in earlier.figures.items() if digest(self.figures / name) != known
        ]
        return f"not as the last run left it: {', '.join(other)}" if other else ""


@functools.cache
def _surroundings() -> dict[str, str]:
    """A hash each of the library (the gallery and the runner left out, which no notebook uses), the
    data and the lock.
    """
    library, data = REPOSITORY / "specdec_lib", REPOSITORY / "data"
    code = (
        path
        for path in library.rglob("*.py")
        if path.relative_to(library).parts[0] not in ("gallery", "reproduce")
    )
    stored = (path for path in data.rglob("*") if not path.is_relative_to(data / "cache"))
    return {
        "library": _contents(code),
        "data": _contents(stored),
        "lock": _contents([REPOSITORY / "requirements.lock"]),
    }


def _contents(paths: Iterable[Path]) -> str:
    files = sorted(path for path in paths if path.is_file())
    named = (
        (
            f"{path.relative_to(REPOSITORY).as_posix()} {path.stat().st_size}\n".encode(),
            path.read_bytes(),
        )
        for path in files
    )
    return digest_of(chain.from_iterable(named))


def chosen(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The numbered notebooks of a folder, in order; with `only`, those whose number or name is
    given.

    Raises ValueError if there is none, or one of `only` names none.
    """
    notebooks = sorted(path for path in folder.glob("*.ipynb") if re.match(r"\d{2}_", path.name))
    if not notebooks:
        raise ValueError(f"there is no notebook called like 00_name.ipynb in {folder}")
    for wanted in only:
        if not any(wanted in (path.stem, path.stem[:2]) for path in notebooks):
            raise ValueError(
                f"--only {wanted} names no notebook; there are"
                f" {', '.join(path.stem for path in notebooks)}"
            )
    return [path for path in notebooks if not only or path.stem in only or path.stem[:2] in only]


def planned(
    notebooks: Sequence[Path],
    figures: Path,
    *,
    profile: str = "smoke",
    settings: Sequence[str] = (),
) -> list[Run]:
    """A run per notebook; a setting goes to every notebook that declares its name, over the
    profile's own value.

    settings    "name=value", the value as a Python literal; quotes may be left off a string

    Raises ValueError for a setting that no notebook declares or that comes twice, a value of
    another type than declared, or a profile without its file.
    """
    pairs = [split(setting) for setting in settings]
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError(f"--set takes each name once, got {', '.join(settings)}")
    types = {
        path: {name: one.annotation for name, one in written.parameters(path).items()}
        for path in notebooks
    }
    check_names(given, list(types.values()))
    runs = []
    for path, known in types.items():
        own = {
            name: value(name, text, known[name], path)
            for name, text in given.items()
            if name in known
        }
        runs.append(Run(path, figures, profile, profile_values(path, known, profile) | own))
    return runs
