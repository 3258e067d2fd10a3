"""The gallery as HTML: plain markup, one style sheet and one script of its own, nothing from
elsewhere.

What stands in the page follows from the figures' files, the notebooks and the parameters alone, so
it is the same byte for byte wherever the figures are; what differs from run to run comes from
`provenance.js` beside it, where there is one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from specdec_lib.suite.gallery.describing import Comparison
from specdec_lib.suite.notebook import Introduction, Parameter

HERE = Path(__file__)
UNKNOWN = "known after make figures, which writes machine, versions and commit beside this page"
NOT_RUN_HERE = (
    "These files came with the code. Run `make figures` (or `python -m specdec_lib.suite.gallery`)"
    " once: it writes plotly.min.js, which the "
    "interactive figures need, and what made each figure on this machine."
)
END = """<dialog aria-label="Interactive figure">
<div class="bar"><h2></h2><button name="back">← previous</button><button name="on">next →</button><a href="" target="_blank">open alone</a>
<button name="close">close</button></div>
<iframe title="figure"></iframe>
<p></p>
</dialog>
<footer><p>Made by <code>python -m specdec_lib.suite.reproduce</code> from the notebooks. A click on a picture, or Enter, opens it:
hover, zoom and hide lines there; arrow keys lead on, Escape closes. Nothing on this page asks the network. Numbers of ours are read
from the table (CSV) behind each figure.</p></footer>
<script src="provenance.js"></script>
"""  # below the figures: the window for one of them, and what the page is


@dataclass(frozen=True)
class Card:
    """A figure as the page shows it.

    size       of its image, in pixels; (0, 0) without one
    files      suffixes that are there
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


def page(chapters: Iterable[Chapter]) -> str:
    """The whole of index.html."""
    chapters = list(chapters)
    style, script = (HERE.with_suffix(kind).read_text(encoding="utf-8") for kind in (".css", ".js"))
    contents, sections = "".join(map(_entry, chapters)), "".join(map(_chapter, chapters))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Figures: staged and cascade speculative decoding</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header class="top">
<h1>Figures</h1>
<p class="lede">Staged and cascade speculative decoding: every figure that the notebooks make, what to see in it, the paper’s number
beside ours where it prints one, and how it was made.</p>
<p class="here" id="here">{_marked(NOT_RUN_HERE)}</p>
<ul class="contents">
{contents}</ul>
<label class="filter"><input type="checkbox" id="paper"> only figures with a paper’s number</label>
</header>
<main>
{sections}</main>
{END}<script>
{script}</script>
</body>
</html>
"""


def _entry(chapter: Chapter) -> str:
    title = _marked(chapter.introduction.title or chapter.name)
    return (
        f'<li><a href="#{chapter.name}"><span'
        f' class="number">{chapter.name[:2]}</span><span>{title}</span>'
        f'<span class="count">{len(chapter.cards)}</span></a></li>\n'
    )


def _chapter(chapter: Chapter) -> str:
    said = chapter.introduction
    facts = " ".join(
        filter(
            None,
            [
                _marked(said.run_time),
                f'<a href="{escape(chapter.link)}">{escape(chapter.name)}.ipynb</a>',
            ],
        )
    )
    cards = (
        "".join(map(_card, chapter.cards))
        or '<p class="facts">Nothing of this notebook has been made in this folder.</p>\n'
    )
    return f"""<section id="{chapter.name}" data-notebook="{chapter.name}">
<div class="head"><span class="number">{chapter.name[:2]}</span><div>
<h2>{_marked(said.title or chapter.name)}</h2>
<p class="question">{_marked(said.question)}</p>
<p class="facts">{facts}</p>
{_parameters(chapter.parameters)}</div></div>
<div class="cards">
{cards}</div>
</section>
"""


def _parameters(parameters: Mapping[str, Parameter]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(one.default)}</code></td><td>{escape(one.help)}</td></tr>\n"
        for name, one in parameters.items()
    )
    return f'<details><summary>parameters of the notebook</summary>\n<table class="parameters">\n{rows}</table></details>\n'


def _card(card: Card) -> str:
    page = f"{card.name}.html" if "html" in card.files else f"{card.name}.png"
    wide, high = card.size
    image = (
        f'<img src="{card.name}.png" alt="{escape(card.title)}" loading="lazy" width="{wide}"'
        f' height="{high}">'
        if wide
        else escape(card.title)
    )
    picture = (
        f'<a class="picture" href="{page}">{image}</a>\n' if card.files & {"html", "png"} else ""
    )
    changed = ", ".join(f"{name} = {value}" for name, value in card.changed.items())
    note = f'<p class="changed">Made with {escape(changed)}.</p>\n' if changed else ""
    kinds = {"html": "interactive", "png": "image", "csv": "table"}
    links = "".join(
        f'<a href="{card.name}.{kind}">{word}</a>'
        for kind, word in kinds.items()
        if kind in card.files
    )
    return f"""<article class="card{" versus" if card.paper else ""}" id="{card.name}" data-figure="{card.name}">
{picture}<div class="words">
<h3>{escape(card.title)}</h3>
<p>{escape(card.see)}</p>
{note}{_beside(card.paper)}<p class="links">{links}</p>
<details class="how"><summary>how it was made</summary>
<dl><dt>figure</dt><dd>{card.name}</dd><dt>parameters</dt><dd>{escape(changed) or "the notebook’s own"}</dd>
<dt>seed</dt><dd>{escape(card.seed)}</dd>
<dt class="unknown">machine</dt><dd class="unknown">{UNKNOWN}</dd></dl>
</details>
</div>
</article>
"""


def _beside(paper: Comparison | None) -> str:
    if paper is None:
        return ""
    headings = "".join(f'<th scope="col">{escape(one)}</th>' for one in paper.headings)
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(f"<td>{escape(one)}</td>" for one in texts)}</tr>\n'
        for label, *texts in paper.rows
    )
    return f"""<table class="beside"><caption>{escape(paper.source)}: {escape(paper.caption)}</caption>
<thead><tr><th></th>{headings}</tr></thead>
<tbody>
{rows}</tbody></table>
"""


def _marked(text: str) -> str:
    """Text with markdown's backticks and stars turned into markup."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
