"""Where the converted default target, SmolLM2, lies."""

from pathlib import Path

from specdec_lib.core.files import cache_folder

PREPARED = "source.json"  # written last: a target's folder that has it is complete


def prepared_folder() -> Path:
    """Where `specdec setup` puts the target; several clones may share it."""
    return cache_folder() / "smollm2"
