"""Tiny notebooks for the runner to run, and a reader of the page that shows their figures."""

import json
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "img", "input", "br"}

GOOD = (
    "from pathlib import Path\nimport os\n"
    "Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(str(width))\nprint(width)"
)


def write_toy(
    folder: Path, name: str, body: str, parameters: str = "width: int = 2  # branches per level"
) -> Path:
    """A notebook of a title, a parameters cell and one cell of code, as Lab would store it."""

    def cell(identity: str, source: str, **more: object) -> dict:
        return {"cell_type": "code", "id": identity, "metadata": {}, "source": source} | more

    run = {"execution_count": None, "outputs": []}
    cells = [
        cell("a", f"# {name}", cell_type="markdown"),
        cell("b", parameters, metadata={"tags": ["parameters"]}, **run),
        cell("c", body.format(number=name[:2]), **run),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps(notebook | {"nbformat_minor": 5}))
    return path


class Read(HTMLParser):
    """A page's elements; complains about a tag that is not closed, or closes what is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, attribute: str) -> list[str]:
        return [given[attribute] or "" for _, given in self.found if attribute in given]
