"""Finding words in a text in whatever form grammar gives them, and putting labels in their place."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.prompts.blinding import BlindingTerms, load_blinding_terms

MIN_STEM_LENGTH = 4
"""Letters down to which an ending is taken off a word."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
WORD_CHARACTER = f"(?:[^\\W_{_IDEOGRAPHS}]|[\u0900-\u0963])"
"""A character that continues a word: a letter or digit, or a vowel sign of Devanagari, which `\\w` does not know.
Underscores do not, nor do Japanese and Chinese characters: those languages write no spaces around a word in Latin
letters."""
_EAST_ASIAN = re.compile(f"[{_IDEOGRAPHS}]")
_NEVER_MATCHES = "(?!)"
FULL_WIDTH_OFFSET = 0xFEE0
"""From an ASCII character to its full-width form."""


@dataclass(frozen=True, slots=True)
class IdentifyingTerm:
    """A word or phrase to hide.

    Attributes:
        text: as it is written; one that ends in `*` is matched with any ending.
        label: what stands in its place.
        proper: whether it must begin with the capital that it is written with.
        exact: whether every letter must have its case, as in a code (`US` is a country, `us` is not).
    """

    text: str
    label: str
    needs_capital: bool = False
    case_sensitive: bool = False


def mask_terms(text: str, terms: tuple[IdentifyingTerm, ...], language: str) -> str:
    """The text with every form of the words replaced by their labels; of two words that fit, the longer one's.

    Args:
        text: in Unicode's composed form (NFC).
        words: the first of equal words decides on the label.
        language: ISO 639-1 code, whose endings and particles are allowed for.
    """
    if not terms:
        return text
    finder = _build_matcher(terms, language)
    text = finder.case_sensitive_pattern.sub(lambda m: finder.label_by_code[m.group()], text)
    found, at = [], 0
    for match in finder.folded_pattern.finditer(fold_text(text)):
        key = " ".join(str(match["word"] or match["open"] or match["inner"]).split())
        label, proper = finder.label_by_term[key]
        first = next(n for n in ("word", "open", "inner") if match[n])
        if proper and not text[match.start(first)].isupper():
            continue
        found += [text[at : match.start()], label]
        at = match.end()
    return "".join([*found, text[at:]])


@dataclass(frozen=True, slots=True)
class _TermMatcher:
    folded_pattern: re.Pattern[str]
    label_by_term: Mapping[str, tuple[str, bool]]
    case_sensitive_pattern: re.Pattern[str]
    label_by_code: Mapping[str, str]


@functools.lru_cache(maxsize=2048)
def _build_matcher(terms: tuple[IdentifyingTerm, ...], language: str) -> _TermMatcher:
    grammar = load_blinding_terms(language)
    labels: dict[str, tuple[str, bool]] = {}
    closed, opened, inner = set[str](), set[str](), set[str]()
    for word in (w for w in terms if not w.case_sensitive):
        plain = " ".join(fold_text(word.text.removesuffix("*")).split())
        if not plain:
            continue
        if _EAST_ASIAN.search(plain):
            inner.add(plain)
        elif word.text.endswith("*"):
            opened.add(plain)
        else:
            plain = _strip_ending(plain, grammar)
            closed.add(plain)
        labels.setdefault(plain, (word.label, word.needs_capital))
    either = rf"(?P<word>{_trie_pattern(closed)}){grammar.after}|(?P<open>{_trie_pattern(opened)}){WORD_CHARACTER}*"
    loose = rf"(?<!{WORD_CHARACTER}){_optional_pattern(grammar.before)}(?:{either})"
    codes = {w.text: w.label for w in terms if w.case_sensitive}
    exact = "|".join(sorted(map(re.escape, codes), key=len, reverse=True)) or _NEVER_MATCHES
    return _TermMatcher(
        re.compile(rf"{loose}(?!{WORD_CHARACTER})|(?P<inner>{_trie_pattern(inner)})"),
        labels,
        re.compile(rf"(?<!{WORD_CHARACTER})(?:{exact})(?!{WORD_CHARACTER})"),
        codes,
    )


def _optional_pattern(prefix_pattern: str) -> str:
    """Tried without first: a phrase may begin with what is a particle elsewhere."""
    return f"{prefix_pattern}?" if prefix_pattern.endswith("?") else prefix_pattern


def _strip_ending(word: str, grammar: BlindingTerms) -> str:
    stem = re.sub(grammar.strip, "", word) if grammar.strip else word
    return stem if len(stem) >= MIN_STEM_LENGTH and " " not in word else word


def _trie_pattern(terms: Iterable[str]) -> str:
    """A pattern for any of the words that looks at each letter once, and takes the longest that fits."""
    root: dict[str, Any] = {}
    for word in terms:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branch_pattern(root) if root else _NEVER_MATCHES


def _branch_pattern(node: Mapping[str, Any]) -> str:
    options = [_letter_pattern(letter) + _branch_pattern(below) for letter, below in sorted(node.items()) if letter]
    if not options:
        return ""
    body = options[0] if len(options) == 1 and "" not in node else f"(?:{'|'.join(options)})"
    return f"{body}?" if "" in node else body


def _letter_pattern(letter: str) -> str:
    return r"\s+" if letter == " " else re.escape(letter)


def fold_text(text: str) -> str:
    """A text in lower case without accents, letter for letter, so that positions in both are the same."""
    return text.translate(_FOLD_TABLE)


class _FoldTable(dict[int, str]):
    """Code point to its folded letter, filled as letters are met."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(char: str) -> str:
    lower = char.lower()[0]
    if lower in "’‘ʼ＇":
        return "'"
    if "！" <= lower <= "～":  # the full-width form of an ASCII character
        return chr(ord(lower) - FULL_WIDTH_OFFSET)
    if lower in "ıİ":
        return "i"
    base = unicodedata.normalize("NFD", lower)[0]
    # Kana and Devanagari would lose what tells letters apart.
    return base if ord(base) < 0x0700 else lower


_FOLD_TABLE = _FoldTable()
