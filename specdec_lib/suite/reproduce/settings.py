"""The parameters that the command line or a profile sets, checked against the notebooks."""

import ast
import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from specdec_lib.core.commandline import shorten

PROFILES = ("smoke", "full")
KINDS = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}


def split_setting(setting: str) -> tuple[str, str]:
    """The two sides of "name=value"; raises ValueError if there are not two."""
    name, equals, text = setting.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--set takes name=value, got {setting!r}")
    return name, text


def check_names(given: Iterable[str], allowed: Iterable[str]) -> None:
    """Raises ValueError for a name that is not allowed, with the nearest one that is."""
    allowed = sorted(set(allowed))
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            meant = f" (is {near[0]!r} meant?)" if near else ""
            raise ValueError(
                f"no chosen notebook has a parameter {name!r}{meant}; there are"
                f" {', '.join(allowed) or 'none'}"
            )


def parse_value(name: str, text: str, annotation: str, notebook: Path) -> object:
    """The value of a setting: a Python literal, or the text itself where a string is declared.

    Raises ValueError if it is of another type.
    """
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # no literal, or too deep
        value = text
    if annotation == "str" and not isinstance(value, str):
        value = text
    if annotation.startswith("list") and isinstance(value, tuple):
        value = list(value)  # 4,8 as well as [4,8]
    check_value(name, value, annotation, notebook)
    return value


def profile_values(notebook: Path, declared: Mapping[str, str], profile: str) -> dict[str, object]:
    """What a profile sets in a notebook: nothing for smoke, what `full/NN.yml` holds for full.

    declared    the annotations of the notebook's parameters

    Raises ValueError for a file that is missing or unreadable, or an entry that the notebook does
    not declare so.
    """
    import yaml

    if profile == "smoke":
        return {}
    source = notebook.parent / profile / f"{notebook.stem[:2]}.yml"
    try:
        values = yaml.safe_load(source.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as problem:
        raise ValueError(
            f"the profile {profile} of {notebook.stem} cannot be read: {problem}"
        ) from problem
    if not isinstance(values, dict) or not values.keys() <= declared.keys():
        raise ValueError(
            f"{source} sets parameters of {notebook.stem}, {', '.join(declared) or 'none'}; got"
            f" {values!r}"
        )
    for name, value in values.items():
        check_value(name, value, declared[name], notebook)
    return values


def check_value(name: str, value: object, annotation: str, notebook: Path) -> None:
    """Raises ValueError unless a value fits the annotation that a notebook declares: int, float,
    str, bool, or list or dict of them; a whole number is a float too.
    """
    from pydantic import TypeAdapter

    try:
        if annotation == "None":
            raise TypeError("no annotation")
        kind = eval(annotation, {"__builtins__": {}}, KINDS)
        TypeAdapter(kind).validate_python(value, strict=True)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()  # as a manifest holds it
    except (NameError, SyntaxError, TypeError, AttributeError) as problem:
        raise ValueError(
            "a parameter is an int, float, str, bool, or a list or dict of them; "
            f"{notebook.stem} declares {name}: {annotation}"
        ) from problem
    except ValueError as problem:  # pydantic's is one
        raise ValueError(
            f"{notebook.stem} declares {name}: {annotation}, got {shorten(repr(value))}"
        ) from problem
