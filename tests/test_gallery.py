"""The gallery: one page of all figures, what made each, and what failed."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from markupsafe import escape
from toys import GOOD, Read, write_toy

from specdec_lib.core.files import REPOSITORY
from specdec_lib.suite.gallery import building
from specdec_lib.suite.gallery.beside import SCORECARD, numbers_beside, read_scorecard
from specdec_lib.suite.gallery.building import build, chapters_of, descriptions
from specdec_lib.suite.notebook import NOTEBOOKS, read_cells
from tests.verbs import reproduce, run

FIGURES = REPOSITORY / "figures"
STORED = sorted(path.stem for path in FIGURES.glob("[0-9][0-9]*_*.csv"))
COMPARED = [name for name, one in descriptions().items() if "claims" in one]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A folder with links to the figures in git."""
    place = tmp_path / "stored"
    place.mkdir()
    for path in FIGURES.iterdir():
        if re.match(r"\d\d[a-z]?_.*\.(html|png|csv)$", path.name):
            (place / path.name).symlink_to(path)
    (place / "plotly.min.js").write_text("")
    return place


def saved_by_notebooks() -> list[str]:
    cells = (cell for path in chapters_of(NOTEBOOKS) for cell in read_cells(path))
    sources = "\n".join(source for _, source in cells)
    return re.findall(r'(?m)^save\((?:.|\n)*?"(\d\d[a-z]?(?:_[a-z0-9]+)+)"', sources)


def test_every_figure_is_described_and_every_description_has_a_figure():
    assert set(saved_by_notebooks()) == set(descriptions())
    assert set(STORED) <= set(descriptions())


@pytest.mark.parametrize("name", descriptions())
def test_a_description_is_short_and_holds_no_number_of_a_paper_or_of_ours(name):
    one = descriptions()[name]
    assert 3 < len(one["title"]) <= 60 and not one["title"].endswith(".")
    assert 40 < len(one["see"]) <= 200 and one["see"].endswith(".")
    assert not re.search(r"\d[.,]\d|\d\s*(%|×)", one["title"] + one["see"])


@pytest.mark.parametrize("name", COMPARED)
def test_the_papers_number_stands_beside_ours(name):
    """Row by row as in the scorecard's table, and on the card of its figure."""
    with (FIGURES / SCORECARD).open(encoding="utf-8", newline="") as lines:
        known = {(one["item"], one["claim"]): one for one in csv.DictReader(lines)}
    tables = numbers_beside(descriptions()[name]["claims"], read_scorecard(FIGURES))
    page = (FIGURES / "index.html").read_text("utf-8")
    card = page[page.index(f'data-figure="{name}"') :].partition("</article>")[0]
    assert tables and all(one.rows for one in tables)
    for one in tables:
        item = next(item for item, _ in known if f", {item}" in one.caption)
        for claim, theirs, ours, verdict in one.rows:
            row = known[item, claim.partition(" (ours: ")[0]]
            assert (theirs == "–") == (row["paper_value"] == "")
            assert (ours == "–") == (row["ours"] == "") and verdict == row["verdict"]
            for said, value in (theirs, row["paper_value"]), (ours, row["ours"]):
                if said != "–":
                    assert float(said.split()[0]) == pytest.approx(float(value), abs=0.006)
            for said in (claim, theirs, ours, verdict):
                assert f">{escape(said)}</t" in card


def test_the_page_opens_with_rounds_pass_by_pass_and_then_the_scorecard(stored):
    """Control: without that figure's image the page opens with its list of chapters."""
    before, _, after = build(stored).read_text(encoding="utf-8").partition("<main>")
    assert f'src="{building.HEAD}.png"' in before and 'class="strip"' in before
    assert after.index('id="06_') < after.index('id="00_')
    (stored / f"{building.HEAD}.png").unlink()
    assert 'class="strip"' not in build(stored).read_text(encoding="utf-8")


def test_only_figures_with_a_papers_number_stay_under_the_filter():
    """The filter is a rule of the page's style on the cards' class."""
    page = (FIGURES / "index.html").read_text("utf-8")
    cards = re.findall(r'<article class="card( versus)?" id="(\w+)"', page)
    assert {name for versus, name in cards if versus} == {*COMPARED} & {*STORED}
    assert len(cards) == len(STORED) > len(COMPARED)
    assert 'id="paper"' in page and ".card:not(.versus)" in page


def test_a_claim_that_the_scorecard_lacks_is_said_to_be_missing(tmp_path):
    scores = read_scorecard(FIGURES)
    for claims, known in (["staged Table 9"], scores), (["staged Table 1"], None):
        [said] = numbers_beside(claims, known)
        assert not said.rows and said.caption.startswith(f"{claims[0]}: not in {SCORECARD}")
    [whole] = numbers_beside(["cascade Table 4"], scores)
    [part] = numbers_beside(["cascade Table 4: K00 = 3"], scores)
    assert part.rows == whole.rows[-1:] and part.caption == whole.caption
    assert read_scorecard(tmp_path) is None
    (tmp_path / SCORECARD).write_text("paper,item\n")
    with pytest.raises(ValueError, match="is no scorecard: it lacks the columns claim, domain"):
        build(tmp_path)


def test_the_page_in_git_is_the_one_that_would_be_built(stored):
    """make refresh writes it anew; a stale one fails."""
    told = build(stored).read_text(encoding="utf-8")
    here = re.sub(r'href="[^"]*/notebooks/', 'href="../notebooks/', told)
    kept = (FIGURES / "index.html").read_text("utf-8")
    assert kept == here and kept != here.replace("One tree of guesses", "A tree of guesses")


def test_the_page_is_whole_offline_and_links_to_what_is_there(stored):
    told = build(stored).read_text(encoding="utf-8")
    read = Read(told)
    links = {link for link in read.all("href") + read.all("src") if link and link[0] != "#"}
    files = {link for link in links - {"data:,"} if not link.endswith(".ipynb")}
    assert all((stored / link).exists() for link in files)
    assert not [link for link in links - {"data:,"} if re.match(r"[a-z]+:|//", link)]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", told)
    anchors = {link[1:] for link in read.all("href") if link.startswith("#")}
    assert anchors <= set(read.all("id")) and len(set(read.all("id"))) == len(read.all("id"))
    images = [attributes for tag, attributes in read.found if tag == "img"]
    assert len(images) == len(STORED) + 1 and all(int(one["width"] or 0) > 100 for one in images)
    pages = [one for _, one in read.found if "data-page" in one]
    assert len(pages) == 2 * len(list(stored.glob("[0-9][0-9]*_*.html")))
    for link in pages:  # to the image, where the script of interactive figures may be missing
        assert link["href"] == (link["data-page"] or "").replace(".html", ".png")
    (stored / "runs").mkdir()
    assert build(stored).read_text(encoding="utf-8") == told


def test_figures_come_in_the_notebooks_order(stored, made):
    read = Read(build(stored).read_text(encoding="utf-8"))
    assert read.all("data-figure") == [name for name in saved_by_notebooks() if name in STORED]
    notebooks, folder = made
    for name in ("00_aardvark", "00_zebra"):
        (folder / f"{name}.csv").write_text("")
    path = notebooks / "00_toy.ipynb"
    path.write_text(path.read_text().replace("print(width)", "print('00_zebra', \\\"00_zebra\\\")"))
    assert next(iter(building.figure_files(folder, path))) == "00_zebra"


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two notebooks, and a folder in which 00 was run with width 3 while 01 failed."""
    place = tmp_path_factory.mktemp("gallery")
    parameters = "width: int = 2  # branches\nseed: int = 5  # of all noise"
    write_toy(place / "notebooks", "00_toy", GOOD, parameters)
    write_toy(place / "notebooks", "01_bad", "1 / 0  # <b>")
    asked = ["--set", "width=3", "--out", str(place / "figures")]
    assert reproduce(asked, place / "notebooks") == 1
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
    assert "Made with width = 3." in told and "<dd>5</dd>" in told and "<code>2</code>" in told
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
    assert reproduce(["--only", "00"], notebooks) == 0
    plain = (folder / "index.html").read_bytes()
    assert b"Made with" not in plain
    shutil.rmtree(folder / "runs")
    assert build(folder, notebooks=notebooks).read_bytes() == plain


@pytest.mark.parametrize("state", ["running", "finished"])
def test_parameters_of_a_figure_are_unknown_after_an_interrupted_run_with_others(made, state):
    """Control: after a finished run, a figure that it did not write has the notebook's own."""
    place = made[1] / "runs" / "00_toy.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"state": state, "figures": {}}))
    told = build(made[1], notebooks=made[0]).read_text()
    assert ("unknown: a run with width = 3 was cut short" in told) == (state == "running")
    assert ("the notebook’s own" in told) == (state == "finished")


@pytest.mark.parametrize("change", [{"made": {"date": 1}}, {"figures": {"a.csv": 3}}, None])
def test_a_damaged_manifest_is_none(made, change):
    place = made[1] / "runs" / "00_toy.json"
    assert "00_toy" in provenance(made[1])["notebooks"]  # the control
    if change is None:
        place.unlink()
        place.mkdir()
    else:
        place.write_text(json.dumps(json.loads(place.read_text()) | change))
    told = build(made[1], notebooks=made[0]).read_text()
    assert "00_toy" not in provenance(made[1])["notebooks"] and "00_toy" in told


def test_the_command_builds_a_page(made, capsys):
    run("gallery", "--out", str(made[1]))
    assert capsys.readouterr().out.strip() == str(made[1] / "index.html")
