"""Rows of an imported file that are about no cell of the survey, by country and by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from auditor.domain import Cell, Survey
from auditor.errors import ImportFileError
from auditor.surveys.countries import country_code
from auditor.surveys.table_formats import NA
from auditor.text_safety import truncate_text

MAX_LISTED_NAMES = 10


@dataclass(frozen=True, slots=True)
class UnmatchedRows:
    """Counts of the rows that match no cell of a survey.

    Attributes:
        rows: all of them.
        countries, topics: rows by a name that the survey does not have; a row may count in both.
        cells: rows by cell whose country and topic the survey has, but in which people were not asked.
        suggestions: the most similar name of the survey by unknown name.
    """

    rows: int
    countries: Mapping[str, int]
    topics: Mapping[str, int]
    cells: Mapping[Cell, int]
    suggestions: Mapping[str, str]

    def describe(self) -> list[str]:
        """A line for each kind of unmatched rows, with their names and counts; none if all rows match."""
        cells = {f"{cell.country} × {cell.topic}": n for cell, n in self.cells.items()}
        kinds = {
            "countries that the survey does not have": self.countries,
            "topics that the survey does not have": self.topics,
            "cells in which people were not asked": cells,
        }
        return [
            f"{sum(counts.values()):,} rows about {kind}: {self._list(counts)}"
            for kind, counts in kinds.items()
            if counts
        ]

    def require_none(self, source: str) -> None:
        """Raise ImportFileError if a row does not match."""
        if self.rows:
            raise ImportFileError(
                f"{source}: {self.rows:,} rows do not match the survey: {'; '.join(self.describe())}.",
                "Spell the names as `auditor surveys show SURVEY` does, remove the rows, or leave out --strict.",
            )

    def _list(self, counts: Mapping[str, int]) -> str:
        """The most frequent names with their counts and suggestions."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        hints = {name: f"; did you mean {suggestion}?" for name, suggestion in self.suggestions.items()}
        names = [f"{truncate_text(name)} ({n:,}{hints.get(name, '')})" for name, n in ranked[:MAX_LISTED_NAMES]]
        n_omitted = len(ranked) - len(names)
        return ", ".join([*names, *([f"and {n_omitted:,} more"] if n_omitted else [])])


def count_unmatched_rows(
    survey: Survey, rows_by_cell: Mapping[Cell, int], known_cells: Collection[Cell] | None = None
) -> UnmatchedRows:
    """Count the rows about cells that the survey does not have.

    Args:
        rows_by_cell: number of rows by cell, in the survey's spelling.
        known_cells: cells that the survey has; None for those with a score.
    """
    known_cells = survey.scores if known_cells is None else known_cells
    known_countries, known_topics = set(survey.countries), set(survey.topics)
    countries, topics, cells = Counter[str](), Counter[str](), Counter[Cell]()
    n_rows = 0
    for cell, n in rows_by_cell.items():
        if cell in known_cells:
            continue
        n_rows += n
        if cell.country not in known_countries:
            countries[cell.country] += n
        if cell.topic not in known_topics:
            topics[cell.topic] += n
        if cell.country in known_countries and cell.topic in known_topics:
            cells[cell] += n
    suggestions = {
        name: similar[0]
        for names, known in ((countries, survey.countries), (topics, survey.topics))
        for name, _ in names.most_common(MAX_LISTED_NAMES)
        if (similar := get_close_matches(name, known, n=1, cutoff=0.7))
    }
    if NA in countries and (namibia := next((name for name in known_countries if country_code(name) == "NAM"), None)):
        suggestions[NA] = namibia
    return UnmatchedRows(n_rows, countries, topics, cells, suggestions)
