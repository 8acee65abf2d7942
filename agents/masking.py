"""Finding words in a text in whatever form grammar gives them, and putting labels in their place."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.prompts.blinding import Giveaway, load_giveaway

SHORTEST_STEM = 4
"""Letters down to which an ending is taken off a word."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
EDGE = f"(?:[^\\W_{_IDEOGRAPHS}]|[\u0900-\u0963])"
"""A character that continues a word: a letter or digit, or a vowel sign of Devanagari, which `\\w` does not know.
Underscores do not, nor do Japanese and Chinese characters: those languages write no spaces around a word in Latin
letters."""
_EAST_ASIAN = re.compile(f"[{_IDEOGRAPHS}]")
_NEVER = "(?!)"
FULL_WIDTH = 0xFEE0
"""From an ASCII character to its full-width form."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word or phrase to hide.

    Attributes:
        text: as it is written; one that ends in `*` is matched with any ending.
        label: what stands in its place.
        proper: whether it must begin with the capital that it is written with.
        exact: whether every letter must have its case, as in a code (`US` is a country, `us` is not).
    """

    text: str
    label: str
    proper: bool = False
    exact: bool = False


def hide(text: str, words: tuple[Word, ...], language: str) -> str:
    """The text with every form of the words replaced by their labels; of two words that fit, the longer one's.

    Args:
        text: in Unicode's composed form (NFC).
        words: the first of equal words decides on the label.
        language: ISO 639-1 code, whose endings and particles are allowed for.
    """
    if not words:
        return text
    finder = _finder(words, language)
    text = finder.exact.sub(lambda m: finder.codes[m.group()], text)
    found, at = [], 0
    for match in finder.loose.finditer(fold(text)):
        key = " ".join(str(match["word"] or match["open"] or match["inner"]).split())
        label, proper = finder.labels[key]
        first = next(n for n in ("word", "open", "inner") if match[n])
        if proper and not text[match.start(first)].isupper():
            continue
        found += [text[at : match.start()], label]
        at = match.end()
    return "".join([*found, text[at:]])


@dataclass(frozen=True, slots=True)
class _Finder:
    loose: re.Pattern[str]
    labels: Mapping[str, tuple[str, bool]]
    exact: re.Pattern[str]
    codes: Mapping[str, str]


@functools.lru_cache(maxsize=2048)
def _finder(words: tuple[Word, ...], language: str) -> _Finder:
    grammar = load_giveaway(language)
    labels: dict[str, tuple[str, bool]] = {}
    closed, opened, inner = set[str](), set[str](), set[str]()
    for word in (w for w in words if not w.exact):
        plain = " ".join(fold(word.text.removesuffix("*")).split())
        if not plain:
            continue
        if _EAST_ASIAN.search(plain):
            inner.add(plain)
        elif word.text.endswith("*"):
            opened.add(plain)
        else:
            plain = _stem(plain, grammar)
            closed.add(plain)
        labels.setdefault(plain, (word.label, word.proper))
    either = rf"(?P<word>{_trie(closed)}){grammar.after}|(?P<open>{_trie(opened)}){EDGE}*"
    loose = rf"(?<!{EDGE}){_optional(grammar.before)}(?:{either})"
    codes = {w.text: w.label for w in words if w.exact}
    exact = "|".join(sorted(map(re.escape, codes), key=len, reverse=True)) or _NEVER
    return _Finder(
        re.compile(rf"{loose}(?!{EDGE})|(?P<inner>{_trie(inner)})"),
        labels,
        re.compile(rf"(?<!{EDGE})(?:{exact})(?!{EDGE})"),
        codes,
    )


def _optional(before: str) -> str:
    """Tried without first: a phrase may begin with what is a particle elsewhere."""
    return f"{before}?" if before.endswith("?") else before


def _stem(word: str, grammar: Giveaway) -> str:
    stem = re.sub(grammar.strip, "", word) if grammar.strip else word
    return stem if len(stem) >= SHORTEST_STEM and " " not in word else word


def _trie(words: Iterable[str]) -> str:
    """A pattern for any of the words that looks at each letter once, and takes the longest that fits."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branch(root) if root else _NEVER


def _branch(node: Mapping[str, Any]) -> str:
    options = [_letter(letter) + _branch(below) for letter, below in sorted(node.items()) if letter]
    if not options:
        return ""
    body = options[0] if len(options) == 1 and "" not in node else f"(?:{'|'.join(options)})"
    return f"{body}?" if "" in node else body


def _letter(letter: str) -> str:
    return r"\s+" if letter == " " else re.escape(letter)


def fold(text: str) -> str:
    """A text in lower case without accents, letter for letter, so that positions in both are the same."""
    return text.translate(_FOLDED)


class _Folded(dict[int, str]):
    """Code point to its folded letter, filled as letters are met."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


def _fold(char: str) -> str:
    lower = char.lower()[0]
    if lower in "’‘ʼ＇":
        return "'"
    if "！" <= lower <= "～":  # the full-width form of an ASCII character
        return chr(ord(lower) - FULL_WIDTH)
    if lower in "ıİ":
        return "i"
    base = unicodedata.normalize("NFD", lower)[0]
    # Kana and Devanagari would lose what tells letters apart.
    return base if ord(base) < 0x0700 else lower


_FOLDED = _Folded()
