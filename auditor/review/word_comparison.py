"""Words that people read and type: which differ between two texts, and what of them a database can take."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MAX_SHORT_WORD = 3


def find_unique_words(text: str, other: str) -> list[tuple[int, int]]:
    """Spans of the words in `text` that `other` does not use at all, as (start, end) in characters.

    Case and a plural's s do not count, and neither do words of up to three letters of a cased script, which carry
    grammar more than content.
    """
    other_words = {_fold_word(match.group()) for match in _WORD.finditer(other)}
    return [
        match.span()
        for match in _WORD.finditer(text)
        if _is_content_word(match.group()) and _fold_word(match.group()) not in other_words
    ]


def _is_content_word(word: str) -> bool:
    return len(word) > _MAX_SHORT_WORD or word.isdigit() or word.lower() == word.upper()


def _fold_word(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > _MAX_SHORT_WORD and folded.endswith("s") else folded


def escape_unstorable(text: str) -> str:
    """What a person typed or pasted, with characters that no database takes spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "␀")
