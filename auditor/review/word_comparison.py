"""Compare the words of two texts, and escape typed characters that databases cannot store."""

from __future__ import annotations

import re

# Letters and digits, with apostrophes inside the word.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MAX_SHORT_WORD = 3


def find_unique_words(text: str, other_text: str) -> list[tuple[int, int]]:
    """Return the words of `text` that do not occur in `other_text`, as (start, end) in characters.

    Case and a final s are ignored. Words of up to three letters are ignored too, since most are function words, unless
    they are digits or in a script without case.
    """
    other_words = {_fold_word(match.group()) for match in _WORD.finditer(other_text)}
    return [
        match.span()
        for match in _WORD.finditer(text)
        if _is_content_word(match.group()) and _fold_word(match.group()) not in other_words
    ]


def _is_content_word(word: str) -> bool:
    """Whether a word is compared: it has over three letters, or is digits, or is in a script without case."""
    return len(word) > _MAX_SHORT_WORD or word.isdigit() or word.lower() == word.upper()


def _fold_word(word: str) -> str:
    """Return a word in lower case, and without its final s if it has over three letters."""
    folded = word.casefold()
    return folded[:-1] if len(folded) > _MAX_SHORT_WORD and folded.endswith("s") else folded


def escape_unstorable(text: str) -> str:
    """Escape lone surrogates and NUL characters of a typed or pasted text, which databases cannot store."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "␀")
