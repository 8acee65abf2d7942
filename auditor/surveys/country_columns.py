"""Find out which country each value of a file's country column means; what cannot be known stops the import."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError, pluralize
from auditor.surveys.answer_codes import describe_value, parse_number
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn, classify_na, is_missing_marker
from auditor.surveys.countries import country_codes, country_key, country_name, is_english_name, suggest_country
from auditor.surveys.mapping import SurveyMapping, normalize_value
from auditor.surveys.table_formats import NA

UNKNOWN_NAME = "unknown name"
_TWO_LETTERS = re.compile(r"[A-Za-z]{2}")
MAX_PROBLEMS_LISTED = 20
MAX_NAMES_LISTED = 8
"""Unknown names that one line of an import lists; `surveys preview` lists all."""


@dataclass(frozen=True, slots=True)
class CountryValue:
    """What one value of the country column means.

    Attributes:
        value, label: as in the file.
        n_rows: rows with this value.
        country: the country's name in the survey; None for a missing value, and where there is a problem.
        source: how it was found, such as `ISO 3166 code`.
        problem, how_to_fix: why the country cannot be known; empty if it is.
    """

    value: ColumnValue
    label: str | None
    n_rows: int
    country: str | None = None
    source: str = "missing"
    problem: str = ""
    how_to_fix: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether the name is that of no known country; the survey then has a country of this name."""
        return self.source == UNKNOWN_NAME

    def describe(self) -> str:
        """The value as messages have it, with its label if it has one."""
        return describe_value(self.value, {self.value: self.label or ""})

    def describe_source(self) -> str:
        """How the country was found; for an unknown name with the most similar known one, which takes 10 ms to find."""
        suggestion = suggest_country(self.country) if self.is_unknown and self.country else None
        return f"{self.source}, similar to {suggestion}" if suggestion else self.source


def describe_unknown_names(values: Sequence[CountryValue]) -> str:
    """Name the values that are no known country, though the survey has countries of these names; empty if none are."""
    unknown_values = [value for value in values if value.country is not None and value.is_unknown]
    names = [
        f"{value.country}: {value.describe_source()}, {pluralize(value.n_rows, 'row')}"
        for value in unknown_values[:MAX_NAMES_LISTED]
    ]
    omitted = [f"and {len(unknown_values) - len(names)} more"] if len(unknown_values) > len(names) else []
    return f"names that are no known country: {'; '.join([*names, *omitted])}" if names else ""


def separate_missing_na(column: DistinctValueColumn, mapping: SurveyMapping, path: Path) -> DistinctValueColumn:
    """Return the country column with NA replaced by an empty field, or by Namibia, where it is certain which it is.

    Quotation marks tell, and numbers, among which NA is a missing value. Elsewhere NA stays in the column.
    """
    if NA not in column.values or _is_listed(NA, mapping) or column.labels.get(NA):
        return column
    others = [value for value in column.values if value != NA and not is_missing_marker(value)]
    if others and all(parse_number(value) is not None for value in others):
        return column.replace_rows(column.value_index == column.values.index(NA), None)
    is_missing, is_text = classify_na(column, path)
    column = column.replace_rows(is_missing, None)
    only_codes = all(isinstance(value, str) and _TWO_LETTERS.fullmatch(value) for value in others)
    return column.replace_rows(is_text, country_name(NA)) if only_codes else column


def explain_countries(column: DistinctValueColumn, mapping: SurveyMapping) -> list[CountryValue]:
    """Return what each value of the column means, in the order of `column.values`.

    Args:
        column: the country column after `separate_missing_na`.
    """
    counts = np.bincount(column.value_index, minlength=len(column.values))
    return [
        _explain_value(CountryValue(value, column.labels.get(value), int(count)), mapping)
        for value, count in zip(column.values, counts, strict=True)
    ]


def decode_countries(
    column: DistinctValueColumn, mapping: SurveyMapping, path: Path
) -> tuple[list[str], NDArray[np.int64], list[CountryValue]]:
    """Return the countries in the file's order, each row's position among them (-1 if missing), and what values mean.

    Raises:
        ImportFileError: a country cannot be known, or occurs in two spellings; the message names row and value.
    """
    column = separate_missing_na(column, mapping, path)
    country_values = explain_countries(column, mapping)
    _, first_rows = np.unique(column.value_index, return_index=True)
    used_positions = np.unique(column.value_index)[np.argsort(first_rows)]
    _require_countries(column, [(int(i), country_values[i]) for i in used_positions], path)
    first_by_code: dict[str, tuple[int, CountryValue]] = {}
    country_index = np.full(len(column.values), -1, np.int64)
    for value_position in used_positions:
        country_value = country_values[value_position]
        if country_value.country is None:
            continue
        code = country_key(country_value.country)
        index, first = first_by_code.setdefault(code, (len(first_by_code), country_value))
        if not _is_same_spelling(first.value, country_value.value) and not _is_listed(country_value.value, mapping):
            raise ImportFileError(
                f"{path}: row {column.first_row_number(int(value_position))}, column '{column.name}': "
                f"{country_value.describe()} and {first.describe()} are the same country.",
                "Use one spelling for the country, or list both under [countries].",
            )
        country_index[value_position] = index
    names = [country_value.country or "" for _, country_value in first_by_code.values()]
    return names, country_index[column.value_index], [country_values[i] for i in used_positions]


def _require_countries(
    column: DistinctValueColumn, country_values: Sequence[tuple[int, CountryValue]], path: Path
) -> None:
    """Raise ImportFileError for values whose country cannot be known; it lists them with rows and counts."""
    problems = [(position, value) for position, value in country_values if value.problem]
    if not problems:
        return
    descriptions = [
        f"row {column.first_row_number(position)}, column '{column.name}': {value.problem} "
        f"({value.n_rows} row{'s' if value.n_rows > 1 else ''})"
        for position, value in problems[:MAX_PROBLEMS_LISTED]
    ]
    n_omitted = len(problems) - len(descriptions)
    omitted = f"; and {pluralize(n_omitted, 'more value')}" if n_omitted else ""
    how_to_fix = " ".join(dict.fromkeys(value.how_to_fix for _, value in problems))
    raise ImportFileError(f"{path}: {'; '.join(descriptions)}{omitted}.", how_to_fix)


def _explain_value(country_value: CountryValue, mapping: SurveyMapping) -> CountryValue:
    """Return a value of the country column with its meaning."""
    value, label = country_value.value, country_value.label
    number = parse_number(value)
    for text in (value, label):
        if text is not None and _is_listed(text, mapping):
            country = mapping.country_by_value[normalize_value(text)]
            return dataclasses.replace(country_value, country=country, source="[countries]" if country else "missing")
    if NA in (value, label):
        return dataclasses.replace(
            country_value,
            problem="'NA' may be Namibia or a missing value",
            how_to_fix='Add to the mapping: [countries] NA = "Namibia", or [countries] missing = ["NA"].',
        )
    if is_missing_marker(label or value) or (number is not None and number < 0):
        return country_value
    if label:
        return _explain_name(country_value, label, "value label")
    if number is not None:
        return _explain_number(country_value, number, mapping)
    return _explain_name(country_value, str(value), "")


def _explain_number(country_value: CountryValue, number: float, mapping: SurveyMapping) -> CountryValue:
    """Return a number without a label with the country that it means by the mapping."""
    if mapping.country_codes != "iso-3166-numeric":
        return dataclasses.replace(
            country_value,
            problem=f"{describe_value(country_value.value, {})} is a number without a meaning",
            how_to_fix='Add country_codes = "iso-3166-numeric" above the first table of the mapping if the numbers are '
            'those of ISO 3166; otherwise name each country under [countries], as in 7 = "Peru".',
        )
    country = country_name(f"{number:.0f}") if number.is_integer() else None
    if country is None:
        return dataclasses.replace(
            country_value,
            problem=f"{number:g} is not a country in ISO 3166",
            how_to_fix='Name it in the mapping under [countries], as in 7 = "Peru", or add it to missing there.',
        )
    return dataclasses.replace(country_value, country=country, source="numeric ISO 3166 code")


def _explain_name(country_value: CountryValue, name: str, source: str) -> CountryValue:
    """Return a name or code with its country; an unknown name is a country of its own."""
    codes = country_codes(name)
    if len(codes) > 1:
        return dataclasses.replace(
            country_value,
            problem=f"'{name}' may be {suggest_country(name)}",
            how_to_fix=f'Name the country in the mapping: [countries] "{name}" = "…".',
        )
    if not codes:
        return dataclasses.replace(country_value, country=name, source=UNKNOWN_NAME)
    if not is_english_name(name):
        country = country_name(codes[0]) or name
        return dataclasses.replace(country_value, country=country, source=source or "name in another language")
    country_by_code = country_name(name)
    if country_by_code is not None and not source:
        return dataclasses.replace(country_value, country=country_by_code, source="ISO 3166 code")
    return dataclasses.replace(country_value, country=name, source=source or "name")


def _is_listed(value: ColumnValue, mapping: SurveyMapping) -> bool:
    """Whether the table [countries] of the mapping says what a value means."""
    return value is not None and normalize_value(value) in mapping.country_by_value


def _is_same_spelling(first: ColumnValue, second: ColumnValue) -> bool:
    """Whether two values only differ in case, white space or the form of a number, such as `76` and `076`."""
    if first is None or second is None:
        return first is second
    return normalize_value(first) == normalize_value(second)
