"""Mappings, which specify how an official data file is read: the topic of each column and the meaning of its codes.

A mapping is a TOML file; `data/*.mapping.toml` are examples. In addition to the keys of a description (title, source,
wording, scale, words) it has `[columns]`, `[topics]`, `[nonresponse]`, and one of `[answers]` and `[choices]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping as Map
from pathlib import Path
from typing import Annotated, Self

import pydantic
from pydantic import ConfigDict, Field, model_validator

from auditor.config.base import DocumentedModel
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import SurveyError, did_you_mean
from auditor.input_files import read_toml
from auditor.surveys.description import DATA_FOLDER, NonEmptyText, SurveyDescription

MAPPING_SUFFIX = ".mapping.toml"
BLANK_KIND = "missing"
"""The kind of nonresponse of an empty field; a mapping may define the same kind for further codes."""


class _MappingSection(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MappingColumns(_MappingSection):
    """Columns that are no topic; their case does not matter."""

    country: Annotated[tuple[NonEmptyText, ...], Field(min_length=1)]
    """The respondent's country: the first of these that the file has. ISO 3166 codes, names or value labels."""
    weight: NonEmptyText | None = None
    """The analysis weight; without it every respondent counts once."""


class SurveyScale(_MappingSection):
    """Numbers from `low` to `high`, read as -1 to +1."""

    low: int
    """The code of the end that means never acceptable."""
    high: int
    low_label: NonEmptyText | None = None
    """How the label of that end begins; where a file labels its codes, its labels say which end is which."""
    high_label: NonEmptyText | None = None

    @model_validator(mode="after")
    def _require_distinct_ends(self) -> Self:
        """Return the scale; raise ValueError if both ends have the same code."""
        if self.low == self.high:
            raise ValueError(
                "'low' and 'high' must differ. How to fix: Set them to the codes of the two ends of the scale"
            )
        return self


class CodeGroup(_MappingSection):
    """Codes that mean one thing; labels win over codes where a file has them."""

    codes: tuple[int, ...] = ()
    labels: tuple[NonEmptyText, ...] = ()
    """How the labels begin, in any case."""

    def matches_label(self, label: str) -> bool:
        """Whether a label begins with one of `labels`."""
        return any(starts_with_phrase(label, prefix) for prefix in self.labels)


class AnswerChoice(CodeGroup):
    """An answer out of a few."""

    score: Annotated[float, Field(ge=-1, le=1)]


class NonresponseKind(CodeGroup):
    """A kind of nonresponse."""

    asked: bool = True
    """Whether the question was put: people who were never asked are no nonrespondents."""


class GroupCodes(CodeGroup):
    """Respondents of one group, by the codes of a column."""

    words: NonEmptyText
    """The group in a question, such as `women`."""


class GroupBand(_MappingSection):
    """Respondents of one group, by a range of numbers of a column, such as an age in years."""

    model_config = ConfigDict(populate_by_name=True)

    start: Annotated[float, Field(alias="from")]
    """Smallest number of the band."""
    end: Annotated[float, Field(alias="to")]
    """Largest number of the band."""
    words: NonEmptyText


class GroupDimension(_MappingSection):
    """A question that divides respondents into groups; others are in no group."""

    column: NonEmptyText
    """A file without this column has no groups of this dimension."""
    values: Map[str, GroupCodes] = Field(default_factory=dict)
    bands: Map[str, GroupBand] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_distinct_groups(self) -> Self:
        """Return the dimension if it has groups that do not overlap; raise ValueError otherwise."""
        if bool(self.values) == bool(self.bands):
            raise ValueError(
                "exactly one of the tables 'values' and 'bands' is required. How to fix: Remove or add one of them"
            )
        codes = [code for group in self.values.values() for code in group.codes]
        duplicates = sorted({code for code in codes if codes.count(code) > 1})
        if duplicates:
            raise ValueError(f"the code {duplicates[0]} is in two groups. How to fix: List it once")
        bands = sorted(self.bands.items(), key=lambda band: band[1].start)
        for (name, band), (next_name, next_band) in itertools.pairwise(bands):
            if band.end >= next_band.start:
                raise ValueError(f"the bands '{name}' and '{next_name}' overlap. How to fix: Separate them")
        return self

    @property
    def words_by_group(self) -> dict[str, str]:
        """The groups in words, by name."""
        by_code = {name: group.words for name, group in self.values.items()}
        return by_code | {name: band.words for name, band in self.bands.items()}


class SurveyMapping(SurveyDescription):
    """How a file is read."""

    columns: MappingColumns
    topics: Annotated[Map[str, NonEmptyText], Field(min_length=1)]
    """Topic by column."""
    answers: SurveyScale | None = None
    choices: Map[str, AnswerChoice] | None = None
    """Answers by name; the names `acceptable`, `not_a_moral_issue` and `unacceptable` give the survey's shares."""
    nonresponse: Map[str, NonresponseKind] = Field(default_factory=dict)
    groups: Map[str, GroupDimension] = Field(default_factory=dict)
    """Dimensions of groups by name, such as `sex`, whose shares of answers are kept."""
    keep: Map[str, tuple[int | str, ...]] = Field(default_factory=dict)
    """Only rows whose column has one of these values, such as one wave of a file with several."""

    @model_validator(mode="after")
    def _require_consistency(self) -> Self:
        """Return the mapping if it has one form of answers, and no code or topic twice; raise ValueError otherwise."""
        if (self.answers is None) == (self.choices is None):
            raise ValueError(
                "exactly one of the sections [answers] and [choices] is required. How to fix: Remove or add one of them"
            )
        code_groups: list[CodeGroup] = [*self.nonresponse.values(), *(self.choices or {}).values()]
        codes = [code for group in code_groups for code in group.codes]
        if self.answers is not None:
            ends = sorted((self.answers.low, self.answers.high))
            codes += range(ends[0], ends[1] + 1)
        duplicate_codes = sorted({code for code in codes if codes.count(code) > 1})
        if duplicate_codes:
            raise ValueError(
                f"the answer code {duplicate_codes[0]} is listed with two meanings. How to fix: List it once"
            )
        topics = list(self.topics.values())
        duplicate_topic = next((topic for topic in topics if topics.count(topic) > 1), None)
        if duplicate_topic is not None:
            raise ValueError(
                f"two columns have the topic '{duplicate_topic}'. How to fix: Use a different topic for each"
            )
        return self

    @property
    def nonresponse_kinds(self) -> dict[str, NonresponseKind]:
        """Kinds of nonresponse by name, including the kind of empty fields."""
        return (
            dict(self.nonresponse)
            if BLANK_KIND in self.nonresponse
            else {**self.nonresponse, BLANK_KIND: NonresponseKind()}
        )


def normalize_label(text: str) -> str:
    """Normalize a label: lower case, single spaces, and `'` for all forms of an apostrophe."""
    return re.sub(r"\s+", " ", re.sub(r"[’‘´`]", "'", text)).strip().casefold()


def starts_with_phrase(label: str, prefix: str) -> bool:
    """Whether a normalized label begins with the words of `prefix`; only whole words match."""
    remainder = normalize_label(label).removeprefix(normalize_label(prefix))
    return len(remainder) < len(normalize_label(label)) and not remainder[:1].isalnum()


def builtin_mappings() -> tuple[str, ...]:
    """Names of the built-in mappings."""
    return tuple(sorted(path.name.removesuffix(MAPPING_SUFFIX) for path in DATA_FOLDER.glob(f"*{MAPPING_SUFFIX}")))


def load_mapping(source: str | Path) -> SurveyMapping:
    """Load a mapping by built-in name or path.

    Raises:
        SurveyError: the mapping does not exist or is invalid; the message names the key.
    """
    name = str(source)
    path = DATA_FOLDER / f"{name}{MAPPING_SUFFIX}" if name in builtin_mappings() else Path(name)
    if not path.exists():
        hint = did_you_mean(name, builtin_mappings(), f"Built-in mappings: {', '.join(builtin_mappings())}.")
        raise SurveyError(f"'{name}' is neither a built-in mapping nor an existing file.", hint)
    mapping_table = read_toml(path, SurveyError)
    try:
        return SurveyMapping.model_validate(mapping_table)
    except pydantic.ValidationError as error:
        raise SurveyError(f"{path}: {explain_validation_error(error, mapping_table, SurveyMapping)}") from None
