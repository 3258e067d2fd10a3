"""Which notebooks run, with which parameters and why: settled before anything runs."""

import ast
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdec_lib.core.files import REPOSITORY, file_digest
from specdec_lib.show.figure_place import ASKED
from specdec_lib.suite.gallery.manifest import read_manifest
from specdec_lib.suite.notebook import number_of, numbered, read_cells, read_parameters

PROFILES = ("smoke", "full")
KINDS = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}
FROM_ZERO = ("seed", "prompt")  # whole numbers that may be 0; all others count from 1
TEMPERATURES = ("temperature", "temperatures")
PROMPT_SETS = ("domain", "domains")  # names of sets, or files of prompts
MAY_BE_EMPTY = ("verdicts",)  # lists
UNUSED = ("suite/gallery", "suite/reproduce")  # parts of the library that no notebook depends on


@dataclass(frozen=True)
class NotebookRun:
    """One notebook and the parameters that differ from its defaults.

    figures    the folder of its figures; the executed notebook and the manifest go to `runs` in it
    """

    notebook: Path
    figures: Path
    profile: str = "smoke"
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.notebook.stem

    @property
    def kept(self) -> Path:
        return self.figures / "runs" / self.notebook.name

    @property
    def manifest(self) -> Path:
        return self.kept.with_suffix(".json")

    @property
    def given(self) -> str:
        """The parameters that differ from the defaults, in words."""
        return ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())

    @functools.cached_property
    def fingerprint(self) -> dict[str, str]:
        """A hash of each thing that the run depends on, stored outputs not among them."""
        own = {"cells": read_cells(self.notebook), "parameters": [self.parameters, self.profile]}
        return {name: _digest(value) for name, value in own.items()} | _surroundings()

    def why(self) -> str:
        """Why the notebook has to run; "" if an earlier run with the same fingerprint stands."""
        earlier = read_manifest(self.manifest)
        if earlier is None:
            return "never run in this folder"
        if earlier.state != "finished":
            return f"its last run {'failed' if earlier.state == 'failed' else 'was interrupted'}"
        known = earlier.fingerprint
        changed = [name for name, one in self.fingerprint.items() if known.get(name) != one]
        if changed:
            return f"changed since its last run: {', '.join(changed)}"
        other = [name for name in earlier.figures if not earlier.wrote(self.figures / name)]
        return f"not as the last run left it: {', '.join(other)}" if other else ""


@functools.cache
def _surroundings() -> dict[str, str]:
    """A hash each of the library, the data and the lock."""
    library = REPOSITORY / "specdec_lib"
    data = REPOSITORY / "data"
    cache = data / "cache"
    unused = {library / part for part in UNUSED}
    parts = {
        "library": [one for one in library.rglob("*.py") if unused.isdisjoint(one.parents)],
        "data": [one for one in data.rglob("*") if one.is_file() and cache not in one.parents],
        "lock": [REPOSITORY / "requirements.lock"],
    }
    return {
        name: _digest([(str(one.relative_to(REPOSITORY)), file_digest(one)) for one in sorted(own)])
        for name, own in parts.items()
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def choose_notebooks(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The numbered notebooks of a folder, in order; with `only`, those of that number or name.
    Raises ValueError if there is none, or one of `only` names none.
    """
    notebooks = numbered(folder)
    if not notebooks:
        raise ValueError(f"there is no notebook called like 00_name.ipynb in {folder}")
    there = {name: path.stem for path in notebooks for name in (number_of(path.stem), path.stem)}
    if unknown := [one for one in only if one not in there]:
        names = ", ".join(dict.fromkeys(there.values()))
        raise ValueError(f"--only {', '.join(unknown)} names no notebook; there are {names}")
    return [path for path in notebooks if not only or {path.stem, number_of(path.stem)} & {*only}]


def plan_runs(
    notebooks: Sequence[Path],
    figures: Path,
    *,
    profile: str = "smoke",
    settings: Sequence[str] = (),
) -> list[NotebookRun]:
    """A run per notebook; a setting goes to each notebook that declares it, over the profile.

    settings    "name=value", the value as a Python literal; quotes may be left off a string
    Raises ValueError for a setting or an entry of the profile that is not declared so, or a setting
    that comes twice.
    """
    given: dict[str, str] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name in given:
            raise ValueError(f"--set takes name=value, each name once, got {setting!r}")
        given[name] = text
    declared = {path: read_parameters(path) for path in notebooks}
    allowed = {name for known in declared.values() for name in known}
    unknown = sorted(given.keys() - allowed)
    if unknown:
        raise ValueError(
            f"--set {', '.join(unknown)}: no chosen notebook has it;"
            f" there are {', '.join(sorted(allowed)) or 'none'}"
        )
    runs = []
    for path, known in declared.items():
        kinds = {name: one["inferred_type_name"] for name, one in known.items()}
        full = _profile_values(path, profile)
        check_parameters(full, kinds, path, f"{profile}/{number_of(path.stem)}.yml")
        own = {name: parse_value(given[name], kinds[name]) for name in given if name in kinds}
        check_parameters(own, kinds, path, "--set")
        runs.append(NotebookRun(path, figures, profile, full | own))
    return runs


def parse_value(text: str, annotation: str) -> object:
    """A Python literal, or the text itself where it is none or a string is declared."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # no literal, or too deep
        return text
    return text if annotation == "str" and not isinstance(value, str) else value


def _profile_values(notebook: Path, profile: str) -> dict[str, object]:
    """What a profile sets in a notebook: for "full" what `full/NN.yml` holds, else nothing."""
    import yaml

    source = notebook.parent / profile / f"{number_of(notebook.stem)}.yml"
    if not source.is_file():
        return {}
    try:
        return dict(yaml.safe_load(source.read_text(encoding="utf-8")))
    except (ValueError, TypeError, yaml.YAMLError) as problem:
        raise ValueError(f"{source} cannot be read: {problem}") from problem


def check_parameters(
    values: Mapping[str, object], kinds: Mapping[str, str], notebook: Path, given_by: str
) -> None:
    """Raises ValueError unless all values fit the annotations that a notebook declares (int, float,
    str, bool, or list or dict of them; a whole number is a float too) and `check_bounds`; and for
    another annotation.

    given_by    what the values come from, such as "--set", for the message
    """
    from pydantic import ConfigDict, ValidationError, create_model

    from specdec_lib.workload.prompts import wrong_fields  # late: it imports torch

    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    fields: dict[str, Any] = {
        name: (_read_annotation(name, one, notebook), None) for name, one in kinds.items()
    }
    model = create_model("Parameters", __config__=config, **fields)
    try:
        model(**values)
    except ValidationError as problem:
        declared = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise ValueError(
            f"{given_by} {wrong_fields(problem, notebook.stem)};"
            f" {notebook.stem} declares {declared}"
        ) from problem
    for name, value in values.items():
        check_bounds(name, value, given_by)


def _read_annotation(name: str, annotation: str, notebook: Path) -> object:
    """The type that a parameter's annotation stands for; raises ValueError if it is none."""
    from pydantic import create_model

    try:
        kind = eval(annotation, {"__builtins__": {}}, KINDS)
        create_model("Parameter", value=(kind, None))()
    except Exception as problem:  # of whatever stands in the cell
        raise ValueError(
            f"{notebook.name}, parameters cell: {name} has the annotation {annotation!r}; allowed"
            f" are {', '.join(KINDS)}, list[…] and dict[…, …] of them"
        ) from problem
    return kind


def check_bounds(name: str, value: Any, given_by: str) -> None:
    """Raises ValueError if a parameter of the right kind has a value that no notebook takes: whole
    numbers count from 1, or from 0, temperatures are 0 or more, texts are names that there are, or
    a file of prompts.
    """
    if name == ASKED:
        raise ValueError(f"{given_by} {name}: the folder of a run is --out, got {value!r}")
    if isinstance(value, list) and not value and name not in MAY_BE_EMPTY:
        raise ValueError(f"{given_by} {name}: a list of one or more is allowed, got []")
    for one in value if isinstance(value, list) else [value]:
        if type(one) is int and name not in TEMPERATURES:
            least = 0 if name in FROM_ZERO else 1
            if one < least:
                raise ValueError(f"{given_by} {name}: counts from {least}, got {one}")
        elif name in TEMPERATURES and one < 0:
            raise ValueError(f"{given_by} {name}: a temperature is 0 or more, got {one}")
        elif isinstance(one, str):
            names = allowed_names(name)
            if not names or one in names:
                continue
            if name not in PROMPT_SETS:
                raise ValueError(f"{given_by} {name}: one of {', '.join(names)}, got {one!r}")
            if not one.endswith(".jsonl"):
                raise ValueError(
                    f"{given_by} {name}: one of {', '.join(names)}, or a file that ends in .jsonl,"
                    f" got {one!r}"
                )


def allowed_names(parameter: str) -> tuple[str, ...]:
    """The texts that a parameter of this name may have; none if any is allowed."""
    if parameter in PROMPT_SETS:
        from specdec_lib.workload.prompts import DOMAINS, PUBLISHED

        return (*DOMAINS, *PUBLISHED)
    if parameter in ("runtime", "runtimes"):
        from specdec_lib.models.loading import RUNTIMES

        return RUNTIMES
    return ()
