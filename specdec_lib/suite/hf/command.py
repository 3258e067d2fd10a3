"""`specdec hf`: the closest flags of other engines for an exported setting, and what is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from specdec_lib.core.commandline import Parser
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.hf.flags import flags
from specdec_lib.suite.hf.settings import build_setting, parse_setting


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the flags of every engine; raises ValueError if the file is no exported setting."""
    parser = Parser("hf", __doc__.partition(": ")[2])
    parser.add_argument("file", type=Path, help="JSON that `export_setting` wrote")
    given = parser.parse_args(arguments)

    def stand_in(where: str, named: Mapping[str, object]) -> Katz | np.ndarray:
        """An empty table in the place of each model and table, of which only the name counts."""
        if "model" not in named:
            return np.full(named["bigrams"], -1)
        if named["model"] not in data.models:
            raise ValueError(f"{where}: models has no {named['model']!r}")
        size = data.models[named["model"]].vocabulary
        return replace(Katz.fit([np.zeros(1, np.int64)], size), name=named["model"])

    try:
        data = parse_setting(given.file.read_text(encoding="utf-8"))
        found = flags(build_setting(data, stand_in), data.models)
    except (OSError, ValueError) as error:
        raise ValueError(f"{given.file}: {error}") from error
    for one in found:
        print("\n  ".join((one.engine, *(one.line or "(no speculation)").splitlines())))
        print(f"  sampling: {dict(one.sampling)}")
        print("\n".join(f"  lost: {what}" for what in one.lost) or "  lost: nothing")
