"""The figures of opinions that `auditor check` compares with thresholds."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.probes.distribution.figures.schema import DistributionReport
from auditor.probes.distribution.opinions import OPINION_PURPOSE
from auditor.reports.data.gates.gate_estimates import SETTINGS_REASON, GatedFigure, count_lost, take_absolute
from auditor.reports.data.report_schema import Report


def list_gate_figures(report: Report, threshold: str) -> list[GatedFigure]:
    """A figure of each model's opinions, by mode; a shift counts in either direction.

    The diversity of sampled answers has no value for models that were asked with other sampling settings than the
    configuration's, if these differ between models.
    """
    distribution = report.find(DistributionReport)
    if distribution is None:
        return []
    field = threshold.partition("_")[2]
    refusing_models = report.sampling.refusing_models(OPINION_PURPOSE)
    figures = []
    for row in distribution.models:
        estimate: Estimate = getattr(row, field)
        if field == "order_effect":
            estimate = take_absolute(estimate)
        elif field == "variance_ratio" and row.is_sampled and row.model in refusing_models:
            estimate = Estimate(None, 0, reason=SETTINGS_REASON)
        lost = max(row.unusable, count_lost(report, "distribution", row.model))
        figures.append(GatedFigure(f"{row.model} ({row.mode})", estimate, row.model, lost))
    return figures
