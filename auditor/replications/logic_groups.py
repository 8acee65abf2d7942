"""Figures of one model's comparisons in each wording of the question. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from auditor.metrics.estimate import Estimate
from auditor.probes.logic.figures.schema import LogicReport
from auditor.reports.data.report_schema import Report

Share = Literal["commutativity", "human_agreement"]


def _read_by_wording(report: Report, model: str, *, share: Share) -> dict[str, Estimate]:
    """A share as the mean over sets, by wording of the question."""
    rows = [row for row in logic.wordings if row.judge == model] if (logic := report.find(LogicReport)) else []
    figures = ((row.wording, getattr(row.instances, share)) for row in rows if row.wording is not None)
    return {
        f"wording {wording + 1}": Estimate(
            figure.value, figure.n, figure.ci_low, figure.ci_high, figure.reason, figure.resampled
        )
        for wording, figure in figures
    }


LOGIC_GROUP_FIGURES: Mapping[str, Callable[[Report, str], Mapping[str, Estimate]]] = {
    "logic.commutativity.by_wording": partial(_read_by_wording, share="commutativity"),
    "logic.human_agreement.by_wording": partial(_read_by_wording, share="human_agreement"),
}
"""Readers of a model's figures by wording, by the names that presets use."""
