"""Where a model lies: in a local folder, or under a name on the Hugging Face hub."""

import functools
import re
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import constants
from huggingface_hub.utils import get_session

Source = str | Path
"""A local folder in hub format, or a name on the hub."""

TIMEOUT_SECONDS = 5  # the hub's client would retry for most of a minute, for each file
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Location(NamedTuple):
    """A model's name, why the hub cannot be asked, or "", and whether only files on this machine
    are read: the folder, or earlier downloads.
    """

    name: str
    offline: str
    files_only: bool


def locate(source: Source) -> Location:
    """Where a model lies.  Raises ValueError if it is no folder and cannot be a name on the hub."""
    if Path(source).is_dir():
        return Location(f"folder {source}", "", True)
    if isinstance(source, Path) or not HUB_NAME.fullmatch(source) or Path(source).is_file():
        wanted = 'a local folder in hub format, or a name on the hub like "openai-community/gpt2"'
        raise ValueError(f"a model is {wanted}; {source!s} is neither")
    offline = why_offline()
    return Location(f"hub model {source} (no such local folder)", offline, bool(offline))


def why_offline() -> str:
    """Why the hub cannot be reached, in words; "" if it can."""
    if constants.is_offline_mode():
        return "HF_HUB_OFFLINE=1 or TRANSFORMERS_OFFLINE=1 is set (unset it for a download)"
    remedy = "HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy; HF_HUB_OFFLINE=1 reads what is here"
    reached = _answers(constants.ENDPOINT)
    return "" if reached else f"{constants.ENDPOINT} cannot be reached ({remedy})"


@functools.lru_cache(maxsize=4)
def _answers(address: str) -> bool:
    try:
        get_session().head(address, timeout=TIMEOUT_SECONDS)
    except Exception:  # of the HTTP client that this version of huggingface_hub uses
        return False
    return True
