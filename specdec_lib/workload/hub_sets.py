"""Published data sets by name, read through the package `datasets`."""

from collections.abc import Iterator

from huggingface_hub import constants

from specdec_lib.models.hub import why_offline
from specdec_lib.workload.jsonl import Line, checked_object
from specdec_lib.workload.schemas import SCHEMAS


def rows(name: str) -> Iterator[tuple[str, Line]]:
    """The lines of a published set, through the package `datasets`: downloaded once, then from its
    cache.

    Raises ValueError if that package is not installed, or the set cannot be had.
    """
    repository, configuration, split = SCHEMAS[name].hub
    instead = f"or give a local file in its published form: source=…, {name}.jsonl"
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ValueError(
            f'{name} by name needs the package `datasets`: `pip install -e ".[hub]"`; {instead}'
        ) from error
    unreachable = why_offline(configuration if repository == "json" else None)
    if unreachable and not constants.is_offline_mode():  # `datasets` would try for minutes
        raise ValueError(f"{name} cannot be had from {_place(name)}: {unreachable}; {instead}")
    try:
        if repository == "json":
            found = load_dataset(repository, split=split, data_files=configuration)
        else:
            found = load_dataset(repository, name=configuration, split=split)
    except Exception as error:  # of whichever client `datasets` uses underneath
        raise ValueError(
            f"{name} cannot be had from {_place(name)}: {unreachable or error}; {instead}"
        ) from error
    for number, line in enumerate(found, 1):
        where = f"{_place(name)}, row {number}"
        yield where, checked_object(where, line)


def _place(name: str) -> str:
    repository, configuration, split = SCHEMAS[name].hub
    return configuration if repository == "json" else f"{repository}, {configuration}, {split}"
