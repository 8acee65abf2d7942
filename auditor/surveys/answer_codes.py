"""Decode the codes and labels of answers in an official data file to scores on the scale from -1 to +1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn
from auditor.surveys.mapping import BLANK_KIND, SurveyMapping, SurveyScale, starts_with_phrase

ANSWERED = -1
"""Index of the kind of nonresponse if the respondent gave an answer."""


def parse_number(value: ColumnValue) -> float | None:
    """Convert a value to a finite number; None if it is empty or not numeric."""
    if value is None:
        return None
    try:
        # Files that separate by semicolons write decimal commas.
        number = float(value.replace(",", ".") if isinstance(value, str) else value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def decode_answers(
    column: DistinctValueColumn, mapping: SurveyMapping, kinds: Sequence[str], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return each row's score in [-1, 1], nan for nonresponse, and its position in `kinds`, ANSWERED for an answer.

    Raises:
        ImportFileError: the mapping does not explain a value of the column.
    """
    scale = _orient_scale(mapping.answers, column) if mapping.answers else None
    scores = np.full(len(column.values), math.nan)
    kind_index = np.full(len(column.values), ANSWERED, np.int8)
    for value_position, value in enumerate(column.values):
        meaning = _decode_value(value, column.labels.get(value), mapping, scale)
        if meaning is None:
            raise ImportFileError(*_describe_unknown_code(column, value_position, scale, path))
        if isinstance(meaning, str):
            kind_index[value_position] = kinds.index(meaning)
        else:
            scores[value_position] = meaning
    return scores[column.value_index], kind_index[column.value_index]


def _decode_value(
    value: ColumnValue, label: str | None, mapping: SurveyMapping, scale: SurveyScale | None
) -> str | float | None:
    """Return a value's score or the name of its kind of nonresponse; None if it is unknown. Labels take precedence."""
    number = parse_number(value)
    label_text = label or (value if isinstance(value, str) and number is None else None)
    if value is None:
        return BLANK_KIND
    if label_text is not None:
        for name, kind in mapping.nonresponse_kinds.items():
            if kind.matches_label(label_text):
                return name
        for choice in (mapping.choices or {}).values():
            if choice.matches_label(label_text):
                return choice.score
        if scale is not None and number is None:
            ends = ((scale.low_label, -1.0), (scale.high_label, 1.0))
            return next(
                (end_score for prefix, end_score in ends if prefix and starts_with_phrase(label_text, prefix)), None
            )
    for name, kind in mapping.nonresponse_kinds.items():
        if number in kind.codes:
            return name
    if scale is not None:
        return _score_on_scale(number, scale)
    # If a value has a label that matches no choice, its code is not used: it may mean something else in this file.
    score_by_code = (
        {}
        if label
        else {float(code): choice.score for choice in (mapping.choices or {}).values() for code in choice.codes}
    )
    return None if number is None else score_by_code.get(number)


def _score_on_scale(code: float | None, scale: SurveyScale) -> float | None:
    """Map a code linearly from the scale to [-1, 1]; None if it is not a whole number on the scale."""
    low, high = sorted((scale.low, scale.high))
    if code is None or not low <= code <= high or not code.is_integer():
        return None
    return 2 * (code - scale.low) / (scale.high - scale.low) - 1


def _orient_scale(scale: SurveyScale, column: DistinctValueColumn) -> SurveyScale:
    """Return the scale with the codes that the file labels as its ends; unchanged if it does not label both."""
    ends: dict[str, int] = {}
    for value, label in column.labels.items():
        for end, prefix in (("low", scale.low_label), ("high", scale.high_label)):
            if prefix and starts_with_phrase(label, prefix) and isinstance(value, (int, float)):
                ends[end] = int(value)
    return scale.model_copy(update=ends) if len(ends) == 2 else scale


def _describe_unknown_code(
    column: DistinctValueColumn, value_position: int, scale: SurveyScale | None, path: Path
) -> tuple[str, str]:
    """Return the error message about a value that the mapping does not explain, and how to fix it."""
    value, count = column.values[value_position], column.count_rows(value_position)
    label = column.labels.get(value)
    code = f"{value:g}" if isinstance(value, float) else f"'{value}'"
    label_text = f" ('{label}')" if label else ""
    allowed_codes = f"on the scale {scale.low} to {scale.high}" if scale else "one of the choices"
    occurrences = f"; {count} rows contain it" if count > 1 else ""
    return (
        f"{path}: row {column.first_row_number(value_position)}, column '{column.name}': {code}{label_text} is neither "
        f"{allowed_codes} nor a known nonresponse code{occurrences}.",
        "Correct the file, or define the code under [nonresponse] in your own mapping.",
    )
