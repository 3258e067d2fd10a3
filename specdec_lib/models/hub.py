"""Whether a model is a local folder or a name on a hub, and whether the hub can be reached, without
waiting for minutes.
"""

import functools
import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE = 5  # seconds until a hub must answer
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
OFF = ("1", "ON", "YES", "TRUE")


def offline(endpoint: str | None = None) -> str:
    """Why the hub (or another address) will not be asked, in words: HF_HUB_OFFLINE is set, or
    nothing answers; "" where it can be.
    """
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "").upper() in OFF:
            return (
                f"{name}={os.environ[name]} is set (take it away, or set it to 0, for a download)"
            )
    endpoint = endpoint or os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    if _answers(endpoint):
        return ""
    return f"{endpoint} cannot be reached (HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy; HF_HUB_OFFLINE=1 reads what was downloaded before)"


@functools.lru_cache(maxsize=4)
def _answers(endpoint: str) -> bool:
    """Whether somebody listens there; asked once, because the hub's own client tries for most of a
    minute, for each file anew.
    """
    if any(
        os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    ):
        return True
    address = urlsplit(endpoint)
    try:
        with socket.create_connection(
            (address.hostname or "", address.port or (80 if address.scheme == "http" else 443)),
            PATIENCE,
        ):
            return True
    except OSError:
        return False


def is_local(source: str | Path) -> bool:
    """Whether a model is a folder here, rather than one of a hub.

    Raises ValueError for a path that is no folder and cannot be a hub's name.
    """
    if Path(source).is_dir():
        return True
    if isinstance(source, Path) or not HUB_ID.fullmatch(source) or Path(source).is_file():
        raise ValueError(
            "a model is a local folder in hub format, or the name of one on the hub like"
            f' "openai-community/gpt2"; {source!s} is neither'
        )
    return False
