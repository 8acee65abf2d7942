"""A survey asked in other words than its own, as a configuration wants it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from auditor.agents.localization import localized_question, wording_stem_patterns
from auditor.config.rephrasing import Rephrasing
from auditor.domain import ENGLISH, Phrasing, Survey
from auditor.errors import ConfigError, did_you_mean


def apply_rephrasing(survey: Survey, rephrasing: Rephrasing, languages: Sequence[str]) -> Survey:
    """The survey in other words, which judges will not see either.

    Args:
        languages: all that the audit asks in: a mixture of old and new words would make a difference of languages one
            of wordings.

    Raises:
        ConfigError: something is reworded in some of the languages only, or a topic is not asked about.
    """
    if not (rephrasing.question or rephrasing.scale or rephrasing.topics):
        return survey
    _require_languages("question", rephrasing.question, languages)
    _require_languages("scale", rephrasing.scale, languages)
    for topic, wordings in rephrasing.topics.items():
        if topic not in survey.topics:
            hint = did_you_mean(topic, survey.topics, "Use the label that `auditor surveys show` gives it.")
            raise ConfigError(f"survey.rephrase.topics: the audit asks about no topic '{topic}'.", hint)
        _require_languages(f"topics.{topic}", wordings, languages)
    phrasings = {language: _build_phrasing(survey, rephrasing, language) for language in languages}
    english = phrasings.get(ENGLISH)
    return dataclasses.replace(
        survey,
        wording=english.wording if english else survey.wording,
        scale=english.scale if english else survey.scale,
        words={topic: (*given, *_identifying_wordings(phrasings, topic)) for topic, given in survey.words.items()},
        phrasings=phrasings,
    )


def _build_phrasing(survey: Survey, rephrasing: Rephrasing, language: str) -> Phrasing:
    whole = rephrasing.question and rephrasing.scale
    own = None if whole else localized_question(survey, language)
    return Phrasing(
        wording=own.wording if own and not rephrasing.question else rephrasing.question[language],
        scale=own.scale if own and not rephrasing.scale else rephrasing.scale[language],
        topics={topic: wordings[language] for topic, wordings in rephrasing.topics.items()},
    )


def _identifying_wordings(phrasings: Mapping[str, Phrasing], topic: str) -> list[str]:
    wordings = [p.topics[topic] for p in phrasings.values() if topic in p.topics]
    return list(dict.fromkeys(word for wording in wordings for word in (wording, *wording_stem_patterns(wording))))


def _require_languages(key: str, wording_by_language: Mapping[str, object], languages: Sequence[str]) -> None:
    lacking = [language for language in languages if wording_by_language and language not in wording_by_language]
    if lacking:
        raise ConfigError(
            f"survey.rephrase.{key}: is reworded in {', '.join(wording_by_language)}, but not in "
            f"{', '.join(lacking)}, which the audit asks in too.",
            "Add a wording for each language, or ask in fewer.",
        )
