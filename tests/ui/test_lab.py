"""Every notebook in a real browser: it runs, its explorers answer keys, in both themes."""

from pathlib import Path

import pytest
from lab import Lab

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SLIDER = ".noUi-handle"


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_every_explorer_answers_the_keyboard(lab: Lab, notebook: str, capsys) -> None:
    lab.open(notebook)
    assert lab.run_all() == []
    cells = lab.panels()
    has_explorer = "widgets." in (FOLDER / f"{notebook}.ipynb").read_text(encoding="utf-8")
    assert bool(cells) == has_explorer, f"{notebook} shows {len(cells)} explorers"
    for number, cell in enumerate(cells, 1):
        panel = lab.panel(cell)
        lab.at_rest(panel)
        lab.picture(f"{notebook}_{number}_before")
        first, which = lab.seen(panel, "pictures"), f"explorer {number} of {notebook}"
        sliders, turned, knobs = [], False, panel.query_selector_all(SLIDER)
        for knob in knobs:
            sliders.append(lab.slide(panel, knob) or lab.slide(panel, knob, after=knobs))
            lab.at_rest(panel)
            turned = turned or lab.seen(panel, "pictures") != first
            lab.picture(f"{notebook}_{number}_after")  # of the last slider
            assert lab.reset(panel, first), f"{which} does not go back to where it began"
        fields = panel.query_selector_all(".specdec-knobs textarea")
        texts = [lab.type(panel, field, "x = [1, 2, 3]") for field in fields]
        with capsys.disabled():
            print(f"\n{which}: seconds until it changes, by slider: {sliders}, by text: {texts}")
        assert sliders and all(sliders), f"a slider of {which} changes nothing"
        assert turned, f"the sliders of {which} change no figure"
        assert all(texts), f"a text of my own changes nothing in {which}"
        assert not (why := lab.seen(panel, "refused")), f"{which}: {why}"
        assert lab.reset(panel, first), f"{which} does not go back to where it began"
    lab.theme("JupyterLab Dark")
    for number, cell in enumerate(cells, 1):
        lab.panel(cell)
        lab.picture(f"{notebook}_{number}_dark")
    lab.theme("JupyterLab Light")
    assert lab.problems == []


def test_explorers_work_after_a_restart_and_a_knob_not_pressed_changes_nothing(lab: Lab) -> None:
    """The second part is what the comparison above is worth."""
    lab.open(NOTEBOOKS[0])
    assert lab.run_all() == []
    assert lab.restart_and_run_all() == []
    panel = lab.panel(lab.panels()[0])
    knobs = panel.query_selector_all(SLIDER)
    assert lab.press(panel, knobs[0], "Shift") is None
    assert all(lab.slide(panel, knob) for knob in knobs)
