"""The document of figures that were computed again from scores that a paper's authors released."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.replication import Departure, RecomputedCell
from auditor.reports.document import Document
from auditor.reports.number_format import pluralize
from auditor.reports.sections.replication_run import Replication, build_replication_document

MAX_ROUNDING_ERROR = 1e-9


def build_recorded_document(
    title: str,
    source: str,
    cells: Sequence[RecomputedCell],
    departures: Sequence[Departure],
    audits: Sequence[str],
    files: Sequence[str],
) -> Document:
    """Build the document.

    Args:
        audits: names of the audits that now hold the scores.
        files: a line on each file that was read.
    """
    stored = f"The scores are now audits, so that every report can be made of them: {', '.join(audits)}."
    return build_replication_document(
        Replication(
            title, source, cells, departures, notes=[stored], details=files, kind="Replications",
            summary=_summarize(cells),
        )
    )  # fmt: skip


def _summarize(cells: Sequence[RecomputedCell]) -> str:
    """Say how many figures were computed again, and how far they are from the published ones."""
    published = [cell for cell in cells if not cell.is_own_row and cell.not_run != "not_published"]
    differences = [abs(cell.difference) for cell in cells if cell.difference is not None]
    if not differences:
        return f"None of {pluralize(len(published), 'published figure')} was computed again."
    largest = max(differences)
    distance = (
        "all are equal to 9 decimals" if largest < MAX_ROUNDING_ERROR else f"the largest difference is {largest:.2g}"
    )
    return f"{len(differences)} of {pluralize(len(published), 'published figure')} computed again: {distance}."
