"""Blinding: masking country, topic and author in a trace before judges read it."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from auditor.agents.localization import country_name, topic_stem_patterns
from auditor.agents.sanitizing import strip_control_sequences, strip_style
from auditor.domain import ENGLISH, LANGUAGES, Survey
from auditor.domain.terms import load_families, split_model_id
from auditor.prompts.language_data import load_blinding_terms
from auditor.surveys.countries import country_code, country_name_forms, get_country_terms
from auditor.text_safety import join_ends, truncate_middle

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


class TermSet(tuple[IdentifyingTerm, ...]):
    """Terms of all texts about a cell: their hash, by which their patterns are found, is computed once."""

    def __hash__(self) -> int:
        """Hash of the terms."""
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return super().__hash__()


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
    grammar = load_blinding_terms(language)
    stem = re.sub(grammar.strip, "", folded) if grammar.strip else folded
    return _Stem((stem if len(stem) >= MIN_STEM_LENGTH and " " not in folded else folded), "word")


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
    branches = [
        (r"\s+" if letter == " " else re.escape(letter)) + _branch_pattern(child)
        for letter, child in sorted(node.items())
        if letter
    ]
    if not branches:
        return ""
    body = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{body}?" if "" in node else body


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


COUNTRY_LABEL, OTHER_COUNTRY_LABEL, TOPIC_LABEL, AUTHOR_LABEL = (
    "[country]",
    "[another country]",
    "[practice]",
    "[analyst]",
)

MARGIN_CHARS = 1000
"""Characters blinded beyond the shown part of a long text, then dropped; longer than any masked name or phrase."""
_REPEATED_LABELS = re.compile(r"(\[(?:country|another country|practice|analyst)\])(?:[\s/·・-]+\1)+")
ORDINARY_WORDS = frozenset((
    "base", "large", "small", "medium", "mini", "nano", "micro", "tiny", "huge", "fast", "slow", "chat",
    "instruct", "judge", "model", "test", "local", "remote", "main", "first", "second", "third", "last",
    "strong", "weak", "good", "better", "best", "reference", "baseline", "honest", "command", "turbo",
    "preview", "latest", "assistant", "human", "people", "person", "expert", "reviewer", "analyst", "meta",
    "google", "master", "student", "teacher", "english", "german", "french",
))  # fmt: skip
"""Parts of model names that are also ordinary words, and makers that have rules of their own."""
_LETTERS_ONLY = re.compile(r"[^\W\d_]+")
_ORDINARY_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|s)|[\W\d_]+")
"""Numbers of ordinary texts, in lower case: `1990`, `1990s`, `2nd`, `3.5`."""
MAX_SHORT_NAME_LENGTH = 3
"""Names of at most this many letters are looked up among the ordinary words of all languages."""
_QUOTES = "\"'“„«「『"
_MODEL_NUMBER = r"(?:model|modell|modelo|modèle|модель|modeli|نموذج|मॉडल|模型|モデル)\s*"
_VERSION_SUFFIX = re.compile(
    r"(?:[@:].*|[-_.](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|v\d+|\d+(?:\.\d+)?[bm]|latest|preview|exp|beta|high|low|pro"
    r"|mini|nano|small|medium|large|lite|turbo|chat|instruct|it|base))$",
    re.IGNORECASE,
)
"""Suffix of a model id after the model's name: a date, a tag, a size or a kind."""
_SERIES_NAME = re.compile(r"[a-pr-uw-z]\d", re.IGNORECASE)
"""Part of an id that is used as a short name, such as `r1` of `deepseek-r1`. `v3` and `q4` are not distinctive."""
_SUFFIXES_AFTER_LABEL = re.compile(
    r"(\[analyst\])(?:(?:[-_@][^\W_]*\d[^\W_]*|:\d+(?:\.\d+)?[bm]\b|\.\d+|[-_](?:mini|nano|pro|lite|turbo|preview|latest"
    r"|instruct|chat|small|medium|large|base|flash|sonnet|opus|haiku)(?![^\W_]))+)",
    re.IGNORECASE,
)
"""Rest of an id after a name that was masked: `-4o`, `-2024-12-17`, `:8b`, `-mini`."""
_META_COMPANY = re.compile(
    r"\bMeta(?=['’]s\b|\s+(?:AI|Platforms|Llama|Inc)\b)|(?<=\bby )Meta\b|(?<=\bfrom )Meta\b|(?<=\bat )Meta\b"
)


def blind_text(
    text: str, *, terms: tuple[IdentifyingTerm, ...] = (), model_names: Sequence[str], language: str = ENGLISH
) -> str:
    """Replace country, topic and author by labels, and remove self-descriptions, style and control characters.

    Args:
        text: the audited model's text.
        terms: those of the country, of the audit's other countries, since comparisons would reveal the country, and of
            the topic. They match with the endings and particles of the text's language and of English.
        model_names: names of the audit's models; well-known models and makers are always masked.
        language: ISO 639-1 code of the text's language.
    """
    text = strip_style(strip_control_sequences(text))
    languages = dict.fromkeys((language, ENGLISH))
    for code in languages:
        for pattern in load_blinding_terms(code).myself:
            text = pattern.sub("", text)
    text = mask_authors(text, model_names)
    for code in languages:
        text = mask_terms(text, terms, code)
    # One label for a run of equal labels.
    return (_REPEATED_LABELS.sub(r"\1", text) if "[" in text else text).strip()


def blind_and_truncate(
    text: str,
    max_chars: int,
    *,
    terms: tuple[IdentifyingTerm, ...] = (),
    model_names: Sequence[str],
    language: str = ENGLISH,
) -> str:
    """Blind a text with `blind_text`, and cut out its middle if it has more than `max_chars` characters.

    Blinding comes first, so that a cut never leaves half of a term visible. In a very long text only both ends are
    blinded, each with a margin that is then dropped, so that the running time is bounded.
    """
    blind = functools.partial(blind_text, terms=terms, model_names=model_names, language=language)
    n_end_chars = max_chars + MARGIN_CHARS
    if len(text) <= 2 * n_end_chars:
        return truncate_middle(blind(text), max_chars)
    return join_ends(
        blind(text[:n_end_chars])[:-MARGIN_CHARS], blind(text[-n_end_chars:])[MARGIN_CHARS:], max_chars, len(text)
    )


@functools.lru_cache(maxsize=64)
def author_names(models: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Names that identify the author of a text.

    Args:
        models: name and model string (`provider/id`) of each model of an audit.

    Returns:
        Names, ids without their provider, and ids without date, tag, size or kind, such as `o1` for
        `openai/o1-2024-12-17`.
    """
    names: dict[str, None] = {}
    for name, model in models:
        _, model_id = split_model_id(model)
        short_id = model_id.rsplit("/", 1)[-1]
        names |= dict.fromkeys((name, model_id, short_id))
        parts = re.split(r"[-_@:./]", short_id)
        while (shorter_id := _VERSION_SUFFIX.sub("", short_id)) != short_id:
            short_id = shorter_id
            if _is_distinctive_code(short_id):
                names[short_id] = None
        names |= dict.fromkeys(part for part in parts if _SERIES_NAME.fullmatch(part))
    return tuple(name for name in names if name.strip())


def mask_authors(text: str, model_names: Sequence[str]) -> str:
    """Replace the names of makers and models in a text by a label.

    A name of two or more characters that has a digit or mark matches in any case. A name of letters only must be
    capitalized. An ordinary word, a single letter or a number is replaced only where the text introduces it as a name
    ("I am …", "model 7").
    """
    names = tuple(name for name in dict.fromkeys(model_names) if name.strip())
    # The introduction ("I am ", "model ") stays, and only the name after it is replaced.
    text = _introduction_pattern(names).sub(lambda match: (match["before"] or match["model"]) + AUTHOR_LABEL, text)
    text = _META_COMPANY.sub(AUTHOR_LABEL, text) if "Meta" in text else text
    text = mask_terms(text, _all_author_terms(names), ENGLISH)
    return _SUFFIXES_AFTER_LABEL.sub(r"\1", text) if AUTHOR_LABEL in text else text


@functools.lru_cache(maxsize=64)
def _all_author_terms(names: tuple[str, ...]) -> tuple[IdentifyingTerm, ...]:
    """Terms of an audit's models, of well-known models and of makers."""
    terms = [term for name in names for term in _author_terms(name)]
    terms += [IdentifyingTerm(word, AUTHOR_LABEL) for family in load_families() for word in family.maker_words]
    terms += [
        IdentifyingTerm(word, AUTHOR_LABEL, needs_capital=True)
        for family in load_families()
        for word in family.capitalized_words
    ]
    return tuple(dict.fromkeys(terms))


def _author_terms(name: str) -> list[IdentifyingTerm]:
    """Terms for the forms of a name that are masked anywhere in a text; empty for an ordinary word."""
    if _is_ordinary_word(name):
        return []
    if not _LETTERS_ONLY.fullmatch(name):
        return [IdentifyingTerm(name, AUTHOR_LABEL)]
    if len(name) > MAX_SHORT_NAME_LENGTH:
        return [IdentifyingTerm(name, AUTHOR_LABEL, needs_capital=True)]
    # With an ending a short name easily becomes an ordinary word, such as "Thing": match the name itself only.
    return [
        IdentifyingTerm(form, AUTHOR_LABEL, case_sensitive=True)
        for form in dict.fromkeys((name.capitalize(), name.upper()))
    ]


def _is_distinctive_code(name: str) -> bool:
    """Whether a name has a digit and is not an ordinary word or number."""
    return bool(re.search(r"\d", name)) and not _is_ordinary_word(name)


def _is_ordinary_word(name: str) -> bool:
    """Whether a name is also an ordinary word, a single character or a number."""
    folded = fold_text(name)
    if sum(char.isalnum() for char in folded) < 2 or _ORDINARY_NUMBER.fullmatch(folded):
        return True
    return folded in ORDINARY_WORDS or folded in _short_ordinary_words()


@functools.cache
def _short_ordinary_words() -> frozenset[str]:
    """Ordinary words of two and three letters, in all languages."""
    return frozenset().union(*(load_blinding_terms(language).short for language in LANGUAGES))


@functools.lru_cache(maxsize=64)
def _introduction_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of an introduction and the name after it, such as "I am GPT" or "model 7".

    The introduction is in the group `before`, or in `model` for "model" and a number; `quote` is a quotation mark
    between the introduction and the name, after which short ordinary words and numbers match in any case.

    A name that is a short ordinary word must be capitalized or quoted ("I am No", not "I am no expert").
    """
    letter_names = [name for name in names if _LETTERS_ONLY.fullmatch(name)]
    number_pattern = _alternation([name for name in names if _ORDINARY_NUMBER.fullmatch(name)])
    short_names = [name for name in letter_names if len(name) <= MAX_SHORT_NAME_LENGTH and _is_ordinary_word(name)]
    any_case_pattern, capitalized_pattern = (
        _alternation([name for name in letter_names if name not in short_names]),
        _alternation([name.capitalize() for name in short_names]),
    )
    introduction_phrases = "|".join(load_blinding_terms(language).introduces for language in LANGUAGES)
    return re.compile(
        rf"(?:(?P<before>(?<!{WORD_CHARACTER})(?i:{introduction_phrases})(?P<quote>[{_QUOTES}])?)"
        rf"(?:(?i:{any_case_pattern})|{capitalized_pattern}|(?(quote)(?:(?i:{_alternation(short_names)})|{number_pattern})|(?!)))"
        rf"|(?P<model>(?<!{WORD_CHARACTER})(?i:{_MODEL_NUMBER}))(?:{number_pattern}))(?!{WORD_CHARACTER})"
    )


def _alternation(names: Sequence[str]) -> str:
    """Regular expression that matches any of the names, longest first; without names it matches nothing."""
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})" if names else "(?!)"


LATIN_SCRIPT_END = "\u0250"
"""First character beyond Latin. Other scripts have no capitals, or write adjectives of cities without one."""
MAX_SHORT_TERM_LENGTH = 4
"""Names of other countries with at most this many letters match with a capital only: Mali is a word elsewhere."""


@functools.lru_cache(maxsize=4096)
def country_terms(country: str, language: str, *, is_other_country: bool = False) -> tuple[IdentifyingTerm, ...]:
    """Names, demonyms, peoples and cities of a country, in a language and in English.

    Args:
        is_other_country: whether the trace is about another country; changes the label and requires capitals in short
            names.
    """
    label = OTHER_COUNTRY_LABEL if is_other_country else COUNTRY_LABEL
    terms = [build_term(word, label) for word in (country, *country_name_forms(country))]
    for code in dict.fromkeys((language, ENGLISH)):
        listed_terms = get_country_terms(country, code)
        terms += [
            build_term(word, label, proper=is_other_country and len(word) <= MAX_SHORT_TERM_LENGTH)
            for word in (country_name(country, code), *listed_terms.names)
        ]
        cities = [word for word in listed_terms.cities if len(word) > MAX_SHORT_TERM_LENGTH or not word[:1].isupper()]
        terms += [build_term(word, label, proper=word[:1] < LATIN_SCRIPT_END) for word in cities]
        terms += [
            build_term(word, label, proper=True)
            for word in load_blinding_terms(code).countries.get(country_code(country) or "", ())
        ]
    return tuple(dict.fromkeys(terms))


@functools.lru_cache(maxsize=512)
def other_country_terms(countries: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of several countries that a trace is not about."""
    return tuple(term for country in countries for term in country_terms(country, language, is_other_country=True))


@functools.lru_cache(maxsize=4096)
def _cached_topic_terms(topic: str, survey_terms: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of a topic: its label, the survey's words for it, and its wording and further words in a language."""
    words = (
        topic,
        *survey_terms,
        *topic_stem_patterns(topic, language),
        *load_blinding_terms(language).topics.get(topic, ()),
    )
    return tuple(dict.fromkeys(build_term(word, TOPIC_LABEL) for word in words if word.strip()))


def topic_terms(survey: Survey, topic: str, language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of a topic: its label, the survey's words for it, and its wording and further words in a language."""
    return _cached_topic_terms(topic, tuple(survey.words.get(topic, ())), language)


def identifying_terms(survey: Survey, country: str, topic: str, language: str) -> TermSet:
    """Terms of a trace's country, of the survey's other countries, and of its topic."""
    return _join_terms(survey.countries, country, topic_terms(survey, topic, language), language)


@functools.lru_cache(maxsize=2048)
def _join_terms(
    countries: tuple[str, ...], country: str, terms_of_topic: tuple[IdentifyingTerm, ...], language: str
) -> TermSet:
    """Terms of a country, of a survey's other countries, and of a topic."""
    others = other_country_terms(tuple(other for other in countries if other != country), language)
    return TermSet((*country_terms(country, language), *others, *terms_of_topic))


def build_term(text: str, label: str, *, proper: bool = False) -> IdentifyingTerm:
    """Make a term that is replaced by `label`; ASCII text in capitals, such as `US`, is a code and matches only so.

    Args:
        proper: whether the text is a proper name, which matches with a capital first letter only.
    """
    is_code = text.isascii() and text.isupper()
    return IdentifyingTerm(text, label, needs_capital=proper and text[:1].isupper(), case_sensitive=is_code)
