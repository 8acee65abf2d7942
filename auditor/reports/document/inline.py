"""Inline nodes: what a line of text consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside, such as a model's or a country's; isolated, so that its script cannot reorder the line."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasized text."""

    content: Text


@dataclass(frozen=True, slots=True)
class Code:
    """A command, a config key or other text that is typed as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a section of the same document, by its id, or to another page.

    Attributes:
        page: URL of the other page, relative to this one; empty for the same document. Only HTML has other pages.
    """

    text: str
    section_id: str = ""
    page: str = ""

    @property
    def target(self) -> str:
        """The URL, relative to this page."""
        return f"{self.page}#{self.section_id}" if self.section_id else self.page


Inline = str | Name | Strong | Code | Link
Text = Inline | Sequence[Inline]
"""Plain text, or a sequence of inline nodes that are joined without spaces."""
