"""Render Markdown by the two families of parsers, to see which elements a text from outside causes."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

import markdown
from markdown_it import MarkdownIt

EXTENSIONS = (
    "extra", "admonition", "sane_lists", "toc", "pymdownx.tilde", "pymdownx.caret", "pymdownx.mark", "pymdownx.keys",
    "pymdownx.magiclink", "pymdownx.emoji", "pymdownx.details", "pymdownx.superfences", "pymdownx.tasklist",
    "pymdownx.arithmatex", "pymdownx.snippets", "pymdownx.inlinehilite",
)  # fmt: skip
"""Extensions of Python-Markdown that sites made with MkDocs switch on."""


class Element(NamedTuple):
    tag: str
    attributes: tuple[tuple[str, str | None], ...]


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        """Keep a comment as an element."""
        self.elements.append(Element("!--", ()))


_COMMON_MARK = (MarkdownIt("commonmark", {"html": True}).enable("table"), MarkdownIt("gfm-like", {"html": True}))
_PYTHON_MARKDOWN = (
    markdown.Markdown(extensions=["tables", "fenced_code"]),
    markdown.Markdown(extensions=list(EXTENSIONS)),
)


def render_pages(text: str) -> Iterator[Page]:
    """The pages of a text by CommonMark, by GitHub's dialect, and by Python-Markdown with and without extensions."""
    for parser in _COMMON_MARK:
        yield Page(parser.render(text))
    for converter in _PYTHON_MARKDOWN:
        converter.reset()
        yield Page(converter.convert(text))
