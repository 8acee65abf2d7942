"""Finding terms in a text in any of their inflected forms, and replacing them by labels."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from auditor.prompts.blinding import BlindingTerms, load_blinding_terms

MIN_STEM_LENGTH = 4
"""Minimum length of a stem after its ending is removed."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
WORD_CHARACTER = f"(?:[^\\W_{_IDEOGRAPHS}]|[\u0900-\u0963])"
"""A character inside a word: a letter, a digit, or a vowel sign of Devanagari, which `\\w` does not match.
Underscores are excluded, and so are Japanese and Chinese characters, since those languages write no spaces around a
word in Latin letters."""
_EAST_ASIAN = re.compile(f"[{_IDEOGRAPHS}]")
_NEVER_MATCHES = "(?!)"
StemKind: TypeAlias = Literal["word", "open", "inner"]
"""How the stem of a term matches: as a word with the endings of the language, with any ending, or within a word."""
FULL_WIDTH_OFFSET = 0xFEE0
"""Code point difference between a full-width character and its ASCII form."""


class IdentifyingTerm(NamedTuple):
    """A word or phrase to mask.

    A tuple, since the hash of hundreds of them is computed for each text.

    Attributes:
        text: the term; one that ends in `*` matches any ending.
        label: the replacement.
        needs_capital: whether it matches only with a capital first letter.
        case_sensitive: whether the case of every letter must match, as in a code (`US` is a country, `us` is not).
    """

    text: str
    label: str
    needs_capital: bool = False
    case_sensitive: bool = False


def mask_terms(text: str, terms: tuple[IdentifyingTerm, ...], language: str) -> str:
    """Replace all forms of the terms in a text by their labels; the longest matching term is used.

    Args:
        text: in Unicode's composed form (NFC).
        terms: the first of equal terms determines the label.
        language: ISO 639-1 code of the language whose endings and particles may follow a term.
    """
    if not terms:
        return text
    matcher = _build_matcher(terms, language)
    text = matcher.case_sensitive_pattern.sub(lambda code_match: matcher.label_by_code[code_match.group()], text)
    pieces, end = [], 0
    for match in matcher.folded_pattern.finditer(fold_text(text)):
        # Groups: `word`, a whole word; `open`, the stem of a term with any ending; `inner`, within Chinese or Japanese.
        key = " ".join(str(match["word"] or match["open"] or match["inner"]).split())
        label, needs_capital = matcher.label_by_term[key]
        group_name = next(name for name in ("word", "open", "inner") if match[name])
        # The folded text has the same positions, so the original letter shows whether the word begins with a capital.
        if needs_capital and not text[match.start(group_name)].isupper():
            continue
        pieces += [text[end : match.start()], label]
        end = match.end()
    return "".join([*pieces, text[end:]])


@dataclass(frozen=True, slots=True)
class _TermMatcher:
    """Compiled patterns for a set of terms.

    Attributes:
        folded_pattern: matches all terms but codes, in text from `fold_text`. Its groups hold the matched term without
            its ending: `word` for a whole word, `open` for one with any ending, `inner` for one in text without spaces.
        label_by_term: label of each folded term, and whether it needs a capital.
        case_sensitive_pattern: matches codes, such as `US`, in the original text.
        label_by_code: label of each code.
    """

    folded_pattern: re.Pattern[str]
    label_by_term: Mapping[str, tuple[str, bool]]
    case_sensitive_pattern: re.Pattern[str]
    label_by_code: Mapping[str, str]


@functools.lru_cache(maxsize=2048)
def _build_matcher(terms: tuple[IdentifyingTerm, ...], language: str) -> _TermMatcher:
    """Compile the patterns of a set of terms for the grammar of a language."""
    label_by_term: dict[str, tuple[str, bool]] = {}
    stems_by_kind: dict[StemKind, set[str]] = {"word": set(), "open": set(), "inner": set()}
    for term in terms:
        if not term.case_sensitive and (stem := _find_stem(term.text, language)) is not None:
            stems_by_kind[stem.kind].add(stem.text)
            label_by_term.setdefault(stem.text, (term.label, term.needs_capital))
    label_by_code = {term.text: term.label for term in terms if term.case_sensitive}
    code_pattern = "|".join(sorted(map(re.escape, label_by_code), key=len, reverse=True)) or _NEVER_MATCHES
    return _TermMatcher(
        _compile_stems(*map(frozenset, stems_by_kind.values()), language=language),
        label_by_term,
        re.compile(rf"(?<!{WORD_CHARACTER})(?:{code_pattern})(?!{WORD_CHARACTER})"),
        label_by_code,
    )


class _Stem(NamedTuple):
    """Folded form of a term without its ending, and how it matches."""

    text: str
    kind: StemKind


@functools.lru_cache(maxsize=2**15)
def _find_stem(term: str, language: str) -> _Stem | None:
    """The stem of a term in the grammar of a language; None for one that is empty. Cached: cells share most terms."""
    folded = " ".join(fold_text(term.removesuffix("*")).split())
    if not folded:
        return None
    if _EAST_ASIAN.search(folded):
        return _Stem(folded, "inner")
    if term.endswith("*"):
        return _Stem(folded, "open")
    return _Stem(_strip_ending(folded, load_blinding_terms(language)), "word")


@functools.lru_cache(maxsize=256)
def _compile_stems(
    words: frozenset[str], open_stems: frozenset[str], inner: frozenset[str], *, language: str
) -> re.Pattern[str]:
    """Compile the pattern of stems, which takes some 20 ms. Cells of different countries differ in labels only."""
    grammar = load_blinding_terms(language)
    word_pattern = (
        rf"(?P<word>{_trie_pattern(words)}){grammar.after}|(?P<open>{_trie_pattern(open_stems)}){WORD_CHARACTER}*"
    )
    folded_pattern = rf"(?<!{WORD_CHARACTER}){_optional_pattern(grammar.before)}(?:{word_pattern})"
    return re.compile(rf"{folded_pattern}(?!{WORD_CHARACTER})|(?P<inner>{_trie_pattern(inner)})")


def _optional_pattern(prefix_pattern: str) -> str:
    """Make an optional prefix pattern (one that ends in `?`) lazy, since a term may itself begin with a particle."""
    return f"{prefix_pattern}?" if prefix_pattern.endswith("?") else prefix_pattern


def _strip_ending(word: str, grammar: BlindingTerms) -> str:
    """Remove an inflectional ending from a single word, unless the stem becomes too short."""
    stem = re.sub(grammar.strip, "", word) if grammar.strip else word
    return stem if len(stem) >= MIN_STEM_LENGTH and " " not in word else word


def _trie_pattern(terms: Iterable[str]) -> str:
    """Build a pattern that matches the longest of the terms and reads each letter only once (a trie)."""
    root: dict[str, Any] = {}
    for term in terms:
        node = root
        for letter in term:
            node = node.setdefault(letter, {})
        node[""] = {}  # marks the end of a term
    return _branch_pattern(root) if root else _NEVER_MATCHES


def _branch_pattern(node: Mapping[str, Any]) -> str:
    """Pattern of a trie node: all continuations, optional if a term ends here (the key `""`); empty for a leaf."""
    branches = [_letter_pattern(letter) + _branch_pattern(child) for letter, child in sorted(node.items()) if letter]
    if not branches:
        return ""
    body = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{body}?" if "" in node else body


def _letter_pattern(letter: str) -> str:
    """Pattern of one character of a term; a space matches any white space."""
    return r"\s+" if letter == " " else re.escape(letter)


def fold_text(text: str) -> str:
    """Lower-case a text and remove accents, one character for each character, so that positions stay the same."""
    return text.translate(_FOLD_TABLE)


class _FoldTable(dict[int, str]):
    """Maps code points to folded characters; entries are computed on first use."""

    def __missing__(self, code: int) -> str:
        """Fold a character on first use, and keep the result."""
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(char: str) -> str:
    """Lower-case a character and remove its accents; the result is one character."""
    lowered = char.lower()[0]
    if lowered in "’‘ʼ＇":
        return "'"
    if "！" <= lowered <= "～":  # the full-width form of an ASCII character
        return chr(ord(lowered) - FULL_WIDTH_OFFSET)
    if lowered in "ıİ":
        return "i"
    base = unicodedata.normalize("NFD", lowered)[0]
    # Above U+0700, e.g. in kana and Devanagari, removing marks would merge different letters.
    return base if ord(base) < 0x0700 else lowered


_FOLD_TABLE = _FoldTable()
