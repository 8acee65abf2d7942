"""Decode the columns of an official file that divide respondents into groups, such as men and women."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.answer_codes import parse_number
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn
from auditor.surveys.mapping import GroupDimension, SurveyMapping

NO_GROUP = -1
"""Index of the group of respondents whose code no group of the mapping has."""


def decode_groups(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> dict[str, NDArray[np.int16]]:
    """Return for each dimension the position of each row's group in the mapping, shape (rows,), or NO_GROUP.

    Args:
        columns: those of the mapping's dimensions that the file has.

    Returns:
        By dimension, in the order of the mapping; dimensions without a column are absent.
    """
    column_by_name = {column.name.casefold(): column for column in columns}
    return {
        name: _decode_column(column_by_name[dimension.column.casefold()], dimension)
        for name, dimension in mapping.groups.items()
        if dimension.column.casefold() in column_by_name
    }


def _decode_column(column: DistinctValueColumn, dimension: GroupDimension) -> NDArray[np.int16]:
    """Position of each row's group, shape (rows,)."""
    by_value = [_find_group(value, column.labels.get(value), dimension) for value in column.values]
    return np.array(by_value, np.int16)[column.value_index]


def _find_group(value: ColumnValue, label: str | None, dimension: GroupDimension) -> int:
    """Position of the group of a value. A label that a group names wins over the code."""
    number = parse_number(value)
    label_text = label or (value if isinstance(value, str) and number is None else None)
    for position, group in enumerate(dimension.values.values()):
        if label_text is not None and group.matches_label(label_text):
            return position
    for position, group in enumerate(dimension.values.values()):
        # The code of a value whose label no group has may mean something else in this file.
        if number in group.codes and not (label and group.labels):
            return position
    for position, band in enumerate(dimension.bands.values()):
        if number is not None and band.start <= number <= band.end:
            return position
    return NO_GROUP
