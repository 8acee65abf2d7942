"""Parse a page, to see its elements and its text."""

from __future__ import annotations

from collections.abc import Collection
from html.parser import HTMLParser

VOID_ELEMENTS = frozenset(("meta", "br", "input"))
ALLOWED_ELEMENTS = frozenset((
    "html", "head", "meta", "title", "style", "body", "header", "p", "h1", "h2", "h3", "h4", "h5", "h6", "dl", "div",
    "dt", "dd", "nav", "ul", "li", "a", "main", "section", "strong", "bdi", "small", "sup", "figure", "figcaption",
    "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "span", "details", "summary", "blockquote", "code",
    "footer", "i", "svg", "desc", "text", "tspan", "circle", "line", "rect", "g", "path", "use", "defs", "marker",
    "clippath", "lineargradient", "stop",
))  # fmt: skip
SEARCH_ELEMENTS = frozenset(("form", "label", "input", "select", "option", "button", "script"))
"""Further elements of a page with a search."""


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and its unclosed and wrongly closed tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        """Contents of the elements that a browser runs."""
        self.open: list[str] = []
        self.broken: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data: str) -> None:
        """Record a text; what is in a script is none."""
        if not self.open or self.open[-1] != "script":
            self.texts.append(data)
        elif self.elements[-1] != ("script", {"type": "application/json"} | self.elements[-1][1]):
            self.scripts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def assert_well_formed_and_inert(html: str, pages: Collection[str] = (), script: str = "") -> None:
    """Check that a page's tags are balanced, and that it has no script, no request and no element of another kind.

    Args:
        pages: URLs of other pages that it may link to.
        script: the only script of a page with a search; empty for none.

    Raises:
        AssertionError: the page is not so.
    """
    page = Page(html)
    assert page.open == page.broken == []
    assert page.scripts == ([script] if script else [])
    assert {tag for tag, _ in page.elements} <= ALLOWED_ELEMENTS | (SEARCH_ELEMENTS if script else frozenset())
    for tag, attributes in page.elements:
        assert not {"src", "srcset"} & set(attributes)
        assert "style" not in attributes or tag == "svg"
        assert not [name for name in attributes if name.startswith("on")]
        target = attributes.get("href") or "#"
        assert target.startswith("#") or target in pages
