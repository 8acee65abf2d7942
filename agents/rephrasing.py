"""A survey asked in other words than its own, as a configuration wants it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from auditor.agents.localization import question, stems
from auditor.config.rephrasing import Rephrasing
from auditor.domain import ENGLISH, Phrasing, Survey
from auditor.errors import ConfigError, did_you_mean


def rephrased(survey: Survey, words: Rephrasing, languages: Sequence[str]) -> Survey:
    """The survey in other words, which judges will not see either.

    Args:
        languages: all that the audit asks in: a mixture of old and new words would make a difference of languages one
            of wordings.

    Raises:
        ConfigError: something is reworded in some of the languages only, or a topic is not asked about.
    """
    if not (words.question or words.scale or words.topics):
        return survey
    _require_languages("question", words.question, languages)
    _require_languages("scale", words.scale, languages)
    for topic, wordings in words.topics.items():
        if topic not in survey.topics:
            hint = did_you_mean(topic, survey.topics, "Use the label that `auditor surveys show` gives it.")
            raise ConfigError(f"survey.rephrase.topics: the audit asks about no topic '{topic}'.", hint)
        _require_languages(f"topics.{topic}", wordings, languages)
    phrasings = {language: _phrasing(survey, words, language) for language in languages}
    english = phrasings.get(ENGLISH)
    return dataclasses.replace(
        survey,
        wording=english.wording if english else survey.wording,
        scale=english.scale if english else survey.scale,
        words={topic: (*given, *_giveaways(phrasings, topic)) for topic, given in survey.words.items()},
        phrasings=phrasings,
    )


def _phrasing(survey: Survey, words: Rephrasing, language: str) -> Phrasing:
    whole = words.question and words.scale
    own = None if whole else question(survey, language)
    return Phrasing(
        wording=own.wording if own and not words.question else words.question[language],
        scale=own.scale if own and not words.scale else words.scale[language],
        topics={topic: wordings[language] for topic, wordings in words.topics.items()},
    )


def _giveaways(phrasings: Mapping[str, Phrasing], topic: str) -> list[str]:
    wordings = [p.topics[topic] for p in phrasings.values() if topic in p.topics]
    return list(dict.fromkeys(word for wording in wordings for word in (wording, *stems(wording))))


def _require_languages(key: str, given: Mapping[str, object], languages: Sequence[str]) -> None:
    lacking = [language for language in languages if given and language not in given]
    if lacking:
        raise ConfigError(
            f"survey.rephrase.{key}: is reworded in {', '.join(given)}, but not in {', '.join(lacking)}, which the "
            "audit asks in too.",
            "Add a wording for each language, or ask in fewer.",
        )
