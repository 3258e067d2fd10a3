"""Notebooks of a ladder of one's own in a real browser: they run, and their explorers answer."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from test_own_ladder import PLAN, target

from specdec_lib.suite.distil import own_text, writing
from specdec_lib.suite.distil.own import make_ladder

NOTEBOOKS = "00_one_round", "01_tree_construction", "04_cascade_tuning"
PARAMETER = 'models: str = \\"\\"'
SLIDER = ".noUi-handle"


@pytest.fixture(scope="session")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that SPECDEC_UI_LADDER names, else drafts distilled from a tiny random Qwen3."""
    if named := os.environ.get("SPECDEC_UI_LADDER"):
        yield Path(named)
        return
    place = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_text, "PART", 600)
        patch.setattr(own_text, "SHORT_POSITIONS", 400)
        patch.setattr(writing, "ANSWER_TOKENS", 60)
        patch.setattr("specdec_lib.suite.distil.ngrams.ROWS", 8)
        make_ladder(target(place / "target"), place / "ladder", PLAN)
    yield place / "ladder"


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_with_it_and_its_explorers_answer(
    lab: Lab, place: Path, ladder: Path, notebook: str
) -> None:
    text = (place / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8")
    assert text.count(PARAMETER) == 1
    own = f"{notebook}_own"
    said = text.replace(PARAMETER, f'models: str = \\"{ladder}\\"')
    (place / "notebooks" / f"{own}.ipynb").write_text(said, encoding="utf-8")
    lab.open(own)
    assert lab.run_all() == []
    cells = lab.panels()
    assert cells
    for number, cell in enumerate(cells, 1):
        panel = lab.panel(cell)
        first = lab.at_rest(panel)
        knobs = panel.query_selector_all(SLIDER)
        assert any(lab.slide(panel, knob, after=knobs) for knob in knobs), f"explorer {number}"
        assert lab.at_rest(panel) != first and not lab.seen(panel, "refused")
        lab.picture(f"{own}_{number}")
    assert lab.problems == []
