"""JupyterLab as a person uses it: open a notebook, run it, move a knob, look."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import ConsoleMessage, ElementHandle, Page, Request, TimeoutError

SCRIPT = Path(__file__).with_name("lab.js")
MINUTES = 60_000  # milliseconds
PATIENCE = 15  # seconds
REST = 0.7  # seconds without a change: nothing more is to come


@dataclass
class Lab:
    """A window; `problems` are errors of the page, and requests that went elsewhere."""

    page: Page
    address: str
    folder: Path
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.add_init_script(path=SCRIPT)
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            place = message.location.get("url", "")
            self.problems.append(f"console: {message.text[:300]} ({place[:200]})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.problems.append(f"a request to {request.url[:200]}")

    def open(self, name: str) -> None:
        """Open a notebook and wait for its kernel."""
        self.page.goto(self.address.format(name=name))
        self.page.wait_for_function("() => seen.ready()", timeout=3 * MINUTES)

    def run_all(self) -> list[str]:
        """Run all cells; what went wrong comes back."""
        # else the stored outputs could be taken for new ones
        self._command("notebook:clear-all-cell-outputs")
        self.page.wait_for_function("() => seen.cleared()", timeout=MINUTES)
        self._command("notebook:run-all-cells")
        return self._finished()

    def restart_and_run_all(self) -> list[str]:
        """Restart the kernel and run all cells; what went wrong comes back."""
        self._command("notebook:restart-run-all")
        self.page.locator(".jp-Dialog button.jp-mod-accept").click(timeout=MINUTES)
        self.page.wait_for_function("() => seen.cleared()", timeout=2 * MINUTES)
        return self._finished()

    def _finished(self) -> list[str]:
        self.page.wait_for_function("() => seen.done()", timeout=10 * MINUTES, polling=200)
        return self.page.evaluate("() => seen.errors()")

    def _command(self, name: str, **arguments: str) -> None:
        script = "([name, args]) => { jupyterapp.commands.execute(name, args) }"
        self.page.evaluate(script, [name, arguments])

    def panels(self) -> list[int]:
        """The cells that show an explorer, by number."""
        return self.page.evaluate("() => seen.panels()")

    def panel(self, cell: int) -> ElementHandle:
        """The explorer of a cell, all drawn; a page that still grows is scrolled until it stays."""
        place = f".jp-Notebook .jp-Cell[data-windowed-list-index='{cell}'] .specdec-panel"
        deadline = time.monotonic() + 4 * MINUTES / 1000
        scroll = "cell => jupyterapp.shell.currentWidget.content.scrollToItem(cell, 'start')"
        drawn = "place => seen.drawn(document.querySelector(place))"
        while True:
            self.page.evaluate(scroll, cell)
            try:
                self.page.wait_for_function(drawn, arg=place, timeout=5000)
                return self.page.query_selector(place)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise

    def seen(self, panel: ElementHandle, what: str) -> str:
        """What is "shown" or, without the words, in the "pictures"; or why all is "refused"."""
        return panel.evaluate(f"panel => seen.{what}(panel)")

    def reset(self, panel: ElementHandle, pictures: str) -> bool:
        """Whether the reset button brings these pictures back; a moving page can lose a click."""
        self.at_rest(panel)
        panel.query_selector("button:has-text('reset')").focus()
        self.page.keyboard.press("Enter")
        deadline = time.monotonic() + PATIENCE
        while self.seen(panel, "pictures") != pictures and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.seen(panel, "pictures") == pictures

    def press(self, panel: ElementHandle, knob: ElementHandle, key: str) -> float | None:
        """Seconds until the panel shows something else after a key on a knob; else None."""
        knob.focus()
        return self._until_changed(panel, lambda: self.page.keyboard.press(key))

    def slide(
        self, panel: ElementHandle, slider: ElementHandle, after: Sequence[ElementHandle] = ()
    ) -> float | None:
        """The same after a slider was moved by one step, else to an end; first those of `after` are
        moved, as a seed makes a difference only where there is a temperature.
        """
        for other in after:
            self.press(panel, other, "ArrowRight")
        tried = (self.press(panel, slider, key) for key in ("ArrowRight", "Home", "End"))
        return next(filter(None, tried), None)

    def type(self, panel: ElementHandle, knob: ElementHandle, text: str) -> float | None:
        """The same after a text was typed into a knob, which was then left with the Tab key."""
        knob.focus()
        self.page.keyboard.insert_text(text)
        return self._until_changed(panel, lambda: self.page.keyboard.press("Tab"))

    def at_rest(self, panel: ElementHandle) -> str:
        """What it shows once that stays the same: an earlier change may still be on its way."""
        shown, since = self.seen(panel, "shown"), time.monotonic()
        deadline = since + PATIENCE
        while time.monotonic() < min(since + REST, deadline):
            time.sleep(0.05)
            if (now := self.seen(panel, "shown")) != shown:
                shown, since = now, time.monotonic()
        return shown

    def _until_changed(self, panel: ElementHandle, act: Callable[[], None]) -> float | None:
        before = self.at_rest(panel)
        started = time.monotonic()
        act()
        while time.monotonic() - started < PATIENCE:
            if self.seen(panel, "shown") != before:
                return time.monotonic() - started
            time.sleep(0.02)
        return None

    def theme(self, name: str) -> None:
        """Another theme, "JupyterLab Light" or "JupyterLab Dark"."""
        self._command("apputils:change-theme", theme=name)
        changed = "name => document.body.dataset.jpThemeName === name"
        self.page.wait_for_function(changed, arg=name, timeout=MINUTES)

    def picture(self, name: str) -> None:
        """A screenshot into the folder of pictures, of what the page has come to rest at."""
        self.page.wait_for_timeout(1000 * REST)
        self.page.screenshot(path=self.folder / f"{name}.png")

    def close(self) -> None:
        """Shut the kernel down and close the window."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget?.sessionContext?.shutdown()")
        self.page.close()
