"""Render inline nodes; each output format says how it marks them up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auditor.reports.document import Code, Link, Name, Strong, Text


@dataclass(frozen=True, slots=True)
class InlineMarkup:
    """Functions that mark up text in one output format.

    Attributes:
        text: escapes plain text.
        name: escapes a name.
        strong: emphasizes text that is marked up already.
        code: marks up plain text as code.
        link: marks up a link, by its plain text and its target: the URL of another page, or `#` and a section's id.
    """

    text: Callable[[str], str]
    name: Callable[[str], str]
    strong: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]


def render_inline(text: Text, markup: InlineMarkup) -> str:
    """Render a text in one output format."""
    match text:
        case str():
            return markup.text(text)
        case Name():
            return markup.name(text.text)
        case Strong():
            return markup.strong(render_inline(text.content, markup))
        case Code():
            return markup.code(text.text)
        case Link():
            return markup.link(text.text, text.target)
    return "".join(render_inline(node, markup) for node in text)
