"""The part of a survey that an audit asks about."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from auditor.domain import Survey
from auditor.errors import SurveyError
from auditor.surveys.countries import country_code

Wanted = Literal["all"] | Sequence[str]


def select(survey: Survey, countries: Wanted = "all", topics: Wanted = "all") -> Survey:
    """Keep some countries and topics of a survey, in the survey's own order.

    Args:
        countries: `all`, or countries by the survey's spelling, another common spelling, or ISO 3166 code.
        topics: `all`, or topics by the survey's spelling, in any case.

    Raises:
        SurveyError: a country or topic that the survey does not have (the message names the nearest it has), or a
            selection in which no cell has a score.
    """
    kept_countries = _chosen(countries, survey.countries, "country", survey.name, _same_country)
    kept_topics = _chosen(topics, survey.topics, "topic", survey.name, lambda asked, known: False)
    cells = tuple(c for c in survey.cells if c.cell.country in kept_countries and c.cell.topic in kept_topics)
    if all(cell.score is None for cell in cells):
        raise SurveyError(
            f"the selection from survey '{survey.name}' is empty: no cell of {len(kept_countries)} countries and "
            f"{len(kept_topics)} topics has a score.",
            'Name others, or write "all".',
        )
    words = {topic: words for topic, words in survey.words.items() if topic in kept_topics}
    return dataclasses.replace(survey, cells=cells, words=words)


def _chosen(
    wanted: Wanted, known: Sequence[str], kind: str, survey: str, same: Callable[[str, str], bool]
) -> frozenset[str]:
    if wanted == "all":
        return frozenset(known)
    if isinstance(wanted, str):
        wanted = [wanted]
    return frozenset(_match(name, known, kind, survey, same) for name in wanted)


def _match(name: str, known: Sequence[str], kind: str, survey: str, same: Callable[[str, str], bool]) -> str:
    if name in known:
        return name
    plain = name.strip().casefold()
    for candidate in known:
        if candidate.casefold() == plain:
            return candidate
    for candidate in known:
        if same(name, candidate):
            return candidate
    raise SurveyError(f"survey '{survey}' has no {kind} '{name}'.", _nearest(plain, known))


def _same_country(asked: str, known: str) -> bool:
    code = country_code(asked)
    return code is not None and code == country_code(known)


def _nearest(plain: str, known: Iterable[str]) -> str:
    """The nearest known names, or all of them when none is near."""
    by_plain = {k.casefold(): k for k in known}
    within = [k for p, k in by_plain.items() if plain and plain in p]
    near = within or [by_plain[p] for p in difflib.get_close_matches(plain, by_plain, n=3, cutoff=0.7)]
    if near:
        return f"Did you mean {' or '.join(repr(k) for k in near[:3])}?"
    shown = list(by_plain.values())
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return f"It has {', '.join(shown[:20])}{more}."
