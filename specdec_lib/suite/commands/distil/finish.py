"""`specdec distil finish`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.core.files import cache_folder
from specdec_lib.measure.options import check_folders, place
from specdec_lib.suite.distil.places import LADDER


def finish(
    *,
    export: Annotated[Path | None, place("write ordinary model folders here instead")] = None,
    out: Annotated[Path, place("the folder of the drafts")] = LADDER,
) -> None:
    """Put the drafts that were trained into data/ladder, or export those that are there.

    In the cache's folder `drafts`, middle.safetensors, draft.safetensors and katz.npz are read,
    which distil train and distil ngrams write; the tokens that they propose are those of distil
    teach. Drafts of distil online, such as those in data/online, are not taken: they see the last
    tokens alone.
    """
    check_folders({"export": export} if export else {"out": out})
    from specdec_lib.suite.distil import finishing
    from specdec_lib.suite.distil.lessons import read_head

    if export:
        finishing.export(export)
    else:
        cache = cache_folder()
        finishing.finish(cache / "drafts", read_head(cache / "lessons"), out)
