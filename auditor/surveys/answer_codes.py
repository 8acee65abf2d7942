"""Decode the codes and labels of an official file: answers to scores from -1 to +1, and groups of respondents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError, pluralize
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn, is_missing_marker
from auditor.surveys.mapping import (
    BLANK_KIND,
    CodeGroup,
    GroupDimension,
    LabelIndex,
    SurveyMapping,
    SurveyScale,
    starts_with_phrase,
)
from auditor.surveys.table_formats import NA

ANSWERED = -1
"""Index of the kind of nonresponse if the respondent gave an answer."""
MAX_UNKNOWN_LISTED = 40
"""Values without a meaning that an error message lists."""


class _Unscored(Enum):
    """Values of an answer column that are neither a score nor a kind of nonresponse."""

    BLANK = "an empty field"
    UNKNOWN = "a value without a meaning"


class _End(Enum):
    """The ends of a scale, for their labels."""

    LOW = -1.0
    HIGH = 1.0


ValueMeaning = float | str | _Unscored
"""A score in [-1, 1], the name of a kind of nonresponse, or neither."""
BLANK, UNKNOWN = _Unscored.BLANK, _Unscored.UNKNOWN


@dataclass(frozen=True, slots=True)
class DecodedAnswers:
    """The answers of one column.

    Attributes:
        scores: shape (rows,), in [-1, 1]; nan without an answer.
        kind_index: shape (rows,), position of the kind of nonresponse, or ANSWERED.
        is_blank: shape (rows,), whether the field is empty.
        unknown_values: positions of the values without a meaning.
    """

    scores: NDArray[np.float64]
    kind_index: NDArray[np.int8]
    is_blank: NDArray[np.bool_]
    unknown_values: tuple[int, ...]


def parse_number(value: ColumnValue) -> float | None:
    """Convert a value to a finite number; None if it is empty or not numeric.

    Numbers with a comma are none: those of a column that can be read in one way have a point (`normalize_numbers`).
    """
    if value is None:
        return None
    if isinstance(value, str):
        if "_" in value:  # Python reads 1_0 as 10
            return None
        value = value.replace("\N{MINUS SIGN}", "-")
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class AnswerDecoder:
    """What the values of one column of answers mean under a mapping."""

    def __init__(self, column: DistinctValueColumn, mapping: SurveyMapping, path: Path) -> None:
        """Prepare the mapping's labels and codes for a column.

        Raises:
            ImportFileError: the file's labels contradict the ends of the mapping's scale.
        """
        entries: list[tuple[float | str | _End, CodeGroup]] = [*mapping.nonresponse_kinds.items()]
        entries += [(choice.score, choice) for choice in (mapping.choices or {}).values()]
        if mapping.answers is not None:
            entries += zip((_End.LOW, _End.HIGH), mapping.answers.ends, strict=True)
        self._labels = LabelIndex(entries)
        self._kind_by_code = {
            float(code): name for name, kind in mapping.nonresponse_kinds.items() for code in kind.codes
        }
        self._score_by_code = {
            float(code): choice.score for choice in (mapping.choices or {}).values() for code in choice.codes
        }
        self._scale = _orient_scale(mapping.answers, column, self._labels, path) if mapping.answers else None
        self._is_numeric = all(parse_number(value) is not None or is_missing_marker(value) for value in column.values)

    def find_meaning(self, value: ColumnValue, label: str | None) -> ValueMeaning:
        """Return the meaning of a value. A label takes precedence over the code."""
        if value is None:
            return BLANK
        number = parse_number(value)
        # In a column of numbers, NA is no label: R writes missing values so.
        if value == NA and label is None and self._is_numeric:
            return BLANK
        label_text = label or (value if isinstance(value, str) and number is None else None)
        if label_text is not None:
            meanings = self._labels.find_meanings(label_text)
            if not meanings and number is None:  # a mapping may also list the value itself, such as Stata's .a
                meanings = self._labels.find_meanings(str(value))
            if len(meanings) > 1:
                return UNKNOWN
            if meanings and not isinstance(meanings[0], _End):
                return meanings[0]
            if number is None:
                end = next(iter(meanings), None)
                if isinstance(end, _End) and self._scale is not None:
                    return end.value
                return BLANK if is_missing_marker(label_text) else UNKNOWN
        if number in self._kind_by_code:
            return self._kind_by_code[number]
        if self._scale is not None:
            return _score_on_scale(number, self._scale)
        # If a value has a label that matches no choice, its code is not used: it may mean something else in this file.
        return UNKNOWN if label or number is None else self._score_by_code.get(number, UNKNOWN)


def decode_answers(
    column: DistinctValueColumn, mapping: SurveyMapping, kinds: Sequence[str], path: Path
) -> DecodedAnswers:
    """Decode the answers of a column; an empty field has the kind `BLANK_KIND`.

    Args:
        kinds: names of the kinds of nonresponse.

    Raises:
        ImportFileError: the file's labels contradict the ends of the mapping's scale.
    """
    decoder = AnswerDecoder(column, mapping, path)
    scores = np.full(len(column.values), math.nan)
    kind_index = np.full(len(column.values), ANSWERED, np.int8)
    is_blank = np.zeros(len(column.values), bool)
    unknown_values = []
    for value_position, value in enumerate(column.values):
        meaning = decoder.find_meaning(value, column.labels.get(value))
        if isinstance(meaning, float | int):
            scores[value_position] = meaning
            continue
        if meaning is UNKNOWN:
            unknown_values.append(value_position)
        is_blank[value_position] = meaning is BLANK
        kind_index[value_position] = kinds.index(meaning if isinstance(meaning, str) else BLANK_KIND)
    rows = column.value_index
    return DecodedAnswers(scores[rows], kind_index[rows], is_blank[rows], tuple(unknown_values))


def _score_on_scale(code: float | None, scale: SurveyScale) -> float | _Unscored:
    """Map a code linearly from the scale to [-1, 1]; UNKNOWN if it is not a whole number on the scale."""
    low, high = sorted((scale.low, scale.high))
    if code is None or not low <= code <= high or not code.is_integer():
        return UNKNOWN
    return 2 * (code - scale.low) / (scale.high - scale.low) - 1


def _orient_scale(
    scale: SurveyScale, column: DistinctValueColumn, labels: LabelIndex[float | str | _End], path: Path
) -> SurveyScale:
    """Return the scale with its ends exchanged if the file labels them so; unchanged if it labels neither.

    Raises:
        ImportFileError: the labels of the ends are at other codes than the ends of the scale.
    """
    codes_by_end: dict[_End, list[float]] = {_End.LOW: [], _End.HIGH: []}
    for value, label in column.labels.items():
        meanings = labels.find_meanings(label)
        if len(meanings) == 1 and isinstance(meanings[0], _End) and (code := parse_number(value)) is not None:
            codes_by_end[meanings[0]].append(code)
    low_codes, high_codes = codes_by_end.values()
    if not low_codes and not high_codes:
        return scale
    for low, high in ((scale.low, scale.high), (scale.high, scale.low)):
        if low_codes in ([], [low]) and high_codes in ([], [high]):
            return scale.model_copy(update={"low": low, "high": high})
    labelled_codes = ", ".join(
        f"{value:g} ('{column.labels[value]}')" if isinstance(value, float | int) else f"'{value}'"
        for value in column.labels
        if parse_number(value) in {*low_codes, *high_codes}
    )
    raise ImportFileError(
        f"{path}: column '{column.name}': the labels of the ends of the scale are at the codes {labelled_codes}, but "
        f"the scale of the mapping has its ends at {scale.low} and {scale.high}.",
        "Correct 'low' and 'high' under [answers], or the labels there.",
    )


def describe_scale_ends(column: DistinctValueColumn, mapping: SurveyMapping, scale_words: Sequence[str]) -> str:
    """Say what the file labels the ends of a scale that the mapping states by codes; empty without such labels.

    Args:
        mapping: of the column.
        scale_words: the meaning of -1 and of +1 in the survey.
    """
    scale = mapping.answers
    if scale is None or any(end.labels for end in scale.ends):
        return ""  # labels in the mapping are compared with those of the file
    codes = (float(scale.low), float(scale.high))
    if not any(column.labels.get(code) for code in codes):
        return ""
    low, high = (describe_value(code, column.labels) for code in codes)
    return f"-1 ({scale_words[0]}) is {low}, +1 ({scale_words[1]}) is {high}"


def make_unknown_values_error(
    columns: Sequence[tuple[DistinctValueColumn, Sequence[int]]], mappings: Sequence[SurveyMapping], path: Path
) -> ImportFileError:
    """Return the error that lists values without a meaning, with their rows and counts.

    Args:
        columns: columns, each with the positions of these values; at least one position in all.
        mappings: of each column.
    """
    values = [
        (column, position, mapping)
        for (column, value_positions), mapping in zip(columns, mappings, strict=True)
        for position in value_positions
    ]
    descriptions: list[str] = []
    explained: list[SurveyMapping] = []
    for column, position, mapping in values[:MAX_UNKNOWN_LISTED]:
        count = column.count_rows(position)
        subject = (
            f"row {column.first_row_number(position)}, column '{column.name}': "
            f"{describe_value(column.values[position], column.labels)}"
        )
        scale, reason = mapping.answers, ""
        if not any(mapping is other for other in explained):
            allowed_codes = f"on the scale {scale.low} to {scale.high}" if scale else "one of the choices"
            reason = f" is neither {allowed_codes} nor a known nonresponse code"
            explained.append(mapping)
        descriptions.append(f"{subject}{reason} ({pluralize(count, 'row')})")
    omitted = (
        f"; and {pluralize(len(values) - len(descriptions), 'more value')}" if len(values) > len(descriptions) else ""
    )
    hints = (_suggest_label_match([column], mapping) for column, mapping in zip(columns, mappings, strict=True))
    choices = "[choices] or " if any(mapping.answers is None for mapping in explained) else ""
    return ImportFileError(
        f"{path}: {'; '.join(descriptions)}{omitted}.",
        f"{next(filter(None, hints), '')}Correct the file, or define the code under {choices}[nonresponse] in your own "
        "mapping.",
    )


def describe_value(value: ColumnValue, labels: Mapping[ColumnValue, str]) -> str:
    """A value for a message, with its label if it has one: `5 ('Never heard of it')`, or `'often'`."""
    label = labels.get(value)
    code = f"{value:g}" if isinstance(value, float) else f"'{value}'"
    return f"{code} ('{label}')" if label else code


def format_value(value: ColumnValue, label: str | None = None) -> str:
    """A value for a list, with its label if it has one: `5 Never heard of it`, `often`, or `(empty)`."""
    text = "(empty)" if value is None else f"{value:g}" if isinstance(value, float) else value
    return f"{text} {label}" if label else text


def _suggest_label_match(columns: Sequence[tuple[DistinctValueColumn, Sequence[int]]], mapping: SurveyMapping) -> str:
    """A hint for the first unknown label that begins with labels of the mapping; empty without one."""
    groups: dict[str, CodeGroup] = {f"nonresponse.{name}": kind for name, kind in mapping.nonresponse.items()}
    groups |= {f"choices.{name}": choice for name, choice in (mapping.choices or {}).items()}
    if mapping.answers is not None:
        groups |= dict(zip(("answers.low_label", "answers.high_label"), mapping.answers.ends, strict=True))
    for column, value_positions in columns:
        for value in (column.values[position] for position in value_positions):
            label = column.labels.get(value) or str(value)
            keys = [key for key, group in groups.items() if any(starts_with_phrase(label, p) for p in group.labels)]
            if len(keys) == 1:
                return f"'{label}' begins with a label of {keys[0]}: add match = \"beginning\" there if it means that. "
            if keys:
                return f"'{label}' begins with labels of {' and '.join(keys)}: list it where it belongs. "
    return ""


NO_GROUP = -1
"""Index of the group of respondents whose code no group of the mapping has."""


def decode_groups(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> dict[str, NDArray[np.int16]]:
    """Return for each dimension the position of each row's group in the mapping, shape (rows,), or NO_GROUP.

    Args:
        columns: those of the mapping's dimensions that the file has.

    Returns:
        By dimension, in the order of the mapping; dimensions without a column are absent.
    """
    return {
        name: _decode_column(column, mapping.groups[name]) for name, column in _match_columns(columns, mapping).items()
    }


def list_ungrouped_values(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> dict[str, dict[str, int]]:
    """Return for each dimension the values that are in no group, with their number of rows; arguments as above."""
    ungrouped_values = {
        name: {
            format_value(value, column.labels.get(value)): column.count_rows(position)
            for position, value in enumerate(column.values)
            if find_group(value, column.labels.get(value), mapping.groups[name]) is None
        }
        for name, column in _match_columns(columns, mapping).items()
    }
    return {name: counts for name, counts in ungrouped_values.items() if counts}


def _match_columns(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> dict[str, DistinctValueColumn]:
    """Return the column of each dimension; for bands without the numbers that the file declares as missing."""
    column_by_name = {column.name.casefold(): column for column in columns}
    return {
        name: column.blank_missing() if dimension.bands else column
        for name, dimension in mapping.groups.items()
        if (column := column_by_name.get(dimension.column.casefold())) is not None
    }


def find_group(value: ColumnValue, label: str | None, dimension: GroupDimension) -> str | None:
    """Return the name of a value's group, None without one. A label that a group names wins over the code."""
    return _find_group(value, label, dimension, _index_groups(dimension))


def _index_groups(dimension: GroupDimension) -> LabelIndex[str]:
    """Index the labels of a dimension's groups."""
    return LabelIndex(dimension.values.items())


def _decode_column(column: DistinctValueColumn, dimension: GroupDimension) -> NDArray[np.int16]:
    """Position of each row's group, shape (rows,)."""
    position_by_name = {name: position for position, name in enumerate(dimension.words_by_group)}
    labels = _index_groups(dimension)
    names = [_find_group(value, column.labels.get(value), dimension, labels) for value in column.values]
    by_value = [NO_GROUP if name is None else position_by_name[name] for name in names]
    return np.array(by_value, np.int16)[column.value_index]


def _find_group(
    value: ColumnValue, label: str | None, dimension: GroupDimension, labels: LabelIndex[str]
) -> str | None:
    """Return the name of a value's group; see `find_group`."""
    number = parse_number(value)
    label_text = label or (value if isinstance(value, str) and number is None else None)
    names = labels.find_meanings(label_text) if label_text is not None else []
    if names:
        return names[0] if len(names) == 1 else None
    for name, group in dimension.values.items():
        # The code of a value whose label no group has may mean something else in this file.
        if number in group.codes and not (label and group.labels):
            return name
    for name, band in dimension.bands.items():
        if number is not None and band.start <= number <= band.end:
            return name
    return None
