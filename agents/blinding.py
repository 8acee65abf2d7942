"""Blinding: what a judge may not know is taken out of a trace before the judge reads it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from auditor.agents.masking import WORD_CHARACTER, IdentifyingTerm, fold_text, mask_terms
from auditor.agents.sanitizing import strip_control_sequences, strip_style
from auditor.domain import ENGLISH, LANGUAGES
from auditor.domain.model_families import load_families
from auditor.prompts.blinding import load_blinding_terms
from auditor.text_safety import join_ends, truncate_middle

COUNTRY_LABEL, OTHER_COUNTRY_LABEL, TOPIC_LABEL, AUTHOR_LABEL = (
    "[country]",
    "[another country]",
    "[practice]",
    "[analyst]",
)

MARGIN_CHARS = 1000
"""Blinded beyond what is shown of a very long text, and dropped: longer than any name or phrase that is hidden."""
_REPEATED_LABELS = re.compile(r"(\[(?:country|another country|practice|analyst)\])(?:[\s/·・-]+\1)+")
ORDINARY_WORDS = frozenset((
    "base", "large", "small", "medium", "mini", "nano", "micro", "tiny", "huge", "fast", "slow", "chat",
    "instruct", "judge", "model", "test", "local", "remote", "main", "first", "second", "third", "last",
    "strong", "weak", "good", "better", "best", "reference", "baseline", "honest", "command", "turbo",
    "preview", "latest", "assistant", "human", "people", "person", "expert", "reviewer", "analyst", "meta",
    "google", "master", "student", "teacher", "english", "german", "french",
))  # fmt: skip
"""Words by which models are named, and which a text needs for itself; and makers with rules of their own."""
_LETTERS_ONLY = re.compile(r"[^\W\d_]+")
_ORDINARY_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|s)|[\W\d_]+")
"""Numbers as an ordinary text has them, in lower case: `1990`, `1990s`, `2nd`, `3.5`."""
MAX_SHORT_NAME_LENGTH = 3
"""Letters up to which a name is looked up among the ordinary words of all languages."""
_QUOTES = "\"'“„«「『"
_MODEL_NUMBER = r"(?:model|modell|modelo|modèle|модель|modeli|نموذج|मॉडल|模型|モデル)\s*"
_VERSION_SUFFIX = re.compile(
    r"(?:[@:].*|[-_.](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|v\d+|\d+(?:\.\d+)?[bm]|latest|preview|exp|beta|high|low|pro"
    r"|mini|nano|small|medium|large|lite|turbo|chat|instruct|it|base))$",
    re.IGNORECASE,
)
"""What follows a model's name in its id: a date, a tag, a size or a kind."""
_SERIES_NAME = re.compile(r"[a-pr-uw-z]\d", re.IGNORECASE)
"""A part of an id that serves as a short name: `r1` of `deepseek-r1`. `v3` and `q4` are versions of anything."""
_SUFFIXES_AFTER_LABEL = re.compile(
    r"(\[analyst\])(?:(?:[-_@][^\W_]*\d[^\W_]*|:\d+(?:\.\d+)?[bm]\b|\.\d+|[-_](?:mini|nano|pro|lite|turbo|preview|latest"
    r"|instruct|chat|small|medium|large|base|flash|sonnet|opus|haiku)(?![^\W_]))+)",
    re.IGNORECASE,
)
"""What is left of an id behind a name that was replaced: `-4o`, `-2024-12-17`, `:8b`, `-mini`."""
_META_COMPANY = re.compile(
    r"\bMeta(?=['’]s\b|\s+(?:AI|Platforms|Llama|Inc)\b)|(?<=\bby )Meta\b|(?<=\bfrom )Meta\b|(?<=\bat )Meta\b"
)


def blind_text(
    text: str,
    *,
    country_terms: Sequence[str | IdentifyingTerm],
    topic_terms: Sequence[str | IdentifyingTerm],
    model_names: Sequence[str],
    other_country_terms: Sequence[str | IdentifyingTerm] = (),
    language: str = ENGLISH,
) -> str:
    """The text with country, topic and author replaced by labels, self-descriptions, style and control marks taken out.

    Words are matched in any case with the endings and particles of the text's language, and of English; one that ends
    in `*` with any ending; one wholly in capitals only so.

    Args:
        text: what the audited model wrote.
        country_words: the country's names, demonyms, peoples and cities.
        topic_words: the words that give the topic away.
        model_names: names of the audit's models; those of well-known models and makers are always replaced.
        other_countries: the same of the audit's other countries: a comparison would give the country away.
        language: what the text is written in.
    """
    text = strip_style(strip_control_sequences(text))
    languages = dict.fromkeys((language, ENGLISH))
    for code in languages:
        for pattern in load_blinding_terms(code).myself:
            text = pattern.sub("", text)
    text = mask_authors(text, model_names)
    words = (
        *_to_terms(country_terms, COUNTRY_LABEL),
        *_to_terms(other_country_terms, OTHER_COUNTRY_LABEL),
        *_to_terms(topic_terms, TOPIC_LABEL),
    )
    for code in languages:
        text = mask_terms(text, words, code)
    return _REPEATED_LABELS.sub(r"\1", text).strip()


def blind_and_truncate(
    text: str,
    max_chars: int,
    *,
    country_terms: Sequence[str | IdentifyingTerm] = (),
    topic_terms: Sequence[str | IdentifyingTerm] = (),
    model_names: Sequence[str],
    other_country_terms: Sequence[str | IdentifyingTerm] = (),
    language: str = ENGLISH,
) -> str:
    """The text as `blind` returns it, cut in the middle where it has more than `max_chars` characters.

    It is blinded before it is cut, so that no word is halved and shown. Of a very long text only both ends are
    blinded, each with a margin that is then dropped: its time does not grow with the text.
    """
    hidden = functools.partial(
        blind_text,
        country_terms=country_terms,
        topic_terms=topic_terms,
        model_names=model_names,
        other_country_terms=other_country_terms,
        language=language,
    )
    end = max_chars + MARGIN_CHARS
    if len(text) <= 2 * end:
        return truncate_middle(hidden(text), max_chars)
    return join_ends(hidden(text[:end])[:-MARGIN_CHARS], hidden(text[-end:])[MARGIN_CHARS:], max_chars, len(text))


def _to_terms(terms: Sequence[str | IdentifyingTerm], label: str) -> tuple[IdentifyingTerm, ...]:
    return tuple(
        w if isinstance(w, IdentifyingTerm) else IdentifyingTerm(w, label, case_sensitive=w.isupper() and w.isascii())
        for w in terms
        if str(w).strip()
    )


def author_names(models: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The names by which a text could give its author away.

    Args:
        models: name and model string (`provider/id`) of each model of an audit.

    Returns:
        Names, ids without their provider, and what an id is called without its date, tag, size or kind: `o1` for
        `openai/o1-2024-12-17`.
    """
    names: dict[str, None] = {}
    for name, model in models:
        path = model.split("/", 1)[-1]
        short = path.rsplit("/", 1)[-1]
        names |= dict.fromkeys((name, path, short))
        parts = re.split(r"[-_@:./]", short)
        while (shorter := _VERSION_SUFFIX.sub("", short)) != short:
            short = shorter
            if _is_distinctive_code(short):
                names[short] = None
        names |= dict.fromkeys(part for part in parts if _SERIES_NAME.fullmatch(part))
    return tuple(name for name in names if name.strip())


def mask_authors(text: str, model_names: Sequence[str]) -> str:
    """The text with the names of makers and of models replaced by a label.

    A name with letters and digits or marks is replaced in any case, from two characters on. One of letters only is
    replaced where it has a capital, and an ordinary word, a single letter or a number only where it is introduced as a
    name.
    """
    known = [name for name in dict.fromkeys(model_names) if name.strip()]
    text = _introduction_pattern(tuple(known)).sub(lambda m: (m["before"] or m["model"]) + AUTHOR_LABEL, text)
    text = _META_COMPANY.sub(AUTHOR_LABEL, text)
    words = [word for name in known for word in _author_terms(name)]
    words += [IdentifyingTerm(w, AUTHOR_LABEL) for f in load_families() for w in f.maker_words]
    words += [
        IdentifyingTerm(w, AUTHOR_LABEL, needs_capital=True) for f in load_families() for w in f.capitalized_words
    ]
    return _SUFFIXES_AFTER_LABEL.sub(r"\1", mask_terms(text, tuple(dict.fromkeys(words)), ENGLISH))


def _author_terms(name: str) -> list[IdentifyingTerm]:
    """The forms of a name that are replaced wherever they stand."""
    if _is_ordinary_word(name):
        return []
    if not _LETTERS_ONLY.fullmatch(name):
        return [IdentifyingTerm(name, AUTHOR_LABEL)]
    if len(name) > MAX_SHORT_NAME_LENGTH:
        return [IdentifyingTerm(name, AUTHOR_LABEL, needs_capital=True)]
    # With an ending a short name is soon an ordinary word, such as "Thing": only the name itself is replaced.
    return [
        IdentifyingTerm(form, AUTHOR_LABEL, case_sensitive=True)
        for form in dict.fromkeys((name.capitalize(), name.upper()))
    ]


def _is_distinctive_code(name: str) -> bool:
    return bool(re.search(r"\d", name)) and not _is_ordinary_word(name)


def _is_ordinary_word(name: str) -> bool:
    """Whether an ordinary text has the name for a word or a number of its own."""
    plain = fold_text(name)
    if sum(c.isalnum() for c in plain) < 2 or _ORDINARY_NUMBER.fullmatch(plain):
        return True
    return plain in ORDINARY_WORDS or plain in _short_ordinary_words()


@functools.cache
def _short_ordinary_words() -> frozenset[str]:
    return frozenset().union(*(load_blinding_terms(language).short for language in LANGUAGES))


@functools.lru_cache(maxsize=64)
def _introduction_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Pattern of the names where they are introduced, after the group `before`, or `model` for a number.

    A name that is a short ordinary word must have its capital or stand in quotes ("I am No", not "I am no expert").
    """
    words = [n for n in names if _LETTERS_ONLY.fullmatch(n)]
    numbers = _alternation([n for n in names if _ORDINARY_NUMBER.fullmatch(n)])
    short = [n for n in words if len(n) <= MAX_SHORT_NAME_LENGTH and _is_ordinary_word(n)]
    any_case, capital = (
        _alternation([n for n in words if n not in short]),
        _alternation([n.capitalize() for n in short]),
    )
    phrases = "|".join(load_blinding_terms(language).introduces for language in LANGUAGES)
    return re.compile(
        rf"(?:(?P<before>(?<!{WORD_CHARACTER})(?i:{phrases})(?P<quote>[{_QUOTES}])?)"
        rf"(?:(?i:{any_case})|{capital}|(?(quote)(?:(?i:{_alternation(short)})|{numbers})|(?!)))"
        rf"|(?P<model>(?<!{WORD_CHARACTER})(?i:{_MODEL_NUMBER}))(?:{numbers}))(?!{WORD_CHARACTER})"
    )


def _alternation(names: Sequence[str]) -> str:
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})" if names else "(?!)"
