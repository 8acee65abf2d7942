"""Blinding: what a judge may not know is taken out of a trace before the judge reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.agents.cleaning import without_controls, without_style
from auditor.agents.hiding import Word, hide
from auditor.domain import ENGLISH
from auditor.domain.families import families
from auditor.prompts.blinding import load_giveaway

COUNTRY, OTHER_COUNTRY, TOPIC, AUTHOR = "[country]", "[another country]", "[practice]", "[analyst]"

_REPEATED = re.compile(r"(\[(?:country|another country|practice|analyst)\])(?:[\s/·・-]+\1)+")
ORDINARY = frozenset((
    "base", "large", "small", "medium", "mini", "nano", "micro", "tiny", "huge", "fast", "slow", "chat",
    "instruct", "judge", "model", "test", "local", "remote", "main", "first", "second", "third", "last",
    "strong", "weak", "good", "better", "best", "reference", "baseline", "honest", "command", "turbo",
    "preview", "latest", "assistant", "human", "people", "person", "expert", "reviewer", "analyst", "meta",
    "google", "master", "student", "teacher", "english", "german", "french",
))  # fmt: skip
"""Words by which models are named, and which a text needs for itself; and makers with rules of their own."""
_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_INTRODUCED = (
    r"((?:\b(?:i am|i'm|my name is|called|named|the model|model|modell|modelo|modèle|модель|soy|sou|je suis|ich bin|я)"
    r"\s+[\"'“«]?)){name}\b"
)
_META = re.compile(
    r"\bMeta(?=['’]s\b|\s+(?:AI|Platforms|Llama|Inc)\b)|(?<=\bby )Meta\b|(?<=\bfrom )Meta\b|(?<=\bat )Meta\b"
)


def blind(
    text: str,
    *,
    country_words: Sequence[str | Word],
    topic_words: Sequence[str | Word],
    model_names: Sequence[str],
    other_countries: Sequence[str | Word] = (),
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
    text = without_style(without_controls(text))
    languages = dict.fromkeys((language, ENGLISH))
    for code in languages:
        for pattern in load_giveaway(code).myself:
            text = pattern.sub("", text)
    text = without_authors(text, model_names)
    words = (
        *_words(country_words, COUNTRY),
        *_words(other_countries, OTHER_COUNTRY),
        *_words(topic_words, TOPIC),
    )
    for code in languages:
        text = hide(text, words, code)
    return _REPEATED.sub(r"\1", text).strip()


def _words(words: Sequence[str | Word], label: str) -> tuple[Word, ...]:
    return tuple(
        w if isinstance(w, Word) else Word(w, label, exact=w.isupper() and w.isascii()) for w in words if str(w).strip()
    )


def without_authors(text: str, names: Sequence[str]) -> str:
    """The text with the names of makers and of models replaced by a label.

    A name with digits or marks in it is replaced in any case; one that is a plain word only with a capital, and one
    that is an ordinary word, or shorter than four letters, only where it is introduced as a name.
    """
    told = [n for n in dict.fromkeys(names) if n.strip()]
    plain = [n for n in told if _PLAIN_WORD.fullmatch(n)]
    for name in plain:
        text = re.sub(_INTRODUCED.format(name=re.escape(name)), rf"\1{AUTHOR}", text, flags=re.IGNORECASE)
    text = _META.sub(AUTHOR, text)
    words = [Word(n, AUTHOR) for n in told if n not in plain and len(n) > 2]
    words += [Word(n, AUTHOR, proper=True) for n in plain if len(n) > 3 and n.lower() not in ORDINARY]
    words += [Word(w, AUTHOR) for f in families() for w in f.words]
    words += [Word(w, AUTHOR, proper=True) for f in families() for w in f.proper]
    return hide(text, tuple(words), ENGLISH)
