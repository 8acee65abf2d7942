"""Separate a model's thinking from its answer, if the server sends both as one text."""

from __future__ import annotations

import re

_TAGS = "think|thinking|thought|reasoning|reflection|seed:think"
_BRACKETED_TAGS = ((r"\[THINK\]", r"\[/THINK\]"), ("◁think▷", "◁/think▷"))
"""Opening and closing tags of Magistral and Kimi, where a server sends them as text."""
_BLOCKS = re.compile(
    rf"<(?P<tag>{_TAGS})>.*?(?:</(?P=tag)>|\Z)"
    + "".join(rf"|{opening}.*?(?:{closing}|\Z)" for opening, closing in _BRACKETED_TAGS),
    re.IGNORECASE | re.DOTALL,
)
_UNOPENED = re.compile(
    rf"\A.*(?:</(?:{_TAGS})>|{'|'.join(closing for _, closing in _BRACKETED_TAGS)})", re.IGNORECASE | re.DOTALL
)
"""Thinking whose opening tag was part of the prompt."""


def strip_thinking(text: str) -> str:
    """Remove thinking between think-tags, also if the opening or the closing tag is missing.

    A text without such tags is returned unchanged.
    """
    if not any(mark in text for mark in "<[◁"):
        return text
    visible_text = _UNOPENED.sub("", _BLOCKS.sub("", text))
    return text if visible_text == text else visible_text.strip()
