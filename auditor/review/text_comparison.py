"""Compare two texts by words or sentences, and escape typed characters that databases cannot store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

# Letters and digits, with apostrophes inside the word.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MAX_SHORT_WORD = 3
# A sentence ends at a full stop, question or exclamation mark before a space, or at the end of a line.
_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?…。！？]+(?=\s|$)|(?=\n)|$)")
MIN_SHARED_WORDS = 0.5
"""Share of the shorter text's words that the other text must use too for a comparison by words."""
MIN_SENTENCE_OVERLAP = 0.2
"""Jaccard index of the words of two sentences from which on one is a counterpart of the other."""


class DifferenceUnit(StrEnum):
    """What the marks on two compared texts are."""

    WORDS = "words"
    SENTENCES = "sentences"
    ENTIRE_TEXT = "entire text"
    """Nothing is marked: no sentence has a counterpart in the other text."""


@dataclass(frozen=True, slots=True)
class TextDifference:
    """What is only in one of two texts: (start, end) in characters, in order, and whether these are words."""

    spans: list[tuple[int, int]]
    unit: DifferenceUnit


def find_differences(text: str, other_text: str) -> TextDifference:
    """Return what `text` says and `other_text` does not: words if the texts share most words, else sentences.

    Marks on single words would cover most of two texts that share few words. There a sentence is marked that has no
    counterpart in the other text; if none has one, nothing is marked.
    """
    words, other_words = _content_words(text), _content_words(other_text)
    n_shorter = min(len(words), len(other_words))
    if not n_shorter or len(words & other_words) >= MIN_SHARED_WORDS * n_shorter:
        return TextDifference(find_unique_words(text, other_text), DifferenceUnit.WORDS)
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    other_sentences = [_content_words(match.group()) for match in _SENTENCE.finditer(other_text)]
    unmatched = [
        (start, end)
        for start, end in sentences
        if not _has_counterpart(_content_words(text[start:end]), other_sentences)
    ]
    if len(unmatched) == len(sentences):
        return TextDifference([], DifferenceUnit.ENTIRE_TEXT)
    return TextDifference(unmatched, DifferenceUnit.SENTENCES)


def _has_counterpart(words: set[str], other_sentences: list[set[str]]) -> bool:
    """Whether a sentence, given by its words, overlaps one of some others by at least `MIN_SENTENCE_OVERLAP`."""
    return not words or any(
        len(words & other) >= MIN_SENTENCE_OVERLAP * len(words | other) for other in other_sentences
    )


def _content_words(text: str) -> set[str]:
    """Return the words of a text that are compared, folded."""
    words = (match.group() for match in _WORD.finditer(text))
    return {_fold_word(word) for word in words if _is_content_word(word)}


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
