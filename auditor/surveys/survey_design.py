"""How the respondents of a survey were drawn: strata and primary sampling units, for standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.surveys.answer_codes import format_value
from auditor.surveys.column_reader import DistinctValueColumn


class SurveyDesign(NamedTuple):
    """How the respondents of one country were drawn.

    Attributes:
        unit: shape (respondents,): position of each respondent's primary sampling unit.
        stratum: shape (units,): position of the stratum of each unit.
    """

    unit: NDArray[np.int64]
    stratum: NDArray[np.int64]

    def select(self, mask: NDArray[np.bool_]) -> SurveyDesign:
        """The design of some respondents, who are a domain: units without any of them stay in the design."""
        return SurveyDesign(self.unit[mask], self.stratum)

    def sum_variance(self, residuals: NDArray[np.float64]) -> float | None:
        """Variance of the sum of the respondents' residuals, which add up to 0; None with fewer than two units.

        Residuals are summed over each unit. A stratum of k units adds k / (k - 1) times the sum of squared deviations
        of these totals from the stratum's mean. A unit that is alone in its stratum is compared with the mean of all
        totals, which is 0 (R's `lonely.psu = "adjust"`). See Lohr, Sampling: Design and Analysis, ch. 9.

        Args:
            residuals: shape (respondents,).
        """
        if self.stratum.size < 2:
            return None
        totals = np.bincount(self.unit, residuals, minlength=self.stratum.size)
        n_units = np.bincount(self.stratum)
        means = np.where(n_units > 1, np.bincount(self.stratum, totals) / n_units, 0.0)
        factors = n_units / np.maximum(n_units - 1, 1)
        return float(np.sum(factors[self.stratum] * (totals - means[self.stratum]) ** 2))


def build_designs(
    strata: DistinctValueColumn | None,
    psu: DistinctValueColumn | None,
    rows_by_country: Mapping[str, tuple[int, int]],
    path: Path,
) -> tuple[dict[str, SurveyDesign], list[str]]:
    """Return how the respondents of each country were drawn, and a note for each with strata of one sampling unit.

    A country in which both columns are empty has no design. Without `psu`, each respondent was drawn by themselves.

    Args:
        strata, psu: columns whose rows are sorted by country; None if the mapping does not name one.
        rows_by_country: the rows of each country, from the first to one after the last.
        path: the file, for messages.

    Raises:
        ImportFileError: a stratum or sampling unit is empty for some respondents of a country only.
    """
    designs: dict[str, SurveyDesign] = {}
    notes: list[str] = []
    for country, (start, end) in rows_by_country.items() if strata or psu else ():
        stratum, place = (_find_positions(column, slice(start, end), country, path) for column in (strata, psu))
        if stratum is None and place is None:
            continue
        n = end - start
        pairs = np.column_stack(
            [np.zeros(n, np.int64) if stratum is None else stratum, np.arange(n) if place is None else place]
        )
        units, unit = np.unique(pairs, axis=0, return_inverse=True)
        strata_positions, stratum_of_unit = np.unique(units[:, 0], return_inverse=True)
        designs[country] = SurveyDesign(unit.ravel(), stratum_of_unit.ravel())
        lone_positions = strata_positions[np.bincount(stratum_of_unit.ravel()) == 1]
        if strata is not None and stratum is not None and lone_positions.size:
            lone_values = [strata.values[i] for i in lone_positions]
            names = ", ".join(format_value(value, strata.labels.get(value)) for value in lone_values)
            note = "with one primary sampling unit, which is compared with the country's mean"
            notes.append(f"strata of {country} {note}: {names}")
    return designs, notes


def _find_positions(
    column: DistinctValueColumn | None, rows: slice, country: str, path: Path
) -> NDArray[np.int64] | None:
    """The position of each row's value in a column; None without the column, or if it is empty for the country.

    Raises:
        ImportFileError: the column is empty in some rows only.
    """
    if column is None:
        return None
    positions = column.value_index[rows].astype(np.int64)
    is_empty = np.array([value is None for value in column.values])[positions]
    if is_empty.any() and not is_empty.all():
        row = int(column.row_numbers[rows][is_empty.argmax()])
        raise ImportFileError(
            f"{path}: row {row}, column '{column.name}': empty, while other respondents of {country} have a value "
            f"({int(is_empty.sum())} rows are empty).",
            "Fill in the values, or leave the column out of [columns] in the mapping.",
        )
    return None if is_empty.all() else positions
