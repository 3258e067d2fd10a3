"""Published data sets by name, read through the package `datasets`."""

from collections.abc import Iterator

from huggingface_hub import constants

from specdec_lib.models.hub import why_offline
from specdec_lib.workload.schemas import SCHEMAS


def hub_lines(name: str) -> Iterator[tuple[str, object]]:
    """The lines of a published set with their places, downloaded once; raises ValueError if
    `datasets` is not installed, or the set cannot be had.
    """
    repository, configuration, split = SCHEMAS[name].hub
    instead = f"or give a local file in its published form, {name}.jsonl"
    try:
        from datasets import load_dataset
    except ImportError as error:
        remedy = f'`pip install -e ".[hub]"`; {instead}'
        raise ValueError(f"{name} by name needs the package `datasets`: {remedy}") from error
    bare = repository == "json"
    place = configuration if bare else f"{repository}, {configuration}, {split}"
    unreachable = why_offline(configuration if bare else None)
    if unreachable and not constants.is_offline_mode():  # `datasets` would try for minutes
        raise ValueError(f"{name} cannot be had from {place}: {unreachable}; {instead}")
    options = {"data_files": configuration} if bare else {"name": configuration}
    try:
        found = load_dataset(repository, split=split, **options)
    except Exception as error:  # of whichever client `datasets` uses underneath
        why = unreachable or error
        raise ValueError(f"{name} cannot be had from {place}: {why}; {instead}") from error
    for number, line in enumerate(found, 1):
        yield f"{place}, row {number}", dict(line)
