"""Figure files and stored images."""

import base64
import re
import subprocess
import sys
import warnings
from io import BytesIO
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import plotly.io
import psutil
import pytest
from kaleido.scopes.plotly import PlotlyScope
from PIL import Image

from specdec_lib.core.files import figures_folder, write_whole
from specdec_lib.show import saving

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


@pytest.mark.parametrize("name", ["0_bars", "00_", "00_Bars", "../00_bars", "00_bars.html"])
def test_a_badly_named_figure_is_refused(name, figures):
    with pytest.raises(ValueError, match="got"):
        saving.save(go.Figure(), name, TABLE)
    assert not figures.exists()


def test_without_an_exporter_one_warning_and_the_other_files(figures, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no browser")

    monkeypatch.setattr(go.Figure, "to_image", fail)
    monkeypatch.setattr(saving, "_exporter_works", saving._exporter_works.__wrapped__)
    with pytest.warns(UserWarning, match="00_bars.png is not") as said:
        saving.save(go.Figure(), "00_bars", TABLE)
    assert len(said) == 1 and saving.still(go.Figure()) == {}
    assert not (figures / "00_bars.png").exists() and (figures / "00_bars.csv").exists()


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


def test_the_exporter_asks_no_network() -> None:
    """Plotly tells it to fetch the script of formulas, which is the negative control."""
    script = "import plotly.io as pio; print(pio.kaleido.scope._build_proc_args())"
    bare = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "https://" in bare.stdout
    image = saving.still(go.Figure(go.Bar(y=[1, 2, 3]), {"width": 800, "height": 450}))
    content = base64.b64decode(image["image/png"])
    assert len(content) < 12_000 and Image.open(BytesIO(content)).size == (800, 450)
    assert not any("http" in argument for argument in plotly.io.kaleido.scope._build_proc_args())


HANGING = """#!/bin/sh
echo begun >> {began}
if [ $(wc -l < {began}) -le {hangs} ]; then sleep 60; fi
echo '{{"code": 0}}'
while read line; do echo '{{"code": 0, "result": "cGljdHVyZQ=="}}'; done
"""


@pytest.mark.parametrize("hangs", [2, 3])
def test_an_exporter_that_hangs_is_started_again(hangs, tmp_path, monkeypatch):
    """As often as `TRIES` allows; then it is an error. What the hung ones started is gone."""
    exporter, began = tmp_path / "exporter", tmp_path / "began"
    exporter.write_text(HANGING.format(began=began, hangs=hangs))
    exporter.chmod(0o755)
    scope = PlotlyScope()
    monkeypatch.setattr(scope, "executable_path", lambda: str(exporter))
    for place in (plotly.io.kaleido, plotly.io._kaleido):
        monkeypatch.setattr(place, "scope", scope)
    monkeypatch.setattr(saving, "PATIENCE", 4)
    monkeypatch.setattr(saving, "TRIES", 3)
    if hangs < 3:
        assert saving._image(go.Figure()) == b"picture"
    else:
        with pytest.raises(ValueError, match="hung 3 times"):
            saving._image(go.Figure())
    assert began.read_text().count("begun") == min(hangs + 1, 3)
    left = [each for each in psutil.Process().children(recursive=True) if each.name() == "sleep"]
    assert not left
