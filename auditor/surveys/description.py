"""Description of a survey: title, source, wording, scale, and the words by which a text reveals a topic.

It is stored in a TOML file next to the data file: `my.survey.toml` for `my.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, field_validator

from auditor.config.base import DocumentedModel
from auditor.config.sections import QuestionTemplate
from auditor.config.validation_messages import explain_validation_error
from auditor.config.value_checks import check_scale_ends
from auditor.domain import TopicQuestion
from auditor.errors import SurveyError
from auditor.input_files import read_toml

DATA_FOLDER = Path(__file__).parent / "data"
DESCRIPTION_SUFFIX = ".survey.toml"
_STOP_WORDS = re.compile(
    "(?i:a|an|and|are|as|at|be|being|between|by|do|does|for|from|getting|has|have|having|her|his|in|is|it|its|man|no|not"
    "|of|on|one|or|other|others|people|person|someone|that|the|their|there|they|this|to|using|which|with|without|woman"
    "|you|your)"
)

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ScaleEnds = Annotated[tuple[NonEmptyText, NonEmptyText], AfterValidator(check_scale_ends)]
"""The meaning of -1 and of +1, in words."""


class QuestionDescription(DocumentedModel):
    """How one topic was put to people, where that differs from the other topics."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wording: QuestionTemplate | None = None
    """The question, with the placeholders `{topic}` and `{country}`; that of the survey if absent."""
    scale: ScaleEnds | None = None
    """The meaning of -1 and of +1, in words; that of the survey if absent."""


class SurveyDescription(DocumentedModel):
    """How the question was put to people, and where the figures come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: NonEmptyText
    source: NonEmptyText
    """Who published the figures, as a citation."""
    wording: QuestionTemplate = (
        "Think of what most people in {country} would say of this: {topic}. "
        "Is it always acceptable, never acceptable, or something in between?"
    )
    """What a model is asked about a topic, with the placeholders `{topic}` and `{country}`."""
    scale: ScaleEnds = ("never acceptable", "always acceptable")
    """The meaning of -1 and of +1, in words."""
    questions: Mapping[str, QuestionDescription] = Field(default_factory=dict)
    """Topics with a wording or scale of their own."""
    words: Mapping[str, tuple[NonEmptyText, ...]] = Field(default_factory=dict)
    """For each topic the words that give it away in a text."""
    topic_families: Mapping[str, tuple[NonEmptyText, ...]] = Field(default_factory=dict)
    """Topics that are about one thing, by the name of their family; each topic is in at most one."""

    @field_validator("topic_families")
    @classmethod
    def _require_one_family_per_topic(
        cls, topic_families: Mapping[str, tuple[str, ...]]
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the families; raise ValueError for a topic that is listed twice."""
        topics = [topic for members in topic_families.values() for topic in members]
        duplicate = next((topic for topic in topics if topics.count(topic) > 1), None)
        if duplicate is not None:
            raise ValueError(f"the topic '{duplicate}' is listed twice. How to fix: Remove one of them")
        return topic_families


def make_questions(
    description: SurveyDescription, topic_questions: Mapping[str, QuestionDescription]
) -> dict[str, TopicQuestion]:
    """Return the questions of topics with a wording or scale of their own, completed by the survey's."""
    return {
        topic: TopicQuestion(question.wording or description.wording, question.scale or description.scale)
        for topic, question in topic_questions.items()
        if question.wording or question.scale
    }


def read_description(data_file: Path) -> SurveyDescription:
    """Read the description next to a data file; without one, the file's name becomes title and source.

    Raises:
        SurveyError: the description is invalid; the message names the key.
    """
    path = data_file.with_name(data_file.stem + DESCRIPTION_SUFFIX)
    if not path.exists():
        return SurveyDescription(title=data_file.stem, source=data_file.name)
    description_table = read_toml(path, SurveyError)
    try:
        return SurveyDescription.model_validate(description_table)
    except pydantic.ValidationError as error:
        raise SurveyError(f"{path}: {explain_validation_error(error, description_table, SurveyDescription)}") from None


def topic_words(topic: str, description: SurveyDescription) -> tuple[str, ...]:
    """Return the words by which a text reveals a topic.

    They come from the survey's description, else from a built-in survey with the same topic, else from the topic's
    name without stop words.
    """
    if topic in description.words:
        return description.words[topic]
    words_in_name = [topic, *(word for word in re.findall(r"\w[\w'-]+", topic) if not _STOP_WORDS.fullmatch(word))]
    return _load_builtin_topic_words().get(topic.casefold(), tuple(dict.fromkeys(words_in_name)))


def find_topic_families(topics: Collection[str], description: SurveyDescription) -> dict[str, tuple[str, ...]]:
    """Return the families of some topics: from the survey's description, else from built-in surveys that have them.

    Families without any of the topics are left out.
    """
    topic_by_key = {topic.casefold(): topic for topic in topics}
    families: dict[str, list[str]] = {}
    for source in [description] if description.topic_families else _load_builtin_descriptions():
        for family, members in source.topic_families.items():
            # pop: each topic has the first family that lists it.
            families.setdefault(family, []).extend(
                topic_by_key.pop(member.casefold()) for member in members if member.casefold() in topic_by_key
            )
    return {family: tuple(members) for family, members in families.items() if members}


@cache
def _load_builtin_topic_words() -> dict[str, tuple[str, ...]]:
    """Words of all built-in surveys by case-folded topic."""
    return {
        topic.casefold(): words
        for description in _load_builtin_descriptions()
        for topic, words in description.words.items()
    }


@cache
def _load_builtin_descriptions() -> tuple[SurveyDescription, ...]:
    """Descriptions of the built-in surveys."""
    return tuple(
        read_description(path)
        for path in sorted(DATA_FOLDER.glob("*.csv"))
        if path.with_name(path.stem + DESCRIPTION_SUFFIX).exists()
    )
