"""Where the text, the drafts and the passages lie; it imports no heavy package."""

from pathlib import Path

from specdec_lib.core.files import DATA, cache_folder

TEXT = DATA / "text"  # the shards that the target wrote
LADDER = DATA / "ladder"  # the drafts in use
KINDS_OF_TEXT = ("short", "long", "kept-out")


def passages_file() -> Path:
    """Where the pieces of package archives are, unless said otherwise."""
    return cache_folder() / "passages.jsonl.gz"
