"""Published figures, and the same figures computed here."""

from __future__ import annotations

from typing import Literal

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import ReportModel

Origin = Literal["paper", "summary", "release"]
"""Where the quotes stand: in the paper, in a summary of it, or in results that its authors released."""
NotRun = Literal["not_in_folder", "not_published"]
"""Why a published figure has none beside it: the folder has no scores of it, or nothing is printed in the cell."""


class PublishedCell(ReportModel):
    """One published figure."""

    table: str
    title: str
    """What the table shows."""
    row: str
    column: str
    value: float | None
    """In the unit of the paper, such as percent; 89% is 0.89, 14.8K is 14800. Null for a dash or a misprint."""
    printed: str
    """The characters of the paper."""
    quote: str
    """The line of the source that holds it, word for word."""
    place: str
    origin: Origin
    note: str = ""
    """What is to be known about this row, such as an inconsistency; values are never corrected."""


class RecomputedCell(ReportModel):
    """A published figure, and the same figure computed from the scores that its authors released."""

    published: PublishedCell
    recomputed: Estimate | None
    """The figure of our report; null if it was not computed."""
    difference: float | None
    """Our figure minus the published one."""
    not_run: NotRun | None = None
    """Why there is no recomputed figure; null if there is one."""


class PublishedTableInfo(ReportModel):
    """A published table, as the list of papers shows it."""

    paper: str
    table: str
    title: str
    place: str
    origin: Origin
    n_cells: int
    released: list[str]
    """Names of the files with the scores behind the table, if the authors released them."""
