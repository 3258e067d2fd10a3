"""Figure files and stored images."""

import base64
import re
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from specdec_lib.core.files import figures_folder, write_whole
from specdec_lib.show import saving
from specdec_lib.suite.notebook import in_few_colours, small_image

STORED = Path(__file__).resolve().parents[1] / "figures"
TABLE = pd.DataFrame({"token": ['"', "\n"], "distribution": "draft", "probability": [1 / 3, 2 / 3]})


def test_save_writes_the_same_bytes_each_time_and_asks_no_network(figures):
    both = []
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the exporter's own are the only silenced ones
            page = saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", TABLE)
        both.append({path.name: path.read_bytes() for path in figures.iterdir()})
    assert page == figures / "00_bars.html" and both[0] == both[1]
    assert set(both[0]) == {"00_bars.csv", "00_bars.html", "00_bars.png", "plotly.min.js"}
    assert both[0]["00_bars.csv"].splitlines()[-1] == b'",draft,0.666667'
    image = both[0]["00_bars.png"]
    assert Image.open(BytesIO(image)).size == (1400, 1000)
    text = page.read_text()
    assert re.findall(r'<script[^>]* src="([^"]*)"', text) == ["plotly.min.js"]
    assert text.count('href="index.html#00_bars"') == 1 and "plotly.min.js beside it" in text


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("close", [0.44774612345678, 0.4477478, 0.4477429])
def test_a_figure_that_differs_in_the_last_digits_alone_stays_as_it_is(close, dtype, figures):
    """As where another processor adds otherwise; a difference in the fifth digit is written."""

    def written(value: float) -> dict[str, bytes]:
        array = np.linspace(value, 2 * value, 20, dtype=dtype)
        bars = go.Figure(go.Bar(x=array, y=[value, *range(19)], text=["<1>", "1.5"]))
        saving.save(bars, "00_bars", TABLE.assign(confidence=value))
        return {path.name: path.read_bytes() for path in figures.iterdir()}

    first = written(0.4477461234567)
    assert written(close) == first == written(0.4477461234567)
    for other in (written(0.44776), written(-0.44776)):
        assert {name for name in first if other[name] == first[name]} == {"plotly.min.js"}


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("00_bars.html", b"<", b"\xff"),
        ("00_bars.html", b'"bdata":"AA', b'"bdata":"A'),
        ("00_bars.csv", b"draft", b""),
    ],
)
def test_a_damaged_page_or_table_is_written_anew(name, old, new, figures):
    figure = go.Figure(go.Bar(y=np.array([1.0, 2.0])))
    saving.save(figure, "00_bars", TABLE)
    whole = (figures / name).read_bytes()
    (figures / name).write_bytes(whole.replace(old, new))
    assert (figures / name).read_bytes() != whole
    saving.save(figure, "00_bars", TABLE)
    assert (figures / name).read_bytes() == whole


def as_drawn_elsewhere(monkeypatch: pytest.MonkeyPatch, colour: str = "white") -> None:
    """Stand in for an exporter with other fonts: the same figure in other pixels."""
    written = BytesIO()
    Image.new("RGB", (1400, 1000), colour).save(written, "PNG")
    monkeypatch.setattr(saving, "draw_png", lambda *_: written.getvalue())


def test_an_image_of_the_same_figure_stays_whatever_another_exporter_would_draw(
    figures, monkeypatch
):
    saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", TABLE)
    image = figures / "00_bars.png"
    before = image.read_bytes()
    as_drawn_elsewhere(monkeypatch)
    assert saving._image(go.Figure(go.Bar(y=[1, 2]))) != before  # the control: it draws another
    old = image.stat().st_mtime_ns
    saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", TABLE)
    assert image.read_bytes() == before and image.stat().st_mtime_ns > old


@pytest.mark.parametrize(
    "other", [go.Figure(go.Bar(y=[1, 3])), go.Figure(go.Bar(y=[1, 2]), {"title": {"text": "x"}})]
)
def test_an_image_of_other_data_or_another_drawing_is_written_anew(other, figures, monkeypatch):
    saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", TABLE)
    before = (figures / "00_bars.png").read_bytes()
    as_drawn_elsewhere(monkeypatch)
    saving.save(other, "00_bars", TABLE)
    assert (figures / "00_bars.png").read_bytes() != before
    assert saving.shows(figures / "00_bars.png", saving.drawing_of(other))


def test_an_image_on_other_paper_is_written_anew(figures, monkeypatch):
    figure = go.Figure(go.Bar(y=[1, 2]))
    saving.save(figure, "00_bars", TABLE)
    before = (figures / "00_bars.png").read_bytes()
    other = go.layout.Template(saving.PAPER).update(layout={"plot_bgcolor": "#FEFEFE"})
    monkeypatch.setattr(saving, "PAPER", other)
    saving.save(figure, "00_bars", TABLE)
    assert (figures / "00_bars.png").read_bytes() != before


@pytest.mark.parametrize("damage", ["cut", "painted", "empty", "gone"])
def test_a_damaged_or_painted_image_is_written_anew(damage, figures):
    figure = go.Figure(go.Bar(y=[1, 2]))
    saving.save(figure, "00_bars", TABLE)
    image = figures / "00_bars.png"
    whole = image.read_bytes()
    if damage == "cut":
        image.write_bytes(whole[:-4000])
    elif damage == "painted":  # by a program that keeps the texts
        picture = Image.open(image)
        texts = PngInfo()
        texts.add_text(saving.STAMP, picture.info[saving.STAMP])
        picture.putpixel((0, 0), (1, 2, 3))
        picture.save(image, "PNG", pnginfo=texts)
    elif damage == "empty":
        image.write_bytes(b"")
    else:
        image.unlink()
    saving.save(figure, "00_bars", TABLE)
    assert image.read_bytes() == whole


@pytest.mark.parametrize(
    "image", sorted(STORED.glob("[0-9][0-9]*_*.png")), ids=lambda path: path.stem
)
def test_the_images_in_git_are_of_the_pages_beside_them(image):
    """So that a run anywhere, with the same tables, leaves them as they are."""
    figure = saving.figure_in(image.with_suffix(".html").read_text(encoding="utf-8"))
    assert saving.shows(image, saving.drawing_of(figure))
    figure.add_vline(x=1)
    assert not saving.shows(image, saving.drawing_of(figure)), "the control"


@pytest.mark.parametrize("name", ["0_bars", "00_", "00_Bars", "../00_bars", "00_bars.html"])
def test_a_badly_named_figure_is_refused(name, figures):
    with pytest.raises(ValueError, match="got"):
        saving.save(go.Figure(), name, TABLE)
    assert not figures.exists()


def test_without_an_exporter_one_warning_and_the_other_files(figures, monkeypatch):
    def fail(*_: object) -> bytes:
        raise RuntimeError("no browser")

    monkeypatch.setattr(saving, "draw_png", fail)
    monkeypatch.setattr(saving, "_exporter_works", saving._exporter_works.__wrapped__)
    with pytest.warns(UserWarning, match="00_bars.png is not") as said:
        saving.save(go.Figure(), "00_bars", TABLE)
    assert len(said) == 1 and saving.still(go.Figure()) == {}
    assert not (figures / "00_bars.png").exists() and (figures / "00_bars.csv").exists()


def test_without_an_exporter_an_image_of_another_figure_is_called_so(figures, monkeypatch):
    figure = go.Figure(go.Bar(y=[1, 2]))
    saving.save(figure, "00_bars", TABLE)
    monkeypatch.setattr(saving, "_exporter_works", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the control: it shows this very figure
        saving.save(figure, "00_bars", TABLE)
    with pytest.warns(UserWarning, match="00_bars.png stays, and shows another figure than"):
        saving.save(go.Figure(go.Bar(y=[1, 3])), "00_bars", TABLE)


def test_the_folder_is_the_repositorys_wherever_the_caller_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECDEC_FIGURES")
    assert figures_folder() == Path(__file__).resolve().parents[1] / "figures"
    monkeypatch.setenv("SPECDEC_FIGURES", "here")
    assert figures_folder() == tmp_path / "here"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def stop(*_):
        raise OSError("disk full")

    path = tmp_path / "kept"
    path.write_bytes(b"before")
    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


def test_an_image_for_a_notebook_is_small_and_of_the_figures_size() -> None:
    image = saving.still(go.Figure(go.Bar(y=[1, 2, 3]), {"width": 800, "height": 450}))
    content = base64.b64decode(image["image/png"])
    assert len(content) < 12_000 and Image.open(BytesIO(content)).size == (800, 450)


def test_a_notebooks_image_keeps_the_colour_of_a_small_mark(tmp_path):
    """Control: a median cut, which splits by counts, makes it grey."""
    greys = np.add.outer(np.arange(400), np.arange(400)) % 256
    page = np.repeat(greys[:, :, None], 3, axis=2).astype("uint8")
    page[200:206, 200:206] = blue = (0, 114, 178)
    Image.fromarray(page).save(tmp_path / "page.png")
    small = Image.open(BytesIO(small_image(tmp_path / "page.png"))).convert("RGB")
    assert small.size == (400, 400) and small.getpixel((203, 203)) == blue
    cut = Image.fromarray(page).quantize(64, method=Image.Quantize.MEDIANCUT).convert("RGB")
    assert len(set(cut.getpixel((203, 203)))) == 1


def test_a_notebooks_image_keeps_the_shades_of_areas_apart():
    """Control: of small marks, such near shades become one."""
    page = np.full((100, 100, 3), 255, "uint8")
    page[:40] = (100, 150, 200)
    page[40:80] = (108, 150, 200)
    assert len(in_few_colours(Image.fromarray(page), 24).getcolors()) == 3
    page[80:82, 0] = (0, 150, 0)
    page[82:84, 0] = (8, 150, 0)
    assert len(in_few_colours(Image.fromarray(page), 24).getcolors()) == 4


def test_a_notebooks_image_keeps_a_light_line_apart_from_the_page(tmp_path):
    """Control: an octree alone, with so few colours, makes it as white as the page."""
    page = np.full((600, 600, 3), 255, "uint8")
    page[100:500:40] = light = (229, 236, 246)
    noise = np.random.default_rng(0).integers(0, 255, (100, 600, 3))
    page[:100] = noise
    Image.fromarray(page).save(tmp_path / "page.png")
    small = Image.open(BytesIO(small_image(tmp_path / "page.png"))).convert("RGB")
    where = round(0.5 * small.width), round(140.5 / 600 * small.height)
    assert max(abs(a - b) for a, b in zip(small.getpixel(where), light, strict=True)) < 8
    octree = Image.fromarray(page).quantize(16, method=Image.Quantize.FASTOCTREE).convert("RGB")
    assert min(octree.getpixel((300, 140))) > 246
