"""What an audit's figures owe to choices of its design: the figures of the experiment `robustness`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from auditor.metrics.robustness import DesignRun, DesignScore, measure_robustness
from auditor.reports.data.report_model import ReportModel

TextLoader: TypeAlias = Callable[[str, int, str, str], str | None]
"""From a model, a run, a country and a topic to the text of its first usable answer; None where there is none."""


class RobustnessReport(ReportModel):
    """Figures of a design over all models."""

    audit: str
    runs: int
    models: list[str]


def build_robustness(
    audit: str,
    runs: Sequence[DesignRun],
    scores: Sequence[DesignScore],
    *,
    regions: Mapping[str, str] | None = None,
    load_text: TextLoader = lambda _model, _run, _country, _topic: None,
) -> RobustnessReport:
    """Compute the figures of a design.

    Args:
        runs, scores: see `measure_robustness`.
        regions: the region of each country.
        load_text: reads the answers that are quoted, a few pairs in all.
    """
    measured = measure_robustness(runs, scores, regions=regions)
    return RobustnessReport(audit=audit, runs=len(measured.runs), models=list(measured.models))
