"""Where a model lies: in a local folder, or under a name on the Hugging Face hub."""

from pathlib import Path
from textwrap import shorten

from huggingface_hub import snapshot_download
from huggingface_hub.utils import disable_progress_bars

Source = str | Path
"""A local folder in hub format, or a name on the hub."""

FILES = ("*.json", "*.jinja", "*.model", "*.safetensors", "*.txt")
OTHERS = ("*/*", "consolidated*")  # the same model in other formats


def model_folder(source: Source) -> Path:
    """The folder of a model, downloaded once from the hub.  Raises ValueError for no model."""
    if Path(source).is_dir():
        return Path(source)
    disable_progress_bars()
    try:
        found = snapshot_download(str(source), allow_patterns=FILES, ignore_patterns=OTHERS)
    except Exception as error:  # of the HTTP client that this version of huggingface_hub uses
        wanted = 'a local folder in hub format, or a name on the hub like "openai-community/gpt2"'
        why = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(f"a model is {wanted}; {source!s} cannot be had ({why})") from error
    return Path(found)
