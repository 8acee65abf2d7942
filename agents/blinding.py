"""Blinding: masking country, topic and author in a trace before judges read it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from auditor.agents.masking import WORD_CHARACTER, IdentifyingTerm, fold_text, mask_terms
from auditor.agents.sanitizing import strip_control_sequences, strip_style
from auditor.domain import ENGLISH, LANGUAGES
from auditor.domain.model_families import load_families, split_model_id
from auditor.prompts.blinding import load_blinding_terms
from auditor.text_safety import join_ends, truncate_middle

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
    return _REPEATED_LABELS.sub(r"\1", text).strip()  # one label for a run of equal labels


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


def author_names(models: Iterable[tuple[str, str]]) -> tuple[str, ...]:
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
    text = mask_terms(_META_COMPANY.sub(AUTHOR_LABEL, text), _all_author_terms(names), ENGLISH)
    return _SUFFIXES_AFTER_LABEL.sub(r"\1", text)


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
