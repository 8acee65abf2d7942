"""All figures that presets name, by name: of the reports of audits, and of the trials on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from auditor.metrics.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.logic_figures import LOGIC_FIGURES, LOGIC_MODEL_FIGURES
from auditor.replications.semantic_figures import SEMANTIC_FIGURES, SEMANTIC_MODEL_FIGURES
from auditor.replications.survey_figures import SURVEY_FIGURES, SURVEY_MODEL_FIGURES
from auditor.reports.data.report_schema import Report

FigureReader: TypeAlias = Callable[[MeasuredAudit], Estimate]
ModelFigureReader: TypeAlias = Callable[[MeasuredAudit, str], Estimate]


def _of_report(read: Callable[[Report], Estimate]) -> FigureReader:
    """The reader of an audit for a figure that its report has."""
    return lambda audit: read(audit.report)


def _of_model_in_report(read: Callable[[Report, str], Estimate]) -> ModelFigureReader:
    """The reader of an audit and a model for a figure that the audit's report has."""
    return lambda audit, model: read(audit.report, model)


FIGURES: Mapping[str, FigureReader] = {
    **{name: _of_report(read) for name, read in SURVEY_FIGURES.items()},
    **LOGIC_FIGURES,
    **SEMANTIC_FIGURES,
}
"""Readers of figures over all models of an audit."""
MODEL_FIGURES: Mapping[str, ModelFigureReader] = {
    **{name: _of_model_in_report(read) for name, read in {**SURVEY_MODEL_FIGURES, **LOGIC_MODEL_FIGURES}.items()},
    **SEMANTIC_MODEL_FIGURES,
}
"""Readers of figures of one model."""
