"""Renders the gallery as HTML, from page.html, page.css and page.js.

What differs from run to run comes from `provenance.js` beside the page, where there is one. In a
clone that was never run there is neither that nor the script that interactive figures need: the
page then links to their images.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__)


def render_page(chapters: Iterable[Mapping[str, object]]) -> str:
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
