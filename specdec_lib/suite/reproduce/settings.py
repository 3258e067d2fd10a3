"""What a person may set: a notebook's parameters, on the command line or in a profile, each checked
against its annotation.
"""

import ast
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

PROFILES = ("smoke", "full")


def split(setting: str) -> tuple[str, str]:
    """The two sides of "name=value".

    Raises ValueError if there are not two, or the left one is no name.
    """
    name, equals, text = setting.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--set takes name=value, got {setting!r}")
    return name, text


def check_names(given: Iterable[str], types: Sequence[Mapping[str, str]]) -> None:
    """Raises ValueError for a name that no notebook declares, with the nearest of those that one
    does.
    """
    allowed = sorted(set().union(*types))
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            meant = f" (is {near[0]!r} meant?)" if near else ""
            raise ValueError(
                f"no chosen notebook has a parameter {name!r}{meant}; there are"
                f" {', '.join(allowed) or 'none'}"
            )


def value(name: str, text: str, annotation: str, notebook: Path) -> object:
    """A setting's value: a Python literal, or the text itself where a string is declared.

    Raises ValueError if it is of another type.
    """
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        found = text
    if annotation == "str" and not isinstance(found, str):
        found = text
    if annotation.startswith("list") and isinstance(found, tuple):
        found = list(found)  # 4,8 as well as [4,8]
    check(name, found, annotation, notebook)
    return found


def profile_source(notebook: Path, profile: str) -> Path:
    """The file that holds a notebook's parameters at full size."""
    return notebook.parent / profile / f"{notebook.stem[:2]}.yml"


def profile_values(notebook: Path, known: Mapping[str, str], profile: str) -> dict[str, object]:
    """What a profile sets in a notebook: nothing for smoke, `full/NN.yml` beside the notebook for
    full.

    Raises ValueError for another profile, a missing or unreadable file, or an entry that the
    notebook does not declare so.
    """
    if profile not in PROFILES:
        raise ValueError(f"a profile is one of {', '.join(PROFILES)}, got {profile!r}")
    if profile == "smoke":
        return {}
    source = profile_source(notebook, profile)
    if not source.exists():
        raise ValueError(
            f"the profile {profile} of {notebook.stem} would be in {source}, which does not exist"
        )
    try:
        values = yaml.safe_load(source.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as problem:
        raise ValueError(f"{source} is no YAML: {problem}") from problem
    if not isinstance(values, dict):
        raise ValueError(f"{source} holds name: value pairs, got {values!r}")
    for name, one in values.items():
        if name not in known:
            raise ValueError(
                f"{source} sets {name!r}, which {notebook.stem} does not declare; it has"
                f" {', '.join(known) or 'none'}"
            )
        check(name, one, known[name], notebook)
    return values


def expected_times(notebook: Path, profile: str) -> list[str]:
    """What a profile's file says of its own run time: its comments that speak of minutes or hours."""
    source = profile_source(notebook, profile)
    lines = source.read_text(encoding="utf-8").splitlines() if source.exists() else []
    comments = [line.partition("#")[2].strip() for line in lines if "#" in line]
    return [comment for comment in comments if "hour" in comment or "minute" in comment]


def check(name: str, given: object, annotation: str, notebook: Path) -> None:
    """Raises ValueError unless a value fits the annotation that a notebook declares."""
    if annotation == "None":
        raise ValueError(
            f"{notebook.stem} declares {name} without a type; annotate it in the cell tagged"
            " parameters"
        )
    if not fits(given, annotation):
        raise ValueError(f"{notebook.stem} declares {name}: {annotation}, got {given!r}")


def fits(given: object, annotation: str) -> bool:
    """Whether a value is of an annotated type: int, float, str, bool, and list or dict of them.

    A whole number is a float too.

    Raises ValueError for any other annotation.
    """
    return _fits(given, ast.parse(annotation, mode="eval").body)


def _fits(given: object, kind: ast.expr) -> bool:
    match kind:
        case ast.Name("int"):
            return type(given) is int
        case ast.Name("float"):
            return type(given) in (int, float)
        case ast.Name("str" | "bool" | "list" | "dict" as name):
            return type(given).__name__ == name
        case ast.Subscript(ast.Name("list"), item):
            return type(given) is list and all(_fits(one, item) for one in given)
        case ast.Subscript(ast.Name("dict"), ast.Tuple([key, item])):
            return type(given) is dict and all(
                _fits(one, key) and _fits(two, item) for one, two in given.items()
            )
    raise ValueError(
        "a parameter is an int, float, str, bool, or a list or dict of them, got the annotation"
        f" {ast.unparse(kind)}"
    )
