"""Questions in other languages and other wordings."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from auditor.config import AuditConfig, DirectProbe
from auditor.config.sections import Rephrasing, SurveySection, check_question_template
from auditor.domain import ENGLISH, Cell, Phrasing, Survey
from auditor.errors import ConfigError, did_you_mean
from auditor.input_files import read_toml
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.survey_translations import (
    SurveyQuestionWording,
    load_further_wordings,
    load_translations,
    translate_country,
)
from auditor.surveys.countries import country_code, native_languages
from auditor.surveys.description import DATA_FOLDER, read_description
from auditor.surveys.loader import builtin_surveys

MIN_STEMMED_WORD_LENGTH, MIN_WORD_LENGTH, MIN_WORD_LENGTH_IN_LONG_WORDING, MAX_WORDS_IN_SHORT_WORDING = 4, 5, 7, 2
"""Minimum lengths of words in a topic's wording that are masked; shorter words of a long wording reveal little."""


def language_of_sample(config: AuditConfig, country: str, sample: int) -> str:
    """Language of a sample, by its number; see `DirectProbe.split_sample`."""
    return config.languages_in(native_languages(country))[config.direct.split_sample(sample)[0]]


def samples_per_cell(config: AuditConfig, country: str) -> int:
    """Number of samples of a cell by one model, over all languages used for the country."""
    return config.samples_per_cell(native_languages(country))


def first_samples(config: AuditConfig, country: str) -> range:
    """Numbers of a cell's first sample in each language used for the country."""
    return config.first_samples(native_languages(country))


def wording_of_sample(config: AuditConfig, survey: Survey, sample: int) -> int:
    """Wording of a sample, by its number: the samples of a cell in a language take all wordings in turn; 0 is the
    survey's own."""
    return config.direct.split_sample(sample)[1] % survey.n_wordings


def question_prompt_fields(survey: Survey, cell: Cell, language: str, wording: int = 0) -> dict[str, str]:
    """Values for the placeholders of a direct prompt, in a language and wording."""
    country, topic = country_name(cell.country, language), topic_wording(survey, cell.topic, language)
    question = localized_question(survey, language, cell.topic)
    labels = {"never": question.scale[0], "always": question.scale[1]}  # of the scale's ends, -1 and +1
    names = {"topic": topic, "country": country}
    text = fill_placeholders(question.wording, names)
    if wording:
        text = fill_placeholders(survey.wordings[language][wording - 1], names | labels)
    return {"country": country, "question": text, **labels}


def localized_question(survey: Survey, language: str, topic: str | None = None) -> SurveyQuestionWording:
    """A survey's question in a language: the configured wording, the survey's own, or its built-in translation.

    Args:
        topic: the topic to ask about, which may have a question of its own; None for the question of the others.

    Raises:
        ConfigError: the survey's own wording has no translation.
    """
    if topic is not None and topic in survey.topic_questions:
        if language != ENGLISH:
            raise ConfigError(
                f"the topic '{topic}' of the survey '{survey.name}' has its own question, which is not translated into "
                f"'{language}'.",
                'Remove the topic, or set language = "en".',
            )
        return SurveyQuestionWording(
            wording=survey.topic_questions[topic].wording, scale=survey.topic_questions[topic].scale
        )
    if language in survey.phrasings:
        return SurveyQuestionWording(wording=survey.phrasings[language].wording, scale=survey.phrasings[language].scale)
    if language == ENGLISH:
        return SurveyQuestionWording(wording=survey.wording, scale=survey.scale)
    for name in builtin_surveys():
        built_in = read_description(DATA_FOLDER / f"{name}.csv")
        if (built_in.wording, built_in.scale) == (survey.wording, survey.scale):
            return load_translations(language).questions[name]
    raise ConfigError(
        f"the survey '{survey.name}' has its own wording or scale, but no translation into '{language}'.",
        'Add survey.rephrase.question and survey.rephrase.scale, use a built-in survey, or set language = "en".',
    )


def topic_wording(survey: Survey, topic: str, language: str) -> str:
    """A topic in a language: the configured wording, or the one from `translate_topic`."""
    phrasing = survey.phrasings.get(language)
    return (phrasing.topics.get(topic) if phrasing else None) or translate_topic(topic, language)


def translate_topic(topic: str, language: str) -> str:
    """Translate a topic, given by its English label, into a language.

    Raises:
        ConfigError: it has no translation.
    """
    if language == ENGLISH:
        return topic
    translation = load_translations(language).topics.get(topic)
    if translation is None:
        raise ConfigError(
            f"the topic '{topic}' has no wording in the language '{language}'.",
            f"Remove the topic or the language, or add a wording: survey.rephrase.topics.'{topic}'.{language} = \"…\".",
        )
    return translation


def country_name(country: str, language: str) -> str:
    """A country's name in a language; the survey's own spelling if unknown."""
    code = country_code(country)
    if language == ENGLISH or code is None:
        return country
    return translate_country(code, language) or country


def topic_stem_patterns(topic: str, language: str) -> tuple[str, ...]:
    """Terms that identify a topic in a language other than English: its wording, and its longer words as stems."""
    wording = load_translations(language).topics.get(topic) if language != ENGLISH else None
    return () if wording is None else (wording, *wording_stem_patterns(wording))


def wording_stem_patterns(wording: str) -> tuple[str, ...]:
    """Stem patterns (`word*`) for the longer words of a topic's wording, which match other endings."""
    words = re.findall(r"[^\W\d_]+", wording)
    min_length = MIN_WORD_LENGTH if len(words) <= MAX_WORDS_IN_SHORT_WORDING else MIN_WORD_LENGTH_IN_LONG_WORDING
    return tuple(_stem_pattern(word, 2) for word in words if len(word) >= min_length)


def _stem_pattern(word: str, n_dropped_letters: int) -> str:
    """Stem pattern of a word (`stem*`): the word without its last letters, or all of a short word."""
    return f"{word[:-n_dropped_letters] if len(word) > MIN_STEMMED_WORD_LENGTH else word}*"


def used_languages(config: AuditConfig, survey: Survey) -> list[str]:
    """All languages of an audit's questions, by ISO 639-1 code, in the order in which the countries need them."""
    languages_by_country = [config.languages_in(native_languages(country)) for country in survey.countries]
    return list(dict.fromkeys(language for languages in languages_by_country for language in languages))


def check_languages(config: AuditConfig, survey: Survey) -> None:
    """Check before the first call that all texts exist in every language of the audit.

    Raises:
        ConfigError: a template, a wording or a topic is missing; the message names it.
    """
    for language in used_languages(config, survey) if config.probes.direct else ():
        load_prompt(config.direct.prompt_name, language)
        localized_question(survey, language)
        for topic in survey.topics:
            localized_question(survey, language, topic)
            topic_wording(survey, topic, language)


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
            try:
                check_question_template(text, ("never", "always"))
            except ValueError as error:
                raise ConfigError(f"{path}: “{text}”: {error}.") from None
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
