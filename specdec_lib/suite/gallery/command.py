"""`specdec gallery`: lay the figures out as one page, index.html in their folder."""

from collections.abc import Sequence

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import check_writable, figures_folder
from specdec_lib.suite.gallery.building import build


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out a folder's figures; raises ValueError if the folder cannot be used."""
    parser = Parser("gallery", __doc__.partition(": ")[2], writes=None)
    note = "without, the folder SPECDEC_FIGURES names, else figures/"
    parser.add_common("--out", note=note)
    folder = (parser.parse_args(arguments).out or figures_folder()).expanduser().resolve()
    if folder.exists():
        check_writable(folder)
    print(build(folder))
