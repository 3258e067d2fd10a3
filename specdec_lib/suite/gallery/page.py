"""Renders the gallery as HTML, from page.html, page.css and page.js.

The page follows from the figures' files, the notebooks and the parameters alone, so it is the same
byte for byte wherever the figures are; what differs from run to run comes from `provenance.js`
beside it, where there is one. In a clone that was never run there is neither that nor the script
that interactive figures need: the page then links to their images.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from specdec_lib.suite.gallery.describing import Comparison
from specdec_lib.suite.notebook import Introduction, Parameter

HERE = Path(__file__)


@dataclass(frozen=True)
class Card:
    """A figure as the page shows it.

    files      suffixes that are there
    size       of its image, in pixels; (0, 0) without one
    changed    parameters that differ from the notebook's own, with the values that made it
    """

    name: str
    title: str
    see: str
    files: frozenset[str]
    size: tuple[int, int]
    seed: str
    changed: Mapping[str, str]
    paper: Comparison | None


@dataclass(frozen=True)
class Chapter:
    """A notebook and its figures; `link` leads from the page to it."""

    name: str
    link: str
    introduction: Introduction
    parameters: Mapping[str, Parameter]
    cards: tuple[Card, ...]


def render_page(chapters: Iterable[Chapter]) -> str:
    """The whole of index.html."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        """Text whose backticks and stars, as in markdown, become markup."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = marked
    html, style, script = (
        HERE.with_suffix(kind).read_text(encoding="utf-8") for kind in (".html", ".css", ".js")
    )
    return environment.from_string(html).render(
        chapters=list(chapters), style=Markup(style), script=Markup(script)
    )
