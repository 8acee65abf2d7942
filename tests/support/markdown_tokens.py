"""Parse Markdown as GitHub does, to see whether text is active in it."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token

ACTIVE_TOKENS = frozenset(
    ("html_inline", "html_block", "link_open", "image", "code_inline", "code_block", "fence", "em_open", "s_open")
)
"""Types of tokens that a text from outside must not cause."""


def parse_markdown(text: str) -> list[Token]:
    """All tokens, including nested ones, of a GitHub-flavoured parser that accepts HTML, tables and bare links."""
    reader = MarkdownIt("gfm-like", {"html": True})
    return [t for token in reader.parse(text) for t in (token, *(token.children or []))]
