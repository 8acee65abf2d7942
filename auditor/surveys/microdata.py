"""Read the respondents of an official data file: their countries, weights and answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.surveys.answer_codes import decode_answers, make_unknown_values_error, parse_number
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn, read_columns
from auditor.surveys.countries import country_code, country_name
from auditor.surveys.group_codes import decode_groups
from auditor.surveys.mapping import SurveyMapping

MAX_MEAN_WEIGHT = 5.0
"""Largest plausible mean weight of a country, and inverse of the smallest; other weights are rescaled to mean 1."""


@dataclass(frozen=True, slots=True)
class Microdata:
    """Respondents, sorted by country.

    Attributes:
        countries: names, in the order of the file.
        topics: names, in the order of the mapping.
        country_offsets: shape (countries + 1,): country i has the rows country_offsets[i] to country_offsets[i + 1].
        weights: shape (respondents,), above 0.
        answers: shape (respondents, topics), in [-1, 1]; nan if the respondent gave no answer.
        kind_index: shape (respondents, topics): position in `kinds`, or ANSWERED.
        kinds: names of the kinds of nonresponse.
        kind_was_asked: for each kind of nonresponse whether the respondent was asked the question.
        choice_scores: score by name of each answer; empty for a numeric scale.
        excluded_rows: number of unusable rows of the file by reason.
        notes: remarks for users of the estimates, such as rescaled weights.
    """

    countries: tuple[str, ...]
    topics: tuple[str, ...]
    country_offsets: NDArray[np.int64]
    weights: NDArray[np.float64]
    answers: NDArray[np.float64]
    kind_index: NDArray[np.int8]
    kinds: tuple[str, ...]
    kind_was_asked: tuple[bool, ...]
    choice_scores: dict[str, float]
    excluded_rows: dict[str, int]
    notes: tuple[str, ...] = ()
    groups: Mapping[str, NDArray[np.int16]] = field(default_factory=dict)
    """For each dimension that the file has, shape (respondents,): position in the mapping's groups, or NO_GROUP."""


def read_microdata(path: Path, mapping: SurveyMapping) -> Microdata:
    """Read the respondents' answers from the columns that a mapping names; other columns are not read.

    Raises:
        ImportFileError: the file cannot be used; the message names column and row.
    """
    weight_candidates = [[mapping.columns.weight]] if mapping.columns.weight else []
    candidate_names = [
        mapping.columns.country,
        *weight_candidates,
        *([filter_column] for filter_column in mapping.keep),
        *([topic_column] for topic_column in mapping.topics),
    ]
    group_names = [dimension.column for dimension in mapping.groups.values()]
    columns = read_columns(path, candidate_names, group_names)
    n_required = len(candidate_names)
    columns, excluded_rows = _select_mapped_rows(columns, n_required - len(mapping.topics), mapping, path)
    # In the order of `candidate_names`: country, weight if the mapping names one, filters, topics; then groups.
    country_column, topic_columns = columns[0], columns[n_required - len(mapping.topics) : n_required]
    weights = _parse_weights(columns[1], path) if weight_candidates else np.ones(country_column.value_index.size)
    country_names, country_index = _parse_countries(country_column, path)
    usable = _find_usable_rows(country_index, weights, excluded_rows)
    if not usable.any():
        raise _make_no_rows_error(path, excluded_rows)
    row_order = np.argsort(country_index[usable], kind="stable")
    used_countries, offsets = np.unique(country_index[usable][row_order], return_index=True)
    offsets = np.append(offsets, row_order.size)
    weights, notes = _rescale_weights(weights[usable][row_order], offsets, [country_names[i] for i in used_countries])
    kinds = mapping.nonresponse_kinds
    topic_columns = [column.select_rows(usable) for column in topic_columns]
    decoded = [decode_answers(column, mapping, tuple(kinds), path) for column in topic_columns]
    unknown_values = [(column, answers.unknown_values) for column, answers in zip(topic_columns, decoded, strict=True)]
    if any(positions for _, positions in unknown_values):
        raise make_unknown_values_error(unknown_values, mapping, path)
    return Microdata(
        countries=tuple(country_names[i] for i in used_countries),
        topics=tuple(mapping.topics.values()),
        country_offsets=offsets.astype(np.int64),
        weights=weights,
        answers=np.column_stack([answers.scores[row_order] for answers in decoded]),
        kind_index=np.column_stack([answers.kind_index[row_order] for answers in decoded]),
        kinds=tuple(kinds),
        kind_was_asked=tuple(kind.asked for kind in kinds.values()),
        choice_scores={name: choice.score for name, choice in (mapping.choices or {}).items()},
        excluded_rows=excluded_rows,
        notes=tuple(
            notes
            + [f"no row of {country} can be used" for i, country in enumerate(country_names) if i not in used_countries]
        ),
        groups={
            name: index[row_order]
            for name, index in decode_groups([c.select_rows(usable) for c in columns[n_required:]], mapping).items()
        },
    )


# --- rows -------------------------------------------------------------------------------------------------------


def _select_mapped_rows(
    columns: list[DistinctValueColumn], first_topic: int, mapping: SurveyMapping, path: Path
) -> tuple[list[DistinctValueColumn], dict[str, int]]:
    """Drop rows that fail the mapping's `keep` filters; return the columns and the number of dropped rows by reason."""
    excluded_rows: dict[str, int] = {}
    first_filter = first_topic - len(mapping.keep)
    for column_index, listed_values in enumerate(mapping.keep.values(), start=first_filter):
        kept_values = {_to_comparable_value(value) for value in listed_values}
        is_kept = np.array([_to_comparable_value(value) in kept_values for value in columns[column_index].values])[
            columns[column_index].value_index
        ]
        if not is_kept.all():
            excluded_rows[f"{columns[column_index].name} has a value that the mapping excludes"] = int(
                np.count_nonzero(~is_kept)
            )
            columns = [column.select_rows(is_kept) for column in columns]
        if not is_kept.any():
            raise _make_no_rows_error(path, excluded_rows)
    return columns, excluded_rows


def _find_usable_rows(
    country_index: NDArray[np.int64], weights: NDArray[np.float64], excluded_rows: dict[str, int]
) -> NDArray[np.bool_]:
    """Return a mask of usable rows, shape (rows,); count each other row in `excluded_rows` under its first reason."""
    usable = np.ones(weights.size, bool)
    reasons = {"no country": country_index < 0, "no weight": np.isnan(weights), "weight of zero": weights == 0}
    for reason, is_excluded in reasons.items():
        count = int(np.count_nonzero(is_excluded & usable))
        if count:
            excluded_rows[reason] = count
        usable &= ~is_excluded
    return usable


def _make_no_rows_error(path: Path, excluded_rows: dict[str, int]) -> ImportFileError:
    """Return the error that no row can be used, with the number of excluded rows by reason."""
    reasons = ", ".join(f"{reason} ({count} rows)" for reason, count in excluded_rows.items())
    return ImportFileError(f"{path}: no row can be used: {reasons}.", "Check that it is the right file and mapping.")


def _to_comparable_value(value: ColumnValue) -> ColumnValue:
    """Convert a numeric text to a number, so that `6`, `6.0` and `"6"` compare as equal; keep other values."""
    number = parse_number(value)
    return value if number is None else number


def _parse_weights(column: DistinctValueColumn, path: Path) -> NDArray[np.float64]:
    """Weight of each row, shape (rows,), nan if empty; raise ImportFileError for a negative or non-numeric one."""
    numbers = [parse_number(value) for value in column.values]
    for value_position, (value, number) in enumerate(zip(column.values, numbers, strict=True)):
        if value is not None and (number is None or number < 0):
            problem = "is not a number" if number is None else "is negative"
            raise ImportFileError(
                f"{path}: row {column.first_row_number(value_position)}, column '{column.name}': "
                f"the weight {value} {problem}.",
                "Correct it, or name another weight column in the mapping.",
            )
    return np.array([math.nan if number is None else number for number in numbers])[column.value_index]


def _rescale_weights(
    weights: NDArray[np.float64], country_offsets: NDArray[np.intp], countries: Sequence[str]
) -> tuple[NDArray[np.float64], list[str]]:
    """Rescale the weights of a country to mean 1 if their mean is not near 1, as with weights that sum to a population.

    Standard errors use the sum of the weights as the sample size.

    Returns:
        The weights, and a note for each country whose weights were rescaled.
    """
    weights, notes = weights.copy(), []
    for name, start, end in zip(countries, country_offsets[:-1], country_offsets[1:], strict=True):
        mean = float(weights[start:end].mean())
        if not 1 / MAX_MEAN_WEIGHT <= mean <= MAX_MEAN_WEIGHT:
            weights[start:end] /= mean
            notes.append(f"the weights of {name} have mean {mean:g}, not about 1, and were divided by it")
    return weights, notes


def _parse_countries(column: DistinctValueColumn, path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Return the country names in the file's order, and each row's position among them, -1 if it has no country.

    Raises:
        ImportFileError: a code is not in ISO 3166, or a country occurs in two spellings.
    """
    names: list[str] = []
    value_by_code: dict[str, ColumnValue] = {}
    country_index = np.full(len(column.values), -1, np.int64)
    _, first_rows = np.unique(column.value_index, return_index=True)
    for value_position in np.argsort(first_rows):
        value = column.values[value_position]
        number = parse_number(value)
        if value is None or (number is not None and number < 0):
            continue
        name = _resolve_country_name(value, number, column.labels.get(value))
        location = f"{path}: row {column.first_row_number(value_position)}, column '{column.name}'"
        if name is None:
            raise ImportFileError(
                f"{location}: {value} is not a country in ISO 3166.", "Use a file with country names or ISO 3166 codes."
            )
        code = country_code(name) or name
        if code in value_by_code:
            raise ImportFileError(
                f"{location}: '{value}' and '{value_by_code[code]}' are the same country.",
                "Use one spelling for the country.",
            )
        value_by_code[code] = value
        country_index[value_position] = len(names)
        names.append(name)
    return names, country_index[column.value_index]


def _resolve_country_name(value: ColumnValue, number: float | None, label: str | None) -> str | None:
    """Return a country's name from its value label, code of digits or letters, or name; None for unknown digits."""
    if label:
        return label
    if number is not None:
        return country_name(f"{number:.0f}")
    return country_name(str(value)) or str(value)
