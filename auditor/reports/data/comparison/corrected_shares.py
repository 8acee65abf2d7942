"""Compare two series' shares of VALID after correction by people's labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from auditor.domain.labels import LabelKind
from auditor.metrics.estimate import Estimate
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.comparison.schema import CorrectedShareComparison
from auditor.reports.data.comparison.series_pairs import ScoreSeries, SeriesPair
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.judge_quality.judges import two_sided_p_value
from auditor.reports.data.judge_quality.schema import CorrectedShareRow, JudgeQualityReport
from auditor.reports.data.source_loading import load_source
from auditor.storage.database import Database
from auditor.storage.label_draws import load_draw


def compare_corrected_shares(db: Database, pairs: Sequence[SeriesPair]) -> list[CorrectedShareComparison | None]:
    """Compare the corrected shares of each pair; None where a model of one of its audits has too few labels."""

    @cache
    def load(audit_id: int, audit_name: str) -> JudgeQualityReport | None:
        """The figures of judges of an audit; None if no random sample was drawn."""
        if load_draw(db, audit_id, LabelKind.TRACE) is None:
            return None
        return build_judge_quality(load_source(db, audit_name))

    comparisons = [
        _compare(first, second, *(load(s.audit_id, s.audit) for s in (first, second))) for first, second in pairs
    ]
    adjusted = iter(adjust_rows([comparison for comparison in comparisons if comparison is not None]))
    return [None if comparison is None else next(adjusted) for comparison in comparisons]


def _compare(
    first: ScoreSeries,
    second: ScoreSeries,
    first_quality: JudgeQualityReport | None,
    second_quality: JudgeQualityReport | None,
) -> CorrectedShareComparison | None:
    """Compare two series: of one audit by their joint sample, of two audits as independent."""
    rows = [
        None if quality is None else quality.corrected_shares.get(series.model)
        for series, quality in ((first, first_quality), (second, second_quality))
    ]
    first_row, second_row = rows
    if first_row is None or second_row is None or first_quality is None or first_row is second_row:
        return None
    difference = (
        _find_difference(first_quality, first.model, second.model)
        if first.audit_id == second.audit_id
        else _subtract(first_row, second_row)
    )
    return CorrectedShareComparison(
        first=first_row.corrected,
        second=second_row.corrected,
        judges=(second_row.judges.value or 0.0) - (first_row.judges.value or 0.0),
        difference=difference,
        p_value=two_sided_p_value(difference),
    )


def _find_difference(quality: JudgeQualityReport, first: str, second: str) -> Estimate:
    """The second model's share minus the first's, in one audit; the report has each pair in one direction."""
    for row in quality.differences:
        if (row.second, row.first) == (first, second):
            return row.corrected
        if (row.first, row.second) == (first, second):
            return _negate(row.corrected)
    raise LookupError(f"no difference between {first!r} and {second!r}")


def _negate(estimate: Estimate) -> Estimate:
    """The difference in the other direction."""
    value, low, high = (None if end is None else -end for end in (estimate.value, estimate.ci_high, estimate.ci_low))
    return Estimate(value, estimate.n, low, high, estimate.reason, estimate.resampled, estimate.generalizes_to)


def _subtract(first: CorrectedShareRow, second: CorrectedShareRow) -> Estimate:
    """The second share minus the first of independent samples, with Newcombe's interval.

    It combines the distances of both values from the ends of their intervals (Newcombe, Statistics in Medicine 17,
    1998, method 10; Zou & Donner, Statistics in Medicine 27, 2008, for other intervals than Wilson's).
    """
    a, b = first.corrected, second.corrected
    n = a.n + b.n
    if a.value is None or b.value is None or None in (a.ci_low, a.ci_high, b.ci_low, b.ci_high):
        return Estimate(None, n, reason="one of the corrected shares has no interval")
    value = b.value - a.value
    low = value - (((b.value - (b.ci_low or 0.0)) ** 2 + ((a.ci_high or 0.0) - a.value) ** 2) ** 0.5)
    high = value + ((((b.ci_high or 0.0) - b.value) ** 2 + (a.value - (a.ci_low or 0.0)) ** 2) ** 0.5)
    return Estimate(value, n, low, high, generalizes_to=a.generalizes_to)
