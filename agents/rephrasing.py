"""Replacing a survey's wording by the one in the configuration, and asking in several wordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from auditor.agents.localization import localized_question, wording_stem_patterns
from auditor.config import DirectProbe
from auditor.config.rephrasing import Rephrasing
from auditor.config.sections import SurveySection
from auditor.domain import ENGLISH, Phrasing, Survey
from auditor.errors import ConfigError, did_you_mean
from auditor.input_files import read_toml
from auditor.prompts.survey_translations import load_further_wordings


def apply_rephrasing(survey: Survey, rephrasing: Rephrasing, languages: Sequence[str]) -> Survey:
    """Return a survey with the configured wording, which is also added to the terms masked before judges.

    Args:
        languages: all languages of the audit. Each needs the new wording; otherwise differences between languages
            would be confounded with differences between wordings.

    Raises:
        ConfigError: a wording exists in some of the languages only, or for a topic that the audit does not ask about.
    """
    if not (rephrasing.question or rephrasing.scale or rephrasing.topics):
        return survey
    if survey.topic_questions and (rephrasing.question or rephrasing.scale):
        topics = ", ".join(f"'{topic}'" for topic in survey.topic_questions)
        raise ConfigError(
            f"survey.rephrase: the survey '{survey.name}' has topics with questions of their own: {topics}.",
            "Reword topics (survey.rephrase.topics), or select topics with one question.",
        )
    _require_languages("question", rephrasing.question, languages)
    _require_languages("scale", rephrasing.scale, languages)
    for topic, wordings in rephrasing.topics.items():
        if topic not in survey.topics:
            hint = did_you_mean(topic, survey.topics, "Spell the topic as `auditor surveys show` lists it.")
            raise ConfigError(f"survey.rephrase.topics: the topic '{topic}' is not part of the audit.", hint)
        _require_languages(f"topics.{topic}", wordings, languages)
    phrasings = {language: _build_phrasing(survey, rephrasing, language) for language in languages}
    english = phrasings.get(ENGLISH)
    return dataclasses.replace(
        survey,
        wording=english.wording if english else survey.wording,
        scale=english.scale if english else survey.scale,
        words={topic: (*terms, *_identifying_wordings(phrasings, topic)) for topic, terms in survey.words.items()},
        phrasings=phrasings,
    )


def add_wordings(survey: Survey, section: SurveySection, probe: DirectProbe | None, languages: Sequence[str]) -> Survey:
    """Return a survey with the configured further wordings of its question.

    Args:
        probe: the direct probe, whose samples take the wordings in turn.
        languages: all languages of the audit, each of which needs the same number of wordings.

    Raises:
        ConfigError: a language has no wordings, or another number of them; a topic has a question of its own; or the
            samples cannot take all wordings equally often.
        ImportFileError: the file of wordings cannot be read.
    """
    if section.wordings == 1:
        return survey
    if isinstance(section.wordings, str):
        wordings = _read_wordings(Path(section.wordings), languages)
    else:
        n_further = section.wordings - 1
        wordings = {language: load_further_wordings(language).questions[:n_further] for language in languages}
    worded = dataclasses.replace(survey, wordings=wordings)
    if survey.topic_questions:
        topics = ", ".join(f"'{topic}'" for topic in survey.topic_questions)
        raise ConfigError(
            f"survey.wordings: the survey '{survey.name}' has topics with questions of their own: {topics}.",
            "Remove survey.wordings, or select topics with one question.",
        )
    if probe is not None and (probe.samples % worded.n_wordings or probe.is_open_ended):
        raise ConfigError(
            f"survey.wordings: each cell must be asked equally often in all {worded.n_wordings} wordings, but "
            f"probes.direct takes {probe.samples} samples{', and may stop early' if probe.is_open_ended else ''}.",
            f"Set samples to a multiple of {worded.n_wordings}, without tolerance and target_width.",
        )
    return worded


def _read_wordings(path: Path, languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read a file of further questions by language, and check their placeholders."""
    tables = read_toml(path, ConfigError)
    for language in languages:
        questions = tables.get(language)
        if not isinstance(questions, list) or not questions or not all(isinstance(text, str) for text in questions):
            raise ConfigError(
                f"{path}: there is no list of questions for the language '{language}'.", f'Add {language} = ["…"].'
            )
        for text in questions:
            if missing := [name for name in ("{topic}", "{country}") if name not in text]:
                raise ConfigError(
                    f"{path}: “{text}” lacks {missing[0]}.", "Use {topic} and {country} in each question."
                )
    if len({len(tables[language]) for language in languages}) > 1:
        raise ConfigError(f"{path}: languages have different numbers of questions.", "Give each language equally many.")
    return {language: tuple(tables[language]) for language in languages}


def _build_phrasing(survey: Survey, rephrasing: Rephrasing, language: str) -> Phrasing:
    """Build the configured wording in one language; a question or scale that is not configured is the survey's own."""
    rewords_question_and_scale = rephrasing.question and rephrasing.scale
    current_question = None if rewords_question_and_scale else localized_question(survey, language)
    return Phrasing(
        wording=current_question.wording
        if current_question and not rephrasing.question
        else rephrasing.question[language],
        scale=current_question.scale if current_question and not rephrasing.scale else rephrasing.scale[language],
        topics={topic: wordings[language] for topic, wordings in rephrasing.topics.items()},
    )


def _identifying_wordings(phrasings: Mapping[str, Phrasing], topic: str) -> list[str]:
    """Configured wordings of a topic in all languages, with their stem patterns."""
    wordings = [phrasing.topics[topic] for phrasing in phrasings.values() if topic in phrasing.topics]
    return list(dict.fromkeys(term for wording in wordings for term in (wording, *wording_stem_patterns(wording))))


def _require_languages(key: str, wording_by_language: Mapping[str, object], languages: Sequence[str]) -> None:
    """Raise a ConfigError if a configured wording is missing in one of the languages; fine if there is none at all.

    Args:
        key: key of the wording under `survey.rephrase`, for the error message.
    """
    missing_languages = [
        language for language in languages if wording_by_language and language not in wording_by_language
    ]
    if missing_languages:
        raise ConfigError(
            f"survey.rephrase.{key}: is reworded in {', '.join(wording_by_language)}, but not in "
            f"{', '.join(missing_languages)}, which the audit also uses.",
            "Add a wording for each language, or remove a language from the key 'language'.",
        )
