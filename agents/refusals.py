"""Recognize texts of models and judges that refuse to answer, in any language."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from auditor.domain import ENGLISH, LANGUAGES, Outcome
from auditor.models.reasoning import strip_thinking
from auditor.models.structured_reading import MAX_CACHED_READINGS
from auditor.prompts.language_data import RefusalPatterns, load_refusal_patterns

MAX_REFUSAL_CHARS = 400
"""Longest text that may be nothing but a refusal: some have reasons, and an offer to help otherwise."""
MAX_OPENINGS = 3
"""Phrases before a refusal, as in "Thank you. I'm sorry, but as an AI model, I cannot …"."""
_MARKUP = re.compile(r"[*_#>`]+")
_QUOTATION = re.compile(
    r"“[^”]{0,300}”|\"[^\"]{0,300}\"|«[^»]{0,300}»|„[^“”]{0,300}[“”]|「[^」]{0,300}」|『[^』]{0,300}』|(?<!\w)'[^\n]{0,300}?'(?!\w)"
)
_OPENING_QUOTES, _CLOSING_QUOTES = "\"'“„«「", "\"'”“»」"
_EXACT_NUMBER = re.compile(r"(?<!\d)0?[.,]\d*[1-9]")
"""A number such as 0.4 or -.25, which a refusal does not mention, unlike the ends of the scale."""
_REASONS = ("reason", "reasoning", "justification")
"""Fields of structured answers that explain a choice."""
_NO_WORDS = re.compile(r"[\W_]*(?:n[\W_]?a[\W_]*)?", re.IGNORECASE)


def is_refusal(text: str, language: str) -> bool:
    """Whether a text matches a known phrase of refusal, in the given language (ISO 639-1 code) or in English."""
    normalized_text = _normalize(text)
    return any(pattern.search(normalized_text) for pattern in _phrases(language))


def is_refusal_in_any_language(text: str) -> bool:
    """Whether a text matches a known phrase of refusal in any language, or begins as a refusal."""
    return begins_with_refusal(text) or any(is_refusal(text, language) for language in LANGUAGES)


@functools.lru_cache(maxsize=MAX_CACHED_READINGS)
def begins_with_refusal(text: str) -> bool:
    """Whether a short text is little but a refusal in any language: it begins as one, and answers nothing after it.

    Cached, as readings are: judges often give equal reasons.
    """
    normalized_text = " ".join(_MARKUP.sub("", _normalize(text)).split())
    if normalized_text[:1] in _OPENING_QUOTES and normalized_text[-1:] in _CLOSING_QUOTES:
        unquoted_text = normalized_text[1:-1]
        if not any(quote in unquoted_text for quote in _OPENING_QUOTES.replace("'", "")):
            normalized_text = unquoted_text
    if len(normalized_text) > MAX_REFUSAL_CHARS or not _beginnings().match(normalized_text):
        return False
    return any(_begins_as_refusal(normalized_text, load_refusal_patterns(code)) for code in (*LANGUAGES, None))


def are_all_refusals(texts: Iterable[str], language: str) -> bool:
    """Whether a structured answer only refuses: each of its texts does, and those without words do not count.

    A server that enforces the structure makes a model add some answer to its refusal.
    """
    texts_with_words = [text for text in texts if has_words(text)]
    return bool(texts_with_words) and all(
        begins_with_refusal(text) or _refuses_without_answer(text, language) for text in texts_with_words
    )


def declines_request(text: str) -> bool:
    """Whether a text refuses what it was asked for, and not what the question is about.

    "I cannot answer this question" does, "I will not lie to her" is an answer to a moral question. A text that may be
    either is an answer.
    """
    return begins_with_refusal(text) and _about_request().search(_normalize(text)) is not None


def refuses_in_reasons(answer: BaseModel) -> bool:
    """Whether the reasons of a structured answer refuse: a server that enforces the structure makes them a choice."""
    reasons = (getattr(answer, name, None) for name in _REASONS)
    return any(isinstance(text, str) and declines_request(text) for text in reasons)


def find_outcome_without_structure(text: str) -> Outcome:
    """Outcome of a complete answer that lacks the requested structure: a plain refusal, or an unreadable answer."""
    return Outcome.REFUSED if begins_with_refusal(strip_thinking(text)) else Outcome.UNPARSED


def has_words(text: str) -> bool:
    """Whether a text says anything: not so for "-" and "N/A"."""
    return _NO_WORDS.fullmatch(text) is None


def _refuses_without_answer(text: str, language: str) -> bool:
    """Whether a text has a phrase of refusal outside quotations, in a language or English, and no answer after it."""
    unquoted_text = _QUOTATION.sub(" ", _normalize(text))
    matches = (pattern.search(unquoted_text) for pattern in _phrases(language))
    answers = [pattern for code in {language, ENGLISH} for pattern in load_refusal_patterns(code).answers]
    return any(match is not None and not _answers_after(unquoted_text, match.end(), answers) for match in matches)


@functools.cache
def _beginnings() -> re.Pattern[str]:
    """One pattern of all that begins a refusal, in all languages: most texts begin otherwise, and need one search."""
    return _join_patterns("opens", "refuses", "begins")


@functools.cache
def _about_request() -> re.Pattern[str]:
    """One pattern of all words by which a refusal is about the request, in all languages."""
    return _join_patterns("about_request")


def _join_patterns(*fields: str) -> re.Pattern[str]:
    """Join the patterns of some fields of all languages into one."""
    groups = [load_refusal_patterns(code) for code in (*LANGUAGES, None)]
    patterns = [pattern.pattern for group in groups for field in fields for pattern in getattr(group, field)]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def _begins_as_refusal(text: str, patterns: RefusalPatterns) -> bool:
    """Whether a text begins with a refusal in one language, after an apology or the like, and no answer after it."""
    start = _find_opening_end(text, patterns)
    phrases = (*patterns.refuses, *patterns.begins)
    matches = [pattern.match(text) for pattern in phrases]
    if start:
        matches += [pattern.match(text, start) for pattern in (*phrases, *patterns.declines)]
    return any(match is not None and not _answers_after(text, match.end(), patterns.answers) for match in matches)


def _find_opening_end(text: str, patterns: RefusalPatterns) -> int:
    """Position after the phrases that open a refusal; 0 without one."""
    end = 0
    for _ in range(MAX_OPENINGS):
        match = next(filter(None, (pattern.match(text, end) for pattern in patterns.opens)), None)
        if match is None:
            break
        end = match.end()
    return end


def _answers_after(text: str, position: int, answers: Sequence[re.Pattern[str]]) -> bool:
    """Whether a text answers after a position, in spite of a refusal before it."""
    remaining_text = text[position:]
    return _EXACT_NUMBER.search(remaining_text) is not None or any(
        pattern.search(remaining_text) for pattern in answers
    )


def _normalize(text: str) -> str:
    return text.replace("\u2019", "'").replace("\u2018", "'")


def _phrases(language: str) -> list[re.Pattern[str]]:
    """Phrases of refusal in a language and in English."""
    return [pattern for code in dict.fromkeys((language, ENGLISH)) for pattern in load_refusal_patterns(code).refuses]
