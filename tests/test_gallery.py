"""The gallery: one page of all figures, what made each, and what failed."""

import json
import re
import shutil
from pathlib import Path

import pytest
from toys import GOOD, Read, write_toy

from specdec_lib.core.files import NOTEBOOKS, REPOSITORY
from specdec_lib.suite.gallery import building
from specdec_lib.suite.gallery.building import build, chapters_of, descriptions
from specdec_lib.suite.notebook import read_cells
from specdec_lib.suite.reproduce.command import main

FIGURES = REPOSITORY / "figures"
STORED = sorted(path.stem for path in FIGURES.glob("[0-9][0-9]_*.csv"))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A folder with links to the figures in git."""
    place = tmp_path / "stored"
    place.mkdir()
    for path in FIGURES.iterdir():
        if re.match(r"\d\d_.*\.(html|png|csv)$", path.name):
            (place / path.name).symlink_to(path)
    (place / "plotly.min.js").write_text("")
    return place


def saved_by_notebooks() -> list[str]:
    cells = (cell for path in chapters_of(NOTEBOOKS) for cell in read_cells(path))
    sources = "\n".join(source for _, source in cells)
    return re.findall(r'(?m)^save\((?:.|\n)*?"(\d\d(?:_[a-z0-9]+)+)"', sources)


def test_every_figure_is_described_and_every_description_has_a_figure():
    assert set(saved_by_notebooks()) == set(descriptions())
    assert set(STORED) <= set(descriptions())


@pytest.mark.parametrize("name", descriptions())
def test_a_description_is_short_and_holds_no_number_of_a_paper_or_of_ours(name):
    one = descriptions()[name]
    assert 3 < len(one["title"]) <= 60 and not one["title"].endswith(".")
    assert 40 < len(one["see"]) <= 200 and one["see"].endswith(".")
    assert not re.search(r"\d[.,]\d|\d\s*(%|×)", one["title"] + one["see"])


def test_the_page_is_whole_offline_and_links_to_what_is_there(stored):
    told = build(stored).read_text(encoding="utf-8")
    here = re.sub(r'href="[^"]*/notebooks/', 'href="../notebooks/', told)
    assert (FIGURES / "index.html").read_text("utf-8") == here  # make refresh writes it anew
    read = Read(told)
    assert read.all("data-figure") == [name for name in saved_by_notebooks() if name in STORED]
    links = {link for link in read.all("href") + read.all("src") if link and link[0] != "#"}
    files = {link for link in links - {"data:,"} if not link.endswith(".ipynb")}
    assert all((stored / link).exists() for link in files)
    assert not [link for link in links - {"data:,"} if re.match(r"[a-z]+:|//", link)]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", told)
    anchors = {link[1:] for link in read.all("href") if link.startswith("#")}
    assert anchors <= set(read.all("id")) and len(set(read.all("id"))) == len(read.all("id"))
    images = [attributes for tag, attributes in read.found if tag == "img"]
    assert len(images) == len(STORED) and all(int(one["width"] or 0) > 100 for one in images)
    pages = [one for _, one in read.found if "data-page" in one]
    assert len(pages) == 2 * len(list(stored.glob("[0-9][0-9]_*.html")))
    for link in pages:  # to the image, where the script of interactive figures may be missing
        assert link["href"] == (link["data-page"] or "").replace(".html", ".png")
    (stored / "runs").mkdir()
    assert build(stored).read_text(encoding="utf-8") == told


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two notebooks, and a folder in which 00 was run with width 3 while 01 failed."""
    place = tmp_path_factory.mktemp("gallery")
    parameters = "width: int = 2  # branches\nseed: int = 5  # of all noise"
    write_toy(place / "notebooks", "00_toy", GOOD, parameters)
    write_toy(place / "notebooks", "01_bad", "1 / 0  # <b>")
    asked = ["--set", "width=3", "--out", str(place / "figures")]
    assert main(asked, notebooks=place / "notebooks") == 1
    return place


@pytest.fixture
def made(run_once: Path, tmp_path: Path, figures: Path) -> tuple[Path, Path]:
    """A copy of those, to spoil."""
    shutil.copytree(run_once / "notebooks", tmp_path / "notebooks")
    shutil.copytree(run_once / "figures", figures)
    return tmp_path / "notebooks", figures


def provenance(folder: Path) -> dict:
    text = (folder / "provenance.js").read_text()
    text = text.strip().removeprefix("window.provenance = ").removesuffix(";")
    return json.loads(re.sub(r",\s*}", "}", text))


def test_the_page_shows_the_parameters_that_made_a_figure_and_what_failed(made):
    told, known = (made[1] / "index.html").read_text(), provenance(made[1])
    assert "Made with width = 3." in told and "<code>2</code>" in told
    assert "<h3>00_toy</h3>" in told and building.UNDESCRIBED["see"] in told
    facts = dict(map(tuple, known["figures"]["00_toy"]))
    assert facts["profile"] == "smoke" and "torch 2" in facts["versions"]
    good, bad = known["notebooks"]["00_toy"], known["notebooks"]["01_bad"]
    assert good["good"] and not bad["good"] and "01_bad" in known["here"]
    assert "ZeroDivisionError" in bad["error"] and "ZeroDivision" not in told


def test_a_figure_that_no_run_made_so_is_not_said_to_be_and_defaults_change_nothing(made):
    notebooks, folder = made
    (folder / "00_toy.csv").write_text("edited")
    told = build(folder, notebooks=notebooks).read_text()
    assert "Made with" not in told and "by hand" in provenance(folder)["figures"]["00_toy"][0][1]
    assert main(["--only", "00"], notebooks=notebooks) == 0
    plain = (folder / "index.html").read_bytes()
    assert b"Made with" not in plain
    shutil.rmtree(folder / "runs")
    assert build(folder, notebooks=notebooks).read_bytes() == plain


def test_the_command_builds_a_page(made, capsys):
    building.main(["--out", str(made[1])])
    assert capsys.readouterr().out.strip() == str(made[1] / "index.html")
