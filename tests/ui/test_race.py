"""The race to watch, in a real browser: it runs a request of one's own, and its tokens appear one
after the other at the pace that was asked for.
"""

import time

import pytest
from lab import PATIENCE, Lab

NOTEBOOK = "00_one_round"
RACE = ".jp-Notebook .specdec-race-panel"
SIZES = ((1280, 900), (1920, 1080))
SEEN = """panel => [...panel.querySelectorAll('.specdec-text')].map(
  lane => [...lane.children].filter(
    one => getComputedStyle(one).visibility === 'visible').length)"""
ALL = "panel => [...panel.querySelectorAll('.specdec-text')].map(lane => lane.children.length)"
NEW = """panel => panel.querySelectorAll('.specdec-text').length === 5
  && !panel.innerText.includes('calculate_mean')"""
CELL = "() => seen.cells().findIndex(one => one.model.sharedModel.getSource().includes('race_to'))"
SCROLL = "cell => jupyterapp.shell.currentWidget.content.scrollToItem(cell, 'start')"


@pytest.fixture
def race(lab: Lab):
    lab.page.emulate_media(reduced_motion="no-preference")
    lab.open(NOTEBOOK)
    assert lab.run_all() == []
    lab.page.evaluate(SCROLL, lab.page.evaluate(CELL))
    return lab.page.wait_for_selector(RACE, timeout=60_000)


def press(panel, words: str) -> None:
    panel.query_selector(f"button:has-text('{words}')").click()


def test_a_request_of_ones_own_is_raced_and_shown_token_by_token(lab: Lab, race) -> None:
    """Control: with motion reduced everything is there at once."""
    race.query_selector("textarea").fill("Name three rivers in France.")
    lab.page.keyboard.press("Tab")
    press(race, "race on this machine")
    lab.page.wait_for_function(NEW, arg=race, timeout=120_000)
    press(race, "a tenth")
    lab.page.wait_for_timeout(300)
    counts = []
    deadline = time.monotonic() + 4 * PATIENCE
    whole = race.evaluate(ALL)
    while (not counts or counts[-1] != whole) and time.monotonic() < deadline:
        counts.append(race.evaluate(SEEN))
        if len(counts) == 8:
            lab.picture("race_running")
        time.sleep(0.2)
    assert counts[-1] == whole and len(whole) == 5 and min(whole) > 8
    plain = [one[0] for one in counts]
    assert plain == sorted(plain) and len(set(plain)) > 5, "token by token"
    assert "tokens per second" in race.inner_text()
    lab.page.emulate_media(reduced_motion="reduce")
    press(race, "show again")
    lab.page.wait_for_timeout(300)
    assert race.evaluate(SEEN) == whole
    for width, height in SIZES:
        lab.page.set_viewport_size({"width": width, "height": height})
        for theme in "Light", "Dark":
            lab.theme(f"JupyterLab {theme}")
            lab.page.evaluate(SCROLL, lab.page.evaluate(CELL))
            lab.picture(f"race_{width}_{theme.lower()}")
    lab.theme("JupyterLab Light")
    assert lab.problems == []


def test_an_empty_request_is_refused_on_the_page(lab: Lab, race) -> None:
    race.query_selector("textarea").fill(" ")
    lab.page.keyboard.press("Tab")
    press(race, "race on this machine")
    lab.page.wait_for_selector(f"{RACE} [role=alert]", timeout=30_000)
    assert "got an empty one" in lab.seen(race, "refused")
