"""The Markdown pages of the repository, and which numbers they say."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "data" / "measured"
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        MEASURED / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
README = PAGES["README.md"]
RESULTS = PAGES["docs/results.md"]


def without_tables(page: str) -> str:
    return re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->\n", "", page, flags=re.S)


def numbers(text: str) -> list[str]:
    """The numbers that a text says, in order; those in names, code and addresses are none."""
    words = re.sub(r"\]\([^)]*\)|`[^`]*`", " ", text)
    return re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)", words)


def says(page: str, *wanted: str, about: str = "") -> bool:
    """Whether some paragraph, in which a topic's word stands, says these numbers one after the
    other: its sentences may be worded anew, its numbers are the measured ones.
    """
    paragraphs = [" ".join(one.split()) for one in without_tables(page).split("\n\n")]
    size = len(wanted)
    return any(
        [*wanted] == said[start : start + size]
        for said in (numbers(one) for one in paragraphs if about in one)
        for start in range(len(said) - size + 1)
    )
