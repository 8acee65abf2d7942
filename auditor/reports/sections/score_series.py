"""The report's series of scores, each of one model by one method, with their labels and the ids of their figures."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.text_safety import slugify


@dataclass(frozen=True, slots=True)
class ScoreSeries:
    """One series of scores.

    Attributes:
        label: names the series in tables and figures.
        slug: the label as a part of figure ids and file names; unique in the report.
    """

    method: str
    model: str
    label: str
    slug: str

    @property
    def key(self) -> tuple[str, str]:
        """Method and model, which identify the series in the report."""
        return self.method, self.model


def list_score_series(report: Report) -> list[ScoreSeries]:
    """The series of the report, in the order of its alignment rows."""
    labels, series = SeriesLabels.of(report), list[ScoreSeries]()
    for row in report.alignment:
        label = labels.label(row.method, row.model)
        slug = slugify(label)
        used_slugs = {entry.slug for entry in series}
        candidates = (slug, *(f"{slug}-{i}" for i in range(2, len(series) + 3)))
        unique_slug = next(candidate for candidate in candidates if candidate not in used_slugs)
        series.append(ScoreSeries(row.method, row.model, label, unique_slug))
    return series


def list_series_with_errors(report: Report) -> list[ScoreSeries]:
    """The series whose distance from people is known: those whose scores are not rescaled within the model."""
    return [series for series in list_score_series(report) if not has_rescaled_scores(series.method)]
