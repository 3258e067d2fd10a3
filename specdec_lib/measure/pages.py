"""Tables in the Markdown pages of the repository, each between two marks."""

from pathlib import Path

from specdec_lib.core.files import REPOSITORY, write_whole

README = REPOSITORY / "README.md"


def replace_marked(mark: str, text: str, page: Path = README) -> None:
    """Replace what stands between "<!-- MARK: begin -->" and "<!-- MARK: end -->" of a page."""
    begin, end = (f"<!-- {mark}: {side} -->" for side in ("begin", "end"))
    whole = page.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise ValueError(f"{page} needs the marks {begin} and {end} around its table")
    before = whole.split(begin)[0]
    after = whole.split(end)[1]
    write_whole(page, f"{before}{begin}\n{text}\n{end}{after}".encode())
