"""Decode the columns of an official file that divide respondents into groups, such as men and women."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.answer_codes import format_value, parse_number
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn
from auditor.surveys.mapping import GroupDimension, LabelIndex, SurveyMapping

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


def list_ungrouped_values(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> dict[str, dict[str, int]]:
    """Return for each dimension the values that are in no group, with their number of rows; arguments as above."""
    ungrouped_values: dict[str, dict[str, int]] = {}
    column_by_name = {column.name.casefold(): column for column in columns}
    for name, dimension in mapping.groups.items():
        column = column_by_name.get(dimension.column.casefold())
        if column is not None:
            ungrouped_values[name] = {
                format_value(value, column.labels.get(value)): column.count_rows(position)
                for position, value in enumerate(column.values)
                if find_group(value, column.labels.get(value), dimension) is None
            }
    return {name: counts for name, counts in ungrouped_values.items() if counts}


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
