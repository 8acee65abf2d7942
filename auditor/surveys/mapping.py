"""Mappings, which specify how an official data file is read: the topic of each column and the meaning of its codes.

A mapping is a TOML file; `data/*.mapping.toml` are examples. In addition to the keys of a description (title, source,
wording, scale, words) it has `[columns]`, `[topics]`, `[nonresponse]`, and one of `[answers]` and `[choices]`.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping as Map
from functools import cached_property
from pathlib import Path
from typing import Annotated, Generic, Literal, Self, TypeVar

import pydantic
from pydantic import ConfigDict, Field, field_validator, model_validator

from auditor.config.base import DocumentedModel
from auditor.config.sections import QuestionTemplate
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import SurveyError, did_you_mean
from auditor.input_files import read_toml
from auditor.surveys.countries import CountryCodes
from auditor.surveys.description import DATA_FOLDER, NonEmptyText, QuestionDescription, ScaleEnds, SurveyDescription
from auditor.text_safety import fold_name

MAPPING_SUFFIX = ".mapping.toml"
LabelMatch = Literal["exact", "beginning"]
Meaning = TypeVar("Meaning")
AnyCodeGroup = TypeVar("AnyCodeGroup", bound="CodeGroup")
CountryEntry = NonEmptyText | tuple[str | int, ...]
MISSING_COUNTRIES = "missing"
"""The key of `countries` that lists values that mean no country."""
BLANK_KIND = "missing"
"""The kind of nonresponse of an empty field; a mapping may define the same kind for further codes."""


class _MappingSection(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MappingColumns(_MappingSection):
    """Columns that are no topic; their case does not matter."""

    country: tuple[NonEmptyText, ...] = ()
    """The respondent's country: the first of these that the file has. ISO 3166 codes, names or value labels."""
    weight: NonEmptyText | None = None
    """The analysis weight, on any scale; without it every respondent counts once."""
    strata: NonEmptyText | None = None
    """The stratum of the sample that the respondent is from, within their country, for standard errors."""
    psu: NonEmptyText | None = None
    """The primary sampling unit that the respondent is from, such as a place, for standard errors."""
    wave: NonEmptyText | None = None
    """The wave of the survey; without it a column with a usual name, such as `essround`, if the file has one."""
    ballot: NonEmptyText | None = None
    """The questionnaire that the respondent was given; without it the column `ballot`, if the file has it."""


class CodeGroup(_MappingSection):
    """Codes that mean one thing; labels win over codes where a file has them."""

    codes: tuple[int, ...] = ()
    labels: tuple[NonEmptyText, ...] = ()
    """Labels, compared without regard to case, white space, Unicode form and kind of apostrophe."""
    match: LabelMatch = "exact"
    """Whether a label of the file must equal one of `labels`, or only begin with it."""

    @property
    def sort_key(self) -> tuple[int, int]:
        """A key that sorts groups by their code nearest to 0; groups without codes come last."""
        code = min(self.codes, key=abs, default=None)
        return (1, 0) if code is None else (0, abs(code))


class SurveyScale(_MappingSection):
    """Numbers from `low` to `high`, read as -1 to +1."""

    low: int
    """The code of the end that means never acceptable."""
    high: int
    low_label: NonEmptyText | None = None
    """The label of that end; where a file labels its codes, its labels say which end is which."""
    high_label: NonEmptyText | None = None
    match: LabelMatch = "exact"
    """Whether a label of the file must equal `low_label` or `high_label`, or only begin with it."""

    @property
    def ends(self) -> tuple[CodeGroup, CodeGroup]:
        """The low and the high end, with their codes and labels."""
        return (
            CodeGroup(codes=(self.low,), labels=(self.low_label,) if self.low_label else (), match=self.match),
            CodeGroup(codes=(self.high,), labels=(self.high_label,) if self.high_label else (), match=self.match),
        )

    @model_validator(mode="after")
    def _require_distinct_ends(self) -> Self:
        """Return the scale; raise ValueError if both ends have the same code."""
        if self.low == self.high:
            raise ValueError(
                "'low' and 'high' must differ. How to fix: Set them to the codes of the two ends of the scale"
            )
        return self


class AnswerChoice(CodeGroup):
    """An answer out of a few."""

    score: Annotated[float, Field(ge=-1, le=1)]


class NonresponseKind(CodeGroup):
    """A kind of nonresponse."""

    asked: bool = True
    """Whether the question was put: people who were never asked are no nonrespondents. Not for empty fields."""


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

    @field_validator("values")
    @classmethod
    def _sort_values(cls, values: Map[str, GroupCodes]) -> Map[str, GroupCodes]:
        """Return the groups in an order that does not depend on the file's."""
        return sort_entries(values)

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
        _require_distinct_labels(self.values.values())
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


class TopicColumn(_MappingSection):
    """A topic whose answers have a scale of their own."""

    topic: NonEmptyText
    wording: QuestionTemplate | None = None
    """The question that models are asked about this topic; that of the mapping if absent."""
    scale: ScaleEnds | None = None
    """The meaning of -1 and of +1, in words; that of the mapping if absent."""
    answers: SurveyScale | None = None
    choices: Map[str, AnswerChoice] | None = None
    nonresponse: Map[str, NonresponseKind] = Field(default_factory=dict)
    """Kinds of nonresponse that have other codes here; a kind of the mapping with the same name does not count."""

    @field_validator("choices")
    @classmethod
    def _sort_choices(cls, choices: Map[str, AnswerChoice] | None) -> Map[str, AnswerChoice] | None:
        """Return the choices in an order that does not depend on the file's."""
        return None if choices is None else sort_entries(choices)

    @property
    def has_scale(self) -> bool:
        """Whether its answers have a scale of their own."""
        return self.answers is not None or self.choices is not None

    @model_validator(mode="after")
    def _require_one_form(self) -> Self:
        """Return the topic; raise ValueError if its answers have two forms."""
        if self.answers is not None and self.choices is not None:
            raise ValueError("only one of 'answers' and 'choices' is allowed. How to fix: Remove one of them")
        return self


class SurveyMapping(SurveyDescription):
    """How a file is read."""

    draft: bool = False
    """Whether the mapping is a draft, which an import refuses."""
    country: NonEmptyText | None = None
    """The country of all respondents, for a file without a column of countries."""
    columns: MappingColumns = Field(default_factory=MappingColumns)
    topics: Annotated[Map[str, NonEmptyText | TopicColumn], Field(min_length=1)]
    """Topic by column; a table for a topic whose answers have a scale of their own."""
    answers: SurveyScale | None = None
    choices: Map[str, AnswerChoice] | None = None
    """Answers by name; the names `acceptable`, `not_a_moral_issue` and `unacceptable` give the survey's shares."""
    nonresponse: Map[str, NonresponseKind] = Field(default_factory=dict)
    groups: Map[str, GroupDimension] = Field(default_factory=dict)
    """Dimensions of groups by name, such as `sex`, whose shares of answers are kept."""
    keep: Map[str, tuple[int | str, ...]] = Field(default_factory=dict)
    """Only rows whose column has one of these values, such as one wave of a file with several."""
    pool: bool = False
    """Whether the respondents of several waves are taken together."""
    blank: Literal["nonresponse", "not asked"] | None = None
    """What an empty answer means, unless nobody of the country, wave and ballot has an answer: that is not asked."""
    country_codes: CountryCodes | None = None
    """What numbers without labels mean in the country column; without it, only those of `countries` are known."""
    countries: Map[str, CountryEntry] = Field(default_factory=dict)
    """Country by value of the country column; under `missing`, a list of values that mean no country."""

    @field_validator("choices", "nonresponse")
    @classmethod
    def _sort_meanings(cls, meanings: Map[str, AnyCodeGroup] | None) -> Map[str, AnyCodeGroup] | None:
        """Return the entries in an order that does not depend on the file's."""
        return None if meanings is None else sort_entries(meanings)

    @model_validator(mode="after")
    def _require_countries(self) -> Self:
        """Return the mapping if `missing`, and nothing else, is a list; raise ValueError otherwise."""
        for value, country in self.countries.items():
            if isinstance(country, str) == (value == MISSING_COUNTRIES):
                expected = "list of values" if isinstance(country, str) else "name"
                raise ValueError(
                    f"under [countries], '{value}' must be a {expected}. "
                    'How to fix: Write it as in [countries] NA = "Namibia", or as in missing = ["NA"]'
                )
        return self

    @model_validator(mode="after")
    def _require_country(self) -> Self:
        """Return the mapping if it says where respondents are from, and once; raise ValueError otherwise."""
        if bool(self.columns.country) == (self.country is not None):
            problem = "not both of" if self.country else "one of"
            raise ValueError(
                f"{problem} 'country' under [columns] and 'country' above the first table is required. How to fix: "
                'Write [columns] country = ["COLUMN"]; or, for a file about one country without such a column, '
                'country = "United States" above the first table'
            )
        return self

    @model_validator(mode="after")
    def _require_asked_blanks(self) -> Self:
        """Return the mapping; raise ValueError if it says by `asked` what an empty field means."""
        if not self.asked_by_kind[BLANK_KIND]:
            raise ValueError(
                f"'asked' under nonresponse.{BLANK_KIND} is replaced by the key 'blank'. How to fix: Write "
                'blank = "not asked" above the first table, and give codes of people who were not asked a kind of '
                "another name"
            )
        return self

    @model_validator(mode="after")
    def _require_consistency(self) -> Self:
        """Return the mapping if it has one form of answers, and no code or topic twice; raise ValueError otherwise."""
        entries = [entry for entry in self.topics.values() if isinstance(entry, TopicColumn)]
        needs_scale = sum(entry.has_scale for entry in entries) < len(self.topics)
        if (self.answers is not None and self.choices is not None) or (
            needs_scale and self.answers is None and self.choices is None
        ):
            raise ValueError(
                "exactly one of the sections [answers] and [choices] is required. How to fix: Remove or add one of them"
            )
        for column in self.topics:
            _require_distinct_codes(self.for_column(column), column)
        for kind, asked in ((kind, entry.asked) for table in entries for kind, entry in table.nonresponse.items()):
            if self.asked_by_kind[kind] != asked:
                raise ValueError(
                    f"'asked' of the nonresponse '{kind}' differs between topics. How to fix: Give one of them another "
                    "name"
                )
        topics = [fold_name(topic) for topic in self.topic_by_column.values()]
        duplicate_topic = next(
            (topic for topic in self.topic_by_column.values() if topics.count(fold_name(topic)) > 1), None
        )
        if duplicate_topic is not None:
            raise ValueError(
                f"two columns have the topic '{duplicate_topic}'. How to fix: Use a different topic for each"
            )
        return self

    @cached_property
    def country_by_value(self) -> dict[str, str | None]:
        """Country by value of the country column, normalized by `normalize_value`; None for a missing value."""
        missing_values = self.countries.get(MISSING_COUNTRIES, ())
        names = {
            normalize_value(value): country for value, country in self.countries.items() if isinstance(country, str)
        }
        return names | {normalize_value(value): None for value in missing_values}

    @cached_property
    def number_columns(self) -> frozenset[str]:
        """Folded names of the columns of numbers, whose declared missing values, such as an age of 99, are none."""
        names = {dimension.column for dimension in self.groups.values() if dimension.bands}
        return frozenset(name.casefold() for name in (*names, self.columns.weight) if name)

    @property
    def topic_by_column(self) -> dict[str, str]:
        """Name of the topic of each column."""
        return {
            column: entry.topic if isinstance(entry, TopicColumn) else entry for column, entry in self.topics.items()
        }

    @property
    def own_questions(self) -> dict[str, QuestionDescription]:
        """Wording and scale of topics that have their own."""
        entries = [entry for entry in self.topics.values() if isinstance(entry, TopicColumn)]
        return dict(self.questions) | {
            entry.topic: QuestionDescription(wording=entry.wording, scale=entry.scale) for entry in entries
        }

    def for_column(self, column: str) -> SurveyMapping:
        """The mapping with the answers and the nonresponse of one topic's column as those of all topics."""
        entry = {name.casefold(): entry for name, entry in self.topics.items()}[column.casefold()]
        if not isinstance(entry, TopicColumn) or not (entry.has_scale or entry.nonresponse):
            return self
        scale = {"answers": entry.answers, "choices": entry.choices} if entry.has_scale else {}
        nonresponse = sort_entries({**self.nonresponse, **entry.nonresponse})
        return self.model_copy(update={**scale, "nonresponse": nonresponse})

    @property
    def asked_by_kind(self) -> dict[str, bool]:
        """For each kind of nonresponse of any topic whether people were asked, including the kind of empty fields."""
        tables = [entry.nonresponse for entry in self.topics.values() if isinstance(entry, TopicColumn)]
        of_topics = {kind: entry.asked for table in tables for kind, entry in sorted(table.items())}
        return {kind: entry.asked for kind, entry in self.nonresponse_kinds.items()} | {
            kind: asked for kind, asked in of_topics.items() if kind not in self.nonresponse
        }

    @property
    def nonresponse_kinds(self) -> dict[str, NonresponseKind]:
        """Kinds of nonresponse by name, including the kind of empty fields."""
        return (
            dict(self.nonresponse)
            if BLANK_KIND in self.nonresponse
            else {**self.nonresponse, BLANK_KIND: NonresponseKind()}
        )


def sort_entries(entries: Map[str, AnyCodeGroup]) -> dict[str, AnyCodeGroup]:
    """Sort the entries of a table by code, then name: their order in the file has no meaning."""
    return dict(sorted(entries.items(), key=lambda entry: (*entry[1].sort_key, entry[0])))


def _require_distinct_codes(mapping: SurveyMapping, column: str) -> None:
    """Raise ValueError if a code or a label of answers and nonresponse of a topic's column has two meanings."""
    code_groups: list[CodeGroup] = [*mapping.nonresponse.values(), *(mapping.choices or {}).values()]
    codes = [code for group in code_groups for code in group.codes]
    if mapping.answers is not None:
        ends = sorted((mapping.answers.low, mapping.answers.high))
        codes += range(ends[0], ends[1] + 1)
    duplicate_codes = sorted({code for code in codes if codes.count(code) > 1})
    if duplicate_codes:
        raise ValueError(
            f"the answer code {duplicate_codes[0]} is listed with two meanings for '{column}'. How to fix: List it "
            f"once, or give the topic kinds of its own under [topics.{column}.nonresponse]"
        )
    _require_distinct_labels([*code_groups, *([] if mapping.answers is None else mapping.answers.ends)])


def _require_distinct_labels(groups: Iterable[CodeGroup]) -> None:
    """Raise ValueError if two groups have the same label."""
    labels = [label for group in groups for label in {normalize_label(label) for label in group.labels}]
    duplicate = next((label for label in labels if labels.count(label) > 1), None)
    if duplicate is not None:
        raise ValueError(f"the label '{duplicate}' is listed with two meanings. How to fix: List it once")


class LabelIndex(Generic[Meaning]):
    """Meanings by label. The order of the entries has no effect."""

    def __init__(self, entries: Iterable[tuple[Meaning, CodeGroup]]) -> None:
        """Index the labels of each meaning's group; no two groups may share a label."""
        self._by_label: dict[str, Meaning] = {}
        self._beginnings: list[tuple[Meaning, tuple[str, ...]]] = []
        for meaning, group in entries:
            self._by_label |= {normalize_label(label): meaning for label in group.labels}
            if group.match == "beginning":
                self._beginnings.append((meaning, group.labels))

    def find_meanings(self, label: str) -> list[Meaning]:
        """Return the meaning of an equal label, else those of all groups with a label that `label` begins with."""
        folded_label = normalize_label(label)
        if folded_label in self._by_label:
            return [self._by_label[folded_label]]
        return [
            meaning
            for meaning, prefixes in self._beginnings
            if any(starts_with_phrase(folded_label, prefix) for prefix in prefixes)
        ]


def normalize_label(text: str) -> str:
    """Normalize a label: lower case, single spaces, one Unicode form, and `'` for all forms of an apostrophe."""
    # Apostrophes first: in the form NFKC an acute accent that stands alone is a space and a combining accent.
    folded = unicodedata.normalize("NFKC", re.sub(r"[’‘´`ʼʹ′＇]", "'", text)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def normalize_value(value: str | float) -> str:
    """Normalize a value of a column as text, so that `4`, `4.0` and `"4"` are equal."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return normalize_label(str(value))


def starts_with_phrase(label: str, prefix: str) -> bool:
    """Whether a label begins with the words of `prefix`; only whole words match."""
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
    path = locate_mapping(source)
    mapping_table = read_toml(path, SurveyError)
    try:
        return SurveyMapping.model_validate(mapping_table)
    except pydantic.ValidationError as error:
        raise SurveyError(f"{path}: {explain_validation_error(error, mapping_table, SurveyMapping)}") from None


def locate_mapping(source: str | Path) -> Path:
    """Return the file of a built-in mapping, or the given path.

    Raises:
        SurveyError: there is neither such a mapping nor such a file.
    """
    name = str(source)
    path = DATA_FOLDER / f"{name}{MAPPING_SUFFIX}" if name in builtin_mappings() else Path(name)
    if not path.exists():
        hint = did_you_mean(name, builtin_mappings(), f"Built-in mappings: {', '.join(builtin_mappings())}.")
        raise SurveyError(f"'{name}' is neither a built-in mapping nor an existing file.", hint)
    return path
