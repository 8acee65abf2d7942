"""Look at a respondents' file before it is imported: its columns and values, and what they become under a mapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from auditor.errors import ImportFileError, did_you_mean
from auditor.surveys.answer_codes import BLANK, UNKNOWN, AnswerDecoder, find_group, format_value, parse_number
from auditor.surveys.column_reader import (
    ColumnValue,
    DistinctValueColumn,
    blank_missing_na,
    is_missing_marker,
    list_column_names,
    read_columns,
)
from auditor.surveys.countries import country_codes
from auditor.surveys.country_columns import explain_countries, separate_missing_na
from auditor.surveys.mapping import SurveyMapping, normalize_value
from auditor.surveys.microdata import BALLOT_COLUMNS, WAVE_COLUMNS, FileReading, read_microdata

MAX_VALUES = 50
"""Distinct values up to which those of a column without a role are shown; a column with more may identify people."""
COLUMNS_PER_BATCH = 50
MAX_SUGGESTIONS = 500
"""Distinct values of a country column up to which unknown names are shown with the most similar known one."""
MIN_COUNTRY_SHARE = 0.8
"""Share of values that are countries, from which a column looks like one of countries."""
_WEIGHT_NAME = re.compile(r"(?i).*(weight|wght|wgt|wt$|^wt).*")
_COUNTRY_NAME = re.compile(r"(?i)(.*country.*|cntry.*|nation|land|pays|pais|iso.*)")


@dataclass(frozen=True, slots=True)
class ValuePreview:
    """One value of a column.

    Attributes:
        value: as in the file; with its label if the file has one.
        n_rows: rows with this value.
        meaning: what it becomes; empty for a column without a role.
        is_problem: whether an import stops because of it.
    """

    value: str
    n_rows: int
    meaning: str = ""
    is_problem: bool = False


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """One column.

    Attributes:
        role: what the mapping, or without one the name and values, make of it, such as `country`; empty without a role.
        n_empty: rows without a value.
        n_values: number of distinct values, without empty fields.
        values: None if they are not shown.
        number_range: smallest and largest number of a column of weights.
        column: the column itself, for a draft of a mapping; None if its values are not shown.
    """

    name: str
    role: str
    n_empty: int
    n_values: int
    values: tuple[ValuePreview, ...] | None
    number_range: tuple[float, float] | None
    column: DistinctValueColumn | None


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A respondents' file.

    Attributes:
        problem: why an import under the mapping stops; None if it would not, or without a mapping.
        reading: how the file is read under the mapping; None without one, or if an import stops.
    """

    n_rows: int
    columns: tuple[ColumnPreview, ...]
    problem: ImportFileError | None = None
    reading: FileReading | None = None


def preview_file(path: Path, mapping: SurveyMapping | None = None, shown_columns: Collection[str] = ()) -> FilePreview:
    """Return the columns of a file with their values, and what these become.

    Args:
        mapping: without it, columns of countries, weights, waves and ballots are recognized by name and values.
        shown_columns: further columns whose values are shown, however many there are.

    Raises:
        ImportFileError: the file cannot be read, or lacks one of `shown_columns`.
    """
    names = list_column_names(path)
    known_names = {name.casefold() for name in names}
    unknown_name = next((name for name in shown_columns if name.casefold() not in known_names), None)
    if unknown_name is not None:
        how_to_fix = did_you_mean(unknown_name, names, "Leave out --column to list all columns.")
        raise ImportFileError(f"{path}: the file has no column '{unknown_name}'.", how_to_fix)
    shown_names = {name.casefold() for name in shown_columns}
    n_rows, columns = 0, []
    for start in range(0, len(names), COLUMNS_PER_BATCH):
        for column in read_columns(path, [[name] for name in names[start : start + COLUMNS_PER_BATCH]]):
            n_rows = column.value_index.size
            columns.append(_preview_column(column, mapping, column.name.casefold() in shown_names, path))
    if mapping is None:
        return FilePreview(n_rows, tuple(columns))
    try:
        return FilePreview(n_rows, tuple(columns), reading=read_microdata(path, mapping).reading)
    except ImportFileError as error:
        return FilePreview(n_rows, tuple(columns), problem=error)


def _preview_column(
    column: DistinctValueColumn, mapping: SurveyMapping | None, is_requested: bool, path: Path
) -> ColumnPreview:
    """Return the preview of one column."""
    role = guess_role(column) if mapping is None else find_role(column.name, mapping)
    if mapping is not None and column.name.casefold() in mapping.number_columns:
        column = column.blank_missing()
    numbers = [parse_number(value) for value in column.values]
    n_values = sum(value is not None for value in column.values)
    is_shown = is_requested or (n_values <= MAX_VALUES) or bool(role and role != "weight")
    present_numbers = [number for number in numbers if number is not None]
    return ColumnPreview(
        name=column.name,
        role=role,
        n_empty=sum(column.count_rows(i) for i, value in enumerate(column.values) if value is None),
        n_values=n_values,
        values=tuple(_preview_values(column, role, mapping, path)) if is_shown else None,
        number_range=(min(present_numbers), max(present_numbers)) if role == "weight" and present_numbers else None,
        column=column if is_shown else None,
    )


def find_role(name: str, mapping: SurveyMapping) -> str:
    """What a mapping makes of a column, such as `country` or `topic: divorce`; empty if it does not use it."""
    folded_name, columns = name.casefold(), mapping.columns
    roles = {column.casefold(): f"topic: {topic}" for column, topic in mapping.topic_by_column.items()}
    roles |= {dimension.column.casefold(): f"group: {key}" for key, dimension in mapping.groups.items()}
    roles |= {column.casefold(): "keep" for column in mapping.keep}
    waves = (columns.wave,) if columns.wave else WAVE_COLUMNS
    ballots = (columns.ballot,) if columns.ballot else BALLOT_COLUMNS
    roles = {**dict.fromkeys(waves, "wave"), **dict.fromkeys(ballots, "ballot")} | roles
    roles |= {column.casefold(): "country" for column in columns.country}
    for role in ("weight", "strata", "psu"):
        if column := getattr(columns, role):
            roles[column.casefold()] = role
    return {column.casefold(): role for column, role in roles.items()}.get(folded_name, "")


def guess_role(column: DistinctValueColumn) -> str:
    """What a column seems to be by its name and values: country, weight, wave, ballot, or nothing of these."""
    name = column.name.casefold()
    if name in WAVE_COLUMNS:
        return "wave"
    if name in BALLOT_COLUMNS:
        return "ballot"
    values = [value for value in column.values if not is_missing_marker(value)]
    if values and _WEIGHT_NAME.fullmatch(name) and all(parse_number(value) is not None for value in values):
        return "weight"
    texts = [column.labels.get(value) or (value if isinstance(value, str) else "") for value in values]
    n_countries = sum(bool(country_codes(text)) for text in texts if text and parse_number(text) is None)
    looks_like_countries = len(values) > 1 and n_countries >= MIN_COUNTRY_SHARE * len(values)
    return "country" if looks_like_countries or (values and _COUNTRY_NAME.fullmatch(name)) else ""


def _preview_values(
    column: DistinctValueColumn, role: str, mapping: SurveyMapping | None, path: Path
) -> Iterator[ValuePreview]:
    """Yield the values of a column with their meaning, numbers in their order and texts after them."""
    is_mapped = mapping is not None
    mapping = mapping or _make_empty_mapping(column.name)
    if role == "country":
        column = separate_missing_na(column, mapping, path)
    elif role.startswith("topic: "):
        column = blank_missing_na(column, path)
    explain = _make_explainer(column, role if is_mapped or role == "country" else "", mapping, path)
    order = sorted(range(len(column.values)), key=lambda position: _sort_key(column.values[position]))
    for position in order:
        value, n_rows = column.values[position], column.count_rows(position)
        if n_rows:
            meaning, is_problem = explain(position)
            yield ValuePreview(format_value(value, column.labels.get(value)), n_rows, meaning, is_problem)


def _sort_key(value: ColumnValue) -> tuple[int, float, str]:
    """A key that sorts numbers before texts, and texts before an empty field."""
    number = parse_number(value)
    if number is not None:
        return (0, number, str(value))
    return (1, 0.0, str(value)) if value is not None else (2, 0.0, "")


def _make_empty_mapping(country_column: str) -> SurveyMapping:
    """A mapping that says nothing about the values of the country column."""
    content = {"columns": {"country": [country_column]}, "topics": {"-": "-"}, "answers": {"low": 0, "high": 1}}
    return SurveyMapping.model_validate({"title": "-", "source": "-", **content})


def _make_explainer(
    column: DistinctValueColumn, role: str, mapping: SurveyMapping, path: Path
) -> Callable[[int], tuple[str, bool]]:
    """Return a function from the position of a value to its meaning, and whether an import stops because of it."""
    if role == "country":
        country_values = explain_countries(column, mapping)

        def explain_country(position: int) -> tuple[str, bool]:
            """The country of a value, and how it was found."""
            value = country_values[position]
            if value.problem:
                return value.problem, True
            source = value.describe_source() if len(country_values) <= MAX_SUGGESTIONS else value.source
            return (f"{value.country} ({source})" if value.country else "no country"), False

        return explain_country
    if role.startswith("topic: "):
        return _make_answer_explainer(column, mapping, path)
    if role.startswith("group: "):
        dimension = mapping.groups[role.removeprefix("group: ")]

        def explain_group(position: int) -> tuple[str, bool]:
            """The group of a value."""
            value = column.values[position]
            return find_group(value, column.labels.get(value), dimension) or "in no group", False

        return explain_group
    if role == "keep":
        values_by_column = {name.casefold(): set(map(normalize_value, values)) for name, values in mapping.keep.items()}
        kept_values = values_by_column[column.name.casefold()]

        def explain_filter(position: int) -> tuple[str, bool]:
            """Whether rows with a value are kept."""
            value = column.values[position]
            return "kept" if value is not None and normalize_value(value) in kept_values else "left out", False

        return explain_filter
    return lambda position: ("", False)


def _make_answer_explainer(
    column: DistinctValueColumn, mapping: SurveyMapping, path: Path
) -> Callable[[int], tuple[str, bool]]:
    """Return a function from the position of an answer to its meaning, and whether it has none."""
    try:
        decoder = AnswerDecoder(column, mapping.for_column(column.name), path)
    except ImportFileError:  # its message follows after the values
        return lambda position: ("the labels of the file contradict the scale", True)
    kinds = mapping.asked_by_kind

    def explain_answer(position: int) -> tuple[str, bool]:
        """The score of an answer, or its kind of nonresponse."""
        value = column.values[position]
        meaning = decoder.find_meaning(value, column.labels.get(value))
        if isinstance(meaning, str):
            return (f"nonresponse: {meaning}" if kinds[meaning] else f"not asked: {meaning}"), False
        if meaning is BLANK:
            return "empty", False
        return ("no meaning", True) if meaning is UNKNOWN else (f"score {meaning:.3g}", False)

    return explain_answer
