"""Have judges drifted? Their agreement with people in two audits, each with its labelled random sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.difference_interval import subtract_independent
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.differences.label_figures import LabelFigures
from auditor.reports.data.differences.schema import JudgeDriftRow
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair


def compare_judges_with_people(figures: LabelFigures, pairs: Sequence[SeriesPair]) -> list[JudgeDriftRow]:
    """Compare the judges that two audits share, for each two audits of the pairs; p-values are adjusted for all rows.

    The samples of two audits are independent.
    """
    audits = {(first.audit_id, second.audit_id): (first, second) for first, second in pairs}
    rows = [
        row
        for (first_id, second_id), (first, second) in audits.items()
        if first_id != second_id
        for row in _compare_judges(figures, first, second)
    ]
    return adjust_rows(rows, "change", "drift of judges")


def _compare_judges(figures: LabelFigures, first: ScoreSeries, second: ScoreSeries) -> Iterator[JudgeDriftRow]:
    """Compare the judges of two audits; nothing where the labels of one do not suffice."""
    qualities = figures.load(first), figures.load(second)
    if not all(quality is not None and quality.is_measured for quality in qualities):
        return
    first_rows, second_rows = ({row.judge: row for row in quality.judges} for quality in qualities if quality)
    for judge, first_row in first_rows.items():
        second_row = second_rows.get(judge)
        if second_row is None:
            continue
        for name, before, after in (
            ("accuracy", first_row.accuracy, second_row.accuracy),
            ("excess", first_row.excess, second_row.excess),
        ):
            yield JudgeDriftRow(
                judge=judge,
                first_audit=first.audit,
                second_audit=second.audit,
                figure=name,
                first=before,
                second=after,
                change=subtract_independent(after, before),
            )
