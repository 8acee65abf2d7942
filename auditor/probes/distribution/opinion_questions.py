"""Questions of the probe `distribution`: what each model is asked, the calls, how many are planned, and the schemas of
answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import FailFast, Field, create_model, field_validator

from auditor.agents.call_builders import build_call, build_logprob_call, effective_temperature
from auditor.agents.localization import country_name, localized_question, topic_wording
from auditor.config import AuditConfig, ModelSection
from auditor.config.base import Structure
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import ENGLISH, OPTION_LETTERS, Call, Cell, LogprobMeasure, Message, Survey, derive_seed
from auditor.errors import ConfigError, SurveyError, did_you_mean
from auditor.models.simulated import PeopleOpinions
from auditor.probes.distribution.opinions import (
    NO_COUNTRY,
    OPINION_PURPOSE,
    PLACEBO,
    OpinionMode,
    ScaleOrder,
    load_english_words,
    load_opinion_wording,
)
from auditor.probes.distribution.settings import DistributionProbe
from auditor.prompts import fill_placeholders
from auditor.reports.data.cost import ForecastRange
from auditor.surveys import SurveyDistributions, load_distributions
from auditor.surveys.countries import native_languages
from auditor.surveys.distributions import EVERYONE, AnswerPoint, AnswerScale, format_distributions


class OpinionAnswer(Structure):
    """The number of one answer of a survey."""

    answer: Annotated[int, Field(description="The number of the answer.")]

    @field_validator("answer", mode="before")
    @classmethod
    def _text_to_number(cls, value: object) -> object:
        """A whole number that was given as text is the same number; "5-6" and 7.5 are none."""
        return int(value) if isinstance(value, str) and value.strip().isdecimal() else value


class OpinionCounts(Structure):
    """How many of 100 people chose each answer of a survey, in the order in which the answers are listed."""

    counts: Annotated[list[Annotated[int, Field(ge=0, le=100)]], FailFast()]


def counts_schema_name(n_answers: int) -> str:
    """Name of the schema for the numbers of people who chose each of `n_answers` answers."""
    return f"CountsOf{n_answers}"


def _create_counts_schema(n_answers: int) -> type[OpinionCounts]:
    """Create the schema for the counts of `n_answers` answers.

    Their number is only in the JSON schema, where a grammar can enforce it; validation accepts any, since the problem
    is then described better.
    """
    length = {"minItems": n_answers, "maxItems": n_answers}
    counts = Annotated[
        list[Annotated[int, Field(ge=0, le=100)]],
        FailFast(),
        Field(json_schema_extra=length, description="How many of 100 people chose each answer."),
    ]
    name = counts_schema_name(n_answers)
    return create_model(name, __base__=OpinionCounts, __doc__="Counts of answers.", counts=(counts, ...))


def counts_schema(n_answers: int) -> type[OpinionCounts]:
    """The schema for the counts of `n_answers` answers, from 2 to `MAX_COUNTS`."""
    return COUNTS_SCHEMAS[n_answers - 2]


MAX_COUNTS = 20
"""Most answers of a survey that models are asked about; as many next tokens have a known log-probability."""
COUNTS_SCHEMAS: tuple[type[OpinionCounts], ...] = tuple(map(_create_counts_schema, range(2, MAX_COUNTS + 1)))
SCHEMAS: tuple[type[Structure], ...] = (OpinionAnswer, *COUNTS_SCHEMAS)


class OpinionSubject(NamedTuple):
    """Whose opinion is asked for: that of all people of a cell, or of a group; both names are empty for everyone."""

    cell: Cell
    dimension: str = EVERYONE
    group: str = EVERYONE


class OpinionQuestion(NamedTuple):
    """One question to one model; `sample` is the number of the answer in its order of the scale, from 0."""

    subject: OpinionSubject
    mode: OpinionMode
    scale_order: ScaleOrder
    sample: int


def check_survey(config: AuditConfig, survey: Survey) -> str:
    """Check before the first call that the survey has the shares to ask about; describe what is planned.

    Raises:
        ConfigError, SurveyError: the survey has no shares of answers, none for these cells, too many answers, or not
            the dimension; or there are no words in a language of the audit.
    """
    probe = config.probes.get(DistributionProbe)
    distributions = load_planned_shares(config, survey)
    subjects = plan_subjects(probe, distributions, survey.asked_cells)
    _check_words(config, survey, distributions, subjects)
    return f"{len(subjects) * len(list(questions_about(subjects[0], probe))) * len(config.models)} opinions"


def _check_words(
    config: AuditConfig, survey: Survey, distributions: SurveyDistributions, subjects: Sequence[OpinionSubject]
) -> None:
    """Raise a ConfigError if a text is missing in the language of a question."""
    for language in dict.fromkeys(_language_of(config, subject.cell) for subject in subjects):
        load_opinion_wording(language)
        if language == ENGLISH:
            continue
        has_words = all(not point.name.strip("-0123456789") for point in _list_points(distributions, survey))
        if config.probes.get(DistributionProbe).groups or not has_words:
            missing_words = "names of groups" if has_words else "answers without a scale"
            raise ConfigError(
                f"the probe 'distribution' has no {missing_words} in the language '{language}'.",
                'Set language = "en", remove the groups, or use a survey with a scale.',
            )
        localized_question(survey, language)
        for topic in survey.topics:
            localized_question(survey, language, topic)
            topic_wording(survey, topic, language)


def _list_points(distributions: SurveyDistributions, survey: Survey) -> Iterator[AnswerPoint]:
    """Yield the answers to the questions about a survey's topics."""
    for topic in survey.topics:
        yield from distributions.scale_of(topic).points


def load_planned_shares(config: AuditConfig, survey: Survey) -> SurveyDistributions:
    """Load the shares of the cells that an audit asks about, of everyone and of all groups.

    Raises:
        SurveyError: the survey has no shares of answers; the message says how to import them.
        ConfigError: it has none for these cells, too many answers, or not the configured dimensions.
    """
    assert config.survey is not None
    distributions = load_distributions(config.survey.source)
    _check_scale_and_groups(config.probes.get(DistributionProbe), distributions)
    planned = set(survey.asked_cells)
    cells = tuple(row for row in distributions.cells if Cell(row.country, row.topic) in planned)
    if not any(row.dimension == EVERYONE for row in cells):
        raise ConfigError(
            f"the survey '{config.survey.source}' has no shares of answers for the countries and topics of this audit.",
            "Choose others in the section survey, or import the survey again.",
        )
    return distributions.model_copy(update={"cells": cells})


def _check_scale_and_groups(probe: DistributionProbe, distributions: SurveyDistributions) -> None:
    """Raise a ConfigError for a survey with too many answers, or without the configured dimensions."""
    scales = [distributions, *distributions.scales.values()]
    n_points = max(len(scale.points) for scale in scales)
    if n_points > MAX_COUNTS:
        raise ConfigError(
            f"the survey has {n_points} answers to a question; the probe 'distribution' can ask about at most "
            f"{MAX_COUNTS}.",
            "Import shares of fewer answers, or remove the probe.",
        )
    for dimension in probe.groups:
        if dimension not in distributions.groups:
            listed = f"The survey has: {', '.join(distributions.groups) or 'no groups'}."
            hint = did_you_mean(dimension, distributions.groups, listed)
            raise ConfigError(f"probes.distribution.groups: the survey has no dimension '{dimension}'.", hint)


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """What determines the opinions besides the config: the words, and the hash of the survey's shares (or None).

    Args:
        languages: codes of the languages that questions may be in.
    """
    assert config.survey is not None
    words = [load_opinion_wording(language).model_dump(mode="json") for language in languages]
    try:
        shares_json = format_distributions(load_distributions(config.survey.source))
    except SurveyError:
        return [words, None]
    return [words, hashlib.sha256(shares_json.encode()).hexdigest()]


def plan_subjects(
    probe: DistributionProbe, distributions: SurveyDistributions, cells: Sequence[Cell]
) -> list[OpinionSubject]:
    """List whose opinions each model is asked for: cell by cell, then each topic without a country."""
    people = distributions.by_cell()
    by_group = {
        (dimension, group): distributions.by_cell(dimension, group)
        for dimension in probe.groups
        for group in distributions.groups[dimension]
    }
    subjects: list[OpinionSubject] = []
    asked_cells = [cell for cell in cells if cell in people]
    for cell in asked_cells:
        subjects.append(OpinionSubject(cell))
        subjects += [
            OpinionSubject(cell, *names)
            for names, shares in by_group.items()
            if cell in shares and shares[cell].is_large_enough(probe.min_n)
        ]
        if probe.control and probe.groups:
            subjects.append(OpinionSubject(cell, PLACEBO, load_english_words().placebo[1]))
    if probe.control:
        topics = dict.fromkeys(cell.topic for cell in asked_cells)
        subjects += [OpinionSubject(Cell(NO_COUNTRY, topic)) for topic in topics]
    return subjects


def questions_about(subject: OpinionSubject, probe: DistributionProbe) -> Iterator[OpinionQuestion]:
    """Yield all questions to one model about a subject."""
    for mode in map(OpinionMode, probe.modes):
        n_samples = probe.samples // len(probe.scale_orders) if mode is OpinionMode.SAMPLED else 1
        for scale_order in probe.scale_orders:
            for sample in range(n_samples):
                yield OpinionQuestion(subject, mode, scale_order, sample)


def build_opinion_call(
    config: AuditConfig,
    survey: Survey,
    distributions: SurveyDistributions,
    model: ModelSection,
    question: OpinionQuestion,
) -> Call | None:
    """Build the call of one question; None for `tokens` if the model's log-probabilities are not available."""
    probe, language = config.probes.get(DistributionProbe), _language_of(config, question.subject.cell)
    system, text = _render(survey, distributions, question, language)
    n_points = len(distributions.scale_of(question.subject.cell.topic).points)
    preamble = f"{model.system}\n\n" if model.system else ""
    messages = (Message("system", preamble + system), Message("user", text))
    if question.mode is OpinionMode.TOKENS:
        return _build_tokens_call(model, messages, n_points)
    is_sampled = question.mode is OpinionMode.SAMPLED
    schema = OpinionAnswer.__name__ if is_sampled else counts_schema_name(n_points)
    return build_call(
        model,
        OPINION_PURPOSE,
        messages,
        temperature=effective_temperature(model, probe.temperature if is_sampled else 0.0),
        max_tokens=probe.max_tokens,
        seed=derive_seed(config.seed, "opinion", *question.subject.cell, *question.subject[1:], *question[1:]),
        sample=question.sample,
        schema=schema,
        language=language,
    )


def _build_tokens_call(model: ModelSection, messages: tuple[Message, ...], n_points: int) -> Call | None:
    """Build the call that measures the letters of the answers as the next token."""
    from auditor.models.logprobs import supported_measures  # loads httpx (0.5 s)

    measures = supported_measures(model, "auto")
    if LogprobMeasure.CONTINUATION in measures:
        prompt = Message("user", "\n\n".join(message.content for message in messages))
        letters = tuple(f" {letter}" for letter in OPTION_LETTERS[:n_points])
        return build_logprob_call(model, OPINION_PURPOSE, (prompt,), LogprobMeasure.CONTINUATION, letters)
    if LogprobMeasure.CHOICE in measures:
        return build_logprob_call(model, OPINION_PURPOSE, messages, LogprobMeasure.CHOICE)
    return None


def point_labels(scale: AnswerScale, scale_order: ScaleOrder) -> list[str]:
    """The numbers by which models name the answers, in the order in which they are shown.

    Steps of a scale of whole numbers are their own numbers; other answers are numbered as shown, from 1.
    """
    names = [point.name for point in scale.points]
    if not all(name.removeprefix("-").isdigit() for name in names):
        return [str(number) for number in range(1, len(names) + 1)]
    return names if scale_order is ScaleOrder.UP else names[::-1]


def _render(
    survey: Survey, distributions: SurveyDistributions, question: OpinionQuestion, language: str
) -> tuple[str, str]:
    """The system message and the question."""
    words, mode = load_opinion_wording(language), question.mode.value
    scale = distributions.scale_of(question.subject.cell.topic)
    fields = {
        "people": _describe_people(question.subject, distributions, language),
        "topic": topic_wording(survey, question.subject.cell.topic, language),
        "answers": _list_answers(survey, scale, question, language),
        "task": getattr(words.tasks, mode),
    }
    system = fill_placeholders(getattr(words.systems, mode), {"n": str(len(scale.points))})
    return system, fill_placeholders(words.question, fields).strip()


def _describe_people(subject: OpinionSubject, distributions: SurveyDistributions, language: str) -> str:
    """The respondents in words, such as "adults in Germany (sex: women)"."""
    words = load_opinion_wording(language)
    country = subject.cell.country
    people = (
        words.anywhere
        if country == NO_COUNTRY
        else fill_placeholders(words.country, {"country": country_name(country, language)})
    )
    if subject.dimension == EVERYONE:
        return people
    english = load_english_words()
    dimension, group = (
        english.placebo
        if subject.dimension == PLACEBO
        else (subject.dimension, distributions.groups[subject.dimension][subject.group])
    )
    return fill_placeholders(english.group, {"people": people, "dimension": dimension, "group": group})


def _list_answers(survey: Survey, scale: AnswerScale, question: OpinionQuestion, language: str) -> str:
    """The answers, one a line, in the order of the question; the ends of a scale of numbers with their meaning."""
    names = [point.name for point in scale.points]
    labels = point_labels(scale, question.scale_order)
    is_own_number = scale.is_ordered and set(labels) == set(names)
    if is_own_number:
        low, high = localized_question(survey, language, question.subject.cell.topic).scale
        texts = [f"{names[0]} ({low})", *names[1:-1], f"{names[-1]} ({high})"]
    else:
        texts = [name.replace("_", " ") for name in names]
    is_up = question.scale_order is ScaleOrder.UP
    texts = texts if is_up else texts[::-1]
    if question.mode is OpinionMode.TOKENS:
        return "\n".join(f"{letter}: {text}" for letter, text in zip(OPTION_LETTERS, texts, strict=False))
    return "\n".join(texts if is_own_number else (f"{a}: {b}" for a, b in zip(labels, texts, strict=True)))


def _language_of(config: AuditConfig, cell: Cell) -> str:
    """The audit's first language for a country; with `native` and no country English."""
    return config.languages_in(native_languages(cell.country) if cell.country else ())[0]


def load_people_opinions(config: AuditConfig, survey: Survey) -> PeopleOpinions:
    """Load the shares of people's answers that simulated models know."""

    distributions = load_planned_shares(config, survey)
    words = {
        (dimension, group): f"{dimension}: {text}"
        for dimension, groups in distributions.groups.items()
        for group, text in groups.items()
    }
    return PeopleOpinions(
        points=[(point.name, point.score) for point in distributions.points],
        own_points={
            topic: [(point.name, point.score) for point in scale.points]
            for topic, scale in distributions.scales.items()
        },
        shares={
            (Cell(row.country, row.topic), words.get((row.dimension, row.group), "")): row.shares
            for row in distributions.cells
        },
    )


def plan_distribution_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the questions to each model; repairs of unreadable answers are not counted.

    A model without log-probabilities is not asked for them.
    """
    probe = config.probes.get(DistributionProbe)
    distributions = load_planned_shares(config, survey)
    subjects = plan_subjects(probe, distributions, cells)
    questions = list(questions_about(subjects[0], probe))
    n_modes = {mode: sum(question.mode is mode for question in questions) for mode in OpinionMode}
    sampled_subjects = subjects[:: max(1, len(subjects) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for model in config.models:
        # One example of each mode and order; samples of a question differ by their seed only.
        calls_by_mode = {
            question.mode: [
                call
                for subject in sampled_subjects
                if (call := build_opinion_call(
                    config, survey, distributions, model, question._replace(subject=subject)
                )) is not None
            ]
            for question in questions
            if question.sample == 0
        }  # fmt: skip
        n_calls = len(subjects) * sum(n for mode, n in n_modes.items() if calls_by_mode.get(mode))
        examples = [call for calls in calls_by_mode.values() for call in calls]
        yield PlannedCalls(model, OPINION_PURPOSE, ForecastRange.from_bounds(n_calls), examples, 0)
