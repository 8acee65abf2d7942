"""Compare two series' shares of VALID after correction by people's labels."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.difference_interval import subtract_independent
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.differences.label_figures import LabelFigures
from auditor.reports.data.differences.schema import CorrectedShareDifferences
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair
from auditor.reports.data.judge_quality.schema import JudgeQualityReport


def compare_corrected_shares(
    figures: LabelFigures, pairs: Sequence[SeriesPair]
) -> list[CorrectedShareDifferences | None]:
    """Compare the corrected shares of each pair; None where a model of one of its audits has too few labels."""
    comparisons = [_compare(first, second, figures.load(first), figures.load(second)) for first, second in pairs]
    compared = [comparison for comparison in comparisons if comparison is not None]
    adjusted = iter(adjust_rows(compared, "difference", "corrected shares of all pairs"))
    return [None if comparison is None else next(adjusted) for comparison in comparisons]


def _compare(
    first: ScoreSeries,
    second: ScoreSeries,
    first_quality: JudgeQualityReport | None,
    second_quality: JudgeQualityReport | None,
) -> CorrectedShareDifferences | None:
    """Compare two series; the samples of two models are independent, in one audit too."""
    rows = [
        None if quality is None else quality.corrected_shares.get(series.model)
        for series, quality in ((first, first_quality), (second, second_quality))
    ]
    first_row, second_row = rows
    if first_row is None or second_row is None or first_row is second_row:
        return None
    return CorrectedShareDifferences(
        first=first_row.corrected,
        second=second_row.corrected,
        judges=(second_row.judges.value or 0.0) - (first_row.judges.value or 0.0),
        difference=subtract_independent(second_row.corrected, first_row.corrected),
    )
