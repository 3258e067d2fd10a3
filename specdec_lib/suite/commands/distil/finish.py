"""`specdec distil finish`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import cache_folder
from specdec_lib.measure.options import check_folders, place
from specdec_lib.suite.distil.places import LADDER


def finish(
    *,
    export: Annotated[Path | None, place("write ordinary model folders here instead")] = None,
    drafts: Annotated[Path | None, place("what was trained (default: in the cache)")] = None,
    window: Annotated[int | None, Parameter(help="last tokens that the draft sees")] = None,
    out: Annotated[Path, place("the folder of the drafts")] = LADDER,
) -> None:
    """Put the drafts that were trained into data/ladder, or export those that are there.

    In the folder of what was trained, middle.safetensors, draft.safetensors and katz.npz are read,
    which distil train, distil online and distil ngrams write, and reading.safetensors, if there is
    one. The tokens that the drafts propose are those of head.json there, else of distil teach. A
    file of distil online says how many tokens its draft sees; --window says it of the draft.
    """
    reads = {"drafts": drafts} if drafts else {}
    check_folders({"export": export} if export else {"out": out}, reads=reads)
    from specdec_lib.suite.distil import finishing
    from specdec_lib.suite.distil.lessons import read_head

    if export:
        finishing.export(export)
    else:
        folder = drafts or cache_folder() / "drafts"
        own = (folder / "head.json").is_file()
        head = read_head(folder if own else cache_folder() / "lessons")
        finishing.finish(folder, head, out, window=window)
