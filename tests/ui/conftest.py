"""A JupyterLab of its own, over a copy of the notebooks, and a headless Chromium to drive it."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from playwright.sync_api import BrowserContext, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OWN = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "SPECDEC_FIGURES")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A browser with a profile of its own."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.fail("browser tests need Chromium: `apt install chromium`, or name one in $CHROMIUM")
    with sync_playwright() as driver:
        profile = tmp_path_factory.mktemp("profile")
        window = {"viewport": {"width": 1500, "height": 1100}, "reduced_motion": "reduce"}
        context = driver.chromium.launch_persistent_context(
            profile, executable_path=found, headless=True, args=FLAGS.split(), **window
        )
        yield context
        context.close()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with copies of the notebooks and figures."""
    found = tmp_path_factory.mktemp("lab")
    ignored = shutil.ignore_patterns("runs", "*.html", "*.csv", "*.js", ".ipynb_checkpoints")
    for folder in ("notebooks", "figures"):
        shutil.copytree(ROOT / folder, found / folder, ignore=ignored)
    return found


@pytest.fixture(scope="session")
def server(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab over copies; what it said is kept beside the screenshots."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    surroundings = os.environ | {"HF_HUB_OFFLINE": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    surroundings |= {name: str(tmp_path_factory.mktemp(name.lower())) for name in OWN}
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser"]
    options += [f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"]
    options += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={place}"]
    command, log = [sys.executable, "-m", "jupyterlab", *options], place / "lab.log"
    with log.open("w") as said:
        process = subprocess.Popen(command, env=surroundings, stdout=said, stderr=said)
    try:
        _wait(f"http://127.0.0.1:{port}/api?token={token}", process, log)
        where = "/lab/workspaces/{name}/tree/notebooks/{name}.ipynb"
        yield f"http://127.0.0.1:{port}{where}?token={token}&reset"
    finally:
        process.terminate()
        process.wait(60)


def _wait(address: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start; it said:\n{log.read_text()[-3000:]}")


@pytest.fixture
def lab(server: str, browser: BrowserContext) -> Iterator[Lab]:
    """One window of JupyterLab, closed afterwards with its kernel."""
    pictures = ROOT / "figures" / "runs" / "ui"
    pictures.mkdir(parents=True, exist_ok=True)
    opened = Lab(browser.new_page(), server, pictures)
    yield opened
    opened.close()
