"""A gallery of odd names, of damaged manifests, and on a disk that is full."""

import json
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from toys import GOOD, write_toy

from specdec_lib.core.files import file_digest
from specdec_lib.suite.gallery.building import build
from specdec_lib.suite.gallery.manifest import Manifest, read_manifest
from specdec_lib.suite.gallery.surroundings import surroundings


def attributes(text: str) -> dict[str, list[str | None]]:
    """The values of each attribute of a page's elements."""
    found = defaultdict(list)
    reader = HTMLParser()
    reader.handle_starttag = lambda _, given: [found[name].append(one) for name, one in given]
    reader.feed(text)
    return found


@pytest.fixture
def made(toys: Path, figures: Path) -> tuple[Path, Path]:
    """A notebook, and a folder with a figure of it, its manifest and the page."""
    notebook, table = write_toy(toys, "00_toy", GOOD), figures / "00_toy.csv"
    (figures / "runs").mkdir(parents=True)
    for path in table, figures / "plotly.min.js":
        path.write_text("2")
    files = {table.name: file_digest(table)}
    told = Manifest(notebook.name, "smoke", {}, {}, {}, "finished", surroundings(), 1.0, files)
    told.write(figures / "runs" / "00_toy.json")
    build(figures, notebooks=toys)
    return toys, figures


def test_names_of_files_are_quoted_in_links_and_escaped_in_text(tmp_path):
    odd = '00_a?b#<c>"d%41'
    write_toy(tmp_path / "notebooks", "00_n#<o>", GOOD)
    folder = tmp_path / "figures"
    folder.mkdir()
    for name in f"{odd}.csv", f"{odd}.html", "plotly.min.js":
        (folder / name).write_text("")
    read = attributes(build(folder, notebooks=tmp_path / "notebooks").read_text())
    assert read["data-figure"] == [odd] and read["data-notebook"] == ["00_n#<o>"]
    links = [link for link in read["href"] if link and not link.startswith(("#", "data:"))]
    places = [(folder / unquote(link)).resolve() for link in links]
    assert len(links) == 3 and all(place.is_file() for place in places)
    assert not [link for link in links if set(link) & set('?#<"')]


@pytest.mark.parametrize(
    "change",
    [
        {"made": {}},
        {"made": {"date": 1}},
        {"older": {"00_toy.csv": {"digest": "0"}}},
        {"older": {"00_toy.csv": 3}},
        None,
    ],
)
def test_a_damaged_manifest_is_none(made, change):
    notebooks, folder = made
    assert '"notebooks":{"00_toy"' in (folder / "provenance.js").read_text()
    place = folder / "runs" / "00_toy.json"
    if change is None:
        place.unlink()
        place.mkdir()
    else:
        place.write_text(json.dumps(json.loads(place.read_text()) | change))
    build(folder, notebooks=notebooks)
    assert '"notebooks":{}' in (folder / "provenance.js").read_text()
    assert "00_toy" in (folder / "index.html").read_text()


def test_a_full_disk_leaves_page_and_provenance_as_they_were(made, monkeypatch):
    def full(path: Path, content: bytes) -> None:
        if "index" in path.name:
            raise OSError(28, "No space left on device")
        path.open("wb").write(content)

    (made[1] / "00_toy.csv").write_text("edited")
    before = {path: path.read_bytes() for path in made[1].iterdir() if path.is_file()}
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        build(made[1], notebooks=made[0])
    assert {path: path.read_bytes() for path in made[1].iterdir() if path.is_file()} == before


def test_an_error_that_is_no_text_is_kept_in_a_manifest(tmp_path):
    told = Manifest("n", "smoke", {}, {}, {}, "failed", surroundings(), error="\udc80")
    told.write(tmp_path / "m.json")
    assert read_manifest(tmp_path / "m.json").error == "?"
