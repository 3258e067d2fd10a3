"""Where a model lies: in a local folder, or under a name on the Hugging Face hub."""

import functools
from os.path import isdir
from pathlib import Path
from textwrap import shorten

from huggingface_hub import snapshot_download
from huggingface_hub.utils import disable_progress_bars

Source = str | Path
"""A local folder in hub format, or a name on the hub."""

FILES = ("*.json", "*.jinja", "*.model", "*.safetensors", "*.txt")
OTHERS = ("*/*", "consolidated*")  # the same model in other formats


def model_folder(source: Source) -> Path:
    """The folder of a model, downloaded once from the hub.  Raises ValueError for no model, and for
    a path that is no folder, for which no hub is asked.
    """
    if isdir(source):  # False also for what can be no path, such as a name that is too long
        return Path(source)
    if isinstance(source, Path):
        raise ValueError(f"a model is a local folder in hub format; there is no folder {source}")
    return _downloaded(source)


@functools.cache
def _downloaded(name: str) -> Path:
    disable_progress_bars()
    try:
        return Path(snapshot_download(name, allow_patterns=FILES, ignore_patterns=OTHERS))
    except Exception as error:  # of the HTTP client that this version of huggingface_hub uses
        wanted = 'a local folder in hub format, or a name on the hub like "openai-community/gpt2"'
        why = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(f"a model is {wanted}; {name} cannot be had ({why})") from error
