"""Which notebooks to run, with which parameters: settled, and refused where wrong, before anything runs."""

import ast
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import papermill
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = REPOSITORY / "notebooks"
PROFILES = ("smoke", "full")


@dataclass(frozen=True)
class Run:
    """One notebook and the parameters that differ from its defaults.

    figures    the folder its figures go to; `runs` below it keeps the executed notebook and the manifest
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

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of all that the run depends on: cells, parameters, library, data, lock; not of stored outputs."""
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(self.notebook.read_text(encoding="utf-8"))["cells"]]
        told = json.dumps([cells, dict(self.parameters), self.profile, _surroundings()], sort_keys=True)
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@functools.cache
def _surroundings() -> str:
    """A hash of the library, the data and the lock."""
    data = REPOSITORY / "data"
    paths = [*(REPOSITORY / "specdec_lib").rglob("*.py"), *data.rglob("*"), REPOSITORY / "requirements.lock"]
    told = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in paths if path.is_file() and not path.is_relative_to(data / "cache")):
        told.update(f"{path.relative_to(REPOSITORY).as_posix()} {path.stat().st_size}\n".encode())
        told.update(path.read_bytes())
    return told.hexdigest()


def chosen(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The numbered notebooks of a folder, in order; with `only`, those whose number or name is given.

    Raises ValueError if there is none, or one of `only` names none.
    """
    notebooks = sorted(path for path in folder.glob("*.ipynb") if re.match(r"\d{2}_", path.name))
    if not notebooks:
        raise ValueError(f"there is no notebook called like 00_name.ipynb in {folder}")
    for wanted in only:
        if not any(wanted in (path.stem, path.stem[:2]) for path in notebooks):
            raise ValueError(f"--only {wanted} names no notebook; there are {', '.join(path.stem for path in notebooks)}")
    return [path for path in notebooks if not only or path.stem in only or path.stem[:2] in only]


def declared(notebook: Path) -> dict[str, dict[str, str]]:
    """Each parameter of a notebook with its `inferred_type_name`, `default` and `help`, as papermill reads the tagged cell."""
    return papermill.inspect_notebook(str(notebook))


def planned(notebooks: Sequence[Path], figures: Path, *, profile: str = "smoke", settings: Sequence[str] = ()) -> list[Run]:
    """A run per notebook; a setting goes to every notebook that declares its name, over the profile's own value.

    settings    "name=value", the value as a Python literal; quotes may be left off a string

    Raises ValueError for a setting that no notebook declares, a value of another type than declared, or a profile without its file.
    """
    given = dict(_split(setting) for setting in settings)
    types = {path: {name: one["inferred_type_name"] for name, one in declared(path).items()} for path in notebooks}
    for name in given:
        if not any(name in known for known in types.values()):
            allowed = sorted(set().union(*types.values()))
            raise ValueError(f"no chosen notebook has a parameter {name!r}; there are {', '.join(allowed) or 'none'}")
    runs = []
    for path, known in types.items():
        values = profile_values(path, known, profile) | {name: _value(name, text, known[name], path) for name, text in given.items() if name in known}
        runs.append(Run(path, figures, profile, values))
    return runs


def profile_values(notebook: Path, known: Mapping[str, str], profile: str) -> dict[str, object]:
    """What a profile sets in a notebook: nothing for smoke, `full/NN.yml` beside the notebook for full.

    Raises ValueError for another profile, a missing file, or an entry that the notebook does not declare so.
    """
    if profile not in PROFILES:
        raise ValueError(f"a profile is one of {', '.join(PROFILES)}, got {profile!r}")
    if profile == "smoke":
        return {}
    source = notebook.parent / profile / f"{notebook.stem[:2]}.yml"
    if not source.exists():
        raise ValueError(f"the profile {profile} of {notebook.stem} would be in {source}, which does not exist")
    values = yaml.safe_load(source.read_text(encoding="utf-8")) or {}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{source} sets {name!r}, which {notebook.stem} does not declare; it has {', '.join(known) or 'none'}")
        _check(name, value, known[name], notebook)
    return values


def fits(value: object, annotation: str) -> bool:
    """Whether a value is of an annotated type: int, float, str, bool, and list or dict of them. A whole number is a float too.

    Raises ValueError for any other annotation.
    """
    return _fits(value, ast.parse(annotation, mode="eval").body)


def _fits(value: object, kind: ast.expr) -> bool:
    match kind:
        case ast.Name("int"):
            return type(value) is int
        case ast.Name("float"):
            return type(value) in (int, float)
        case ast.Name("str" | "bool" | "list" | "dict" as name):
            return type(value).__name__ == name
        case ast.Subscript(ast.Name("list"), item):
            return type(value) is list and all(_fits(one, item) for one in value)
        case ast.Subscript(ast.Name("dict"), ast.Tuple([key, item])):
            return type(value) is dict and all(_fits(one, key) and _fits(two, item) for one, two in value.items())
    raise ValueError(f"a parameter is an int, float, str, bool, or a list or dict of them, got the annotation {ast.unparse(kind)}")


def _split(setting: str) -> tuple[str, str]:
    name, equals, text = setting.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--set takes name=value, got {setting!r}")
    return name, text


def _value(name: str, text: str, annotation: str, notebook: Path) -> object:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if annotation == "str" and not isinstance(value, str):
        value = text
    _check(name, value, annotation, notebook)
    return value


def _check(name: str, value: object, annotation: str, notebook: Path) -> None:
    if annotation == "None":
        raise ValueError(f"{notebook.stem} declares {name} without a type; annotate it in the cell tagged parameters")
    if not fits(value, annotation):
        raise ValueError(f"{notebook.stem} declares {name}: {annotation}, got {value!r}")
