"""Tables in the Markdown pages of the repository, each between two marks."""

from pathlib import Path

from specdec_lib.core.files import REPOSITORY, write_whole

README = REPOSITORY / "README.md"
RESULTS = REPOSITORY / "docs" / "results.md"
EARLIER_RACES = REPOSITORY / "docs" / "earlier_races.md"
GUIDE = REPOSITORY / "docs" / "guide"  # its chapters


def replace_marked(mark: str, text: str, page: Path = README) -> None:
    """Replace what stands between "<!-- MARK: begin -->" and "<!-- MARK: end -->" of a page."""
    begin, end = _marks(mark)
    whole = page.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise ValueError(f"{page} needs the marks {begin} and {end} around its table")
    before = whole.split(begin)[0]
    after = whole.split(end)[1]
    write_whole(page, f"{before}{begin}\n{text}\n{end}{after}".encode())


def read_marked(mark: str, text: str) -> str:
    """What stands between the two marks in the text of a page; ValueError if it lacks one."""
    begin, end = _marks(mark)
    if begin not in text or end not in text:
        raise ValueError(f"the page needs the marks {begin} and {end} around its table")
    return text.split(begin)[1].split(end)[0].strip("\n")


def _marks(mark: str) -> tuple[str, str]:
    """What stands before and behind a table."""
    return f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
