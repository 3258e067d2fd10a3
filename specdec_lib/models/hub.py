"""Where a model lies: in a local folder, or under a name on the Hugging Face hub."""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.utils import get_session

Source = str | Path
"""A local folder in hub format, or a name on the hub."""

TIMEOUT_SECONDS = 5  # the hub's client would retry for most of a minute, for each file
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True)
class Location:
    """A model's place: its name, whether it is a folder, and why the hub cannot be asked, or ""."""

    name: str
    local: bool
    offline: str

    @property
    def files_only(self) -> bool:
        """Whether only files on this machine are read: the folder, or earlier downloads."""
        return self.local or bool(self.offline)


def locate(source: Source) -> Location:
    """Where a model lies.  Raises ValueError if it is no folder and cannot be a name on the hub."""
    if Path(source).is_dir():
        return Location(f"folder {source}", True, "")
    if isinstance(source, Path) or not HUB_NAME.fullmatch(source) or Path(source).is_file():
        wanted = 'a local folder in hub format, or a name on the hub like "openai-community/gpt2"'
        raise ValueError(f"a model is {wanted}; {source!s} is neither")
    return Location(f"hub model {source} (no such local folder)", False, why_offline())


def why_offline(address: str | None = None) -> str:
    """Why the hub (or another address) cannot be reached, in words; "" if it can."""
    if constants.is_offline_mode():
        names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
        name = next((name for name in names if os.environ.get(name)), names[0])
        return f"{name}=1 is set (unset it, or set it to 0, and start Python anew for a download)"
    address = address or constants.ENDPOINT
    if _answers(address):
        return ""
    remedy = "HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy; HF_HUB_OFFLINE=1 reads what is here"
    return f"{address} cannot be reached ({remedy})"


@functools.lru_cache(maxsize=4)
def _answers(address: str) -> bool:
    try:
        get_session().head(address, timeout=TIMEOUT_SECONDS)
    except Exception:  # of the HTTP client that this version of huggingface_hub uses
        return False
    return True
