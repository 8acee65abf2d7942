"""All figures that presets name, by name: of the reports of audits, and of the trials on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

from auditor.metrics.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.logic_figures import LOGIC_FIGURES, LOGIC_MODEL_FIGURES
from auditor.replications.logic_groups import LOGIC_GROUP_FIGURES
from auditor.replications.semantic_figures import SEMANTIC_FIGURES, SEMANTIC_MODEL_FIGURES
from auditor.replications.survey_figures import EXTREME_FIGURES, SURVEY_FIGURES, SURVEY_MODEL_FIGURES, ExtremeFigure
from auditor.replications.survey_groups import SURVEY_GROUP_FIGURES, TIER_MODEL_FIGURES
from auditor.reports.data.report_schema import Report

Figure = TypeVar("Figure")
FigureReader: TypeAlias = Callable[[MeasuredAudit], Estimate]
ModelFigureReader: TypeAlias = Callable[[MeasuredAudit, str], Estimate]
GroupFigureReader: TypeAlias = Callable[[MeasuredAudit, str], Mapping[str, Estimate]]


def _of_report(read: Callable[[Report], Estimate]) -> FigureReader:
    """The reader of an audit for a figure that its report has."""
    return lambda audit: read(audit.report)


def _of_model_in_report(read: Callable[[Report, str], Figure]) -> Callable[[MeasuredAudit, str], Figure]:
    """The reader of an audit and a model for a figure that the audit's report has."""
    return lambda audit, model: read(audit.report, model)


def _read_extreme(extreme: ExtremeFigure, audit: MeasuredAudit) -> Estimate:
    """The figure of the model with the lowest or the highest, with the interval that it has as a model's figure."""
    model = extreme.find_model(audit.report)
    if model is None:
        return Estimate(None, 0, reason="no model has this figure")
    return SURVEY_MODEL_FIGURES[extreme.model_figure](audit.report, model)


FIGURES: Mapping[str, FigureReader] = {
    **{name: _of_report(read) for name, read in SURVEY_FIGURES.items()},
    **{name: partial(_read_extreme, extreme) for name, extreme in EXTREME_FIGURES.items()},
    **LOGIC_FIGURES,
    **SEMANTIC_FIGURES,
}
"""Readers of figures over all models of an audit."""
MODEL_FIGURES: Mapping[str, ModelFigureReader] = {
    **{
        name: _of_model_in_report(read)
        for name, read in {**SURVEY_MODEL_FIGURES, **TIER_MODEL_FIGURES, **LOGIC_MODEL_FIGURES}.items()
    },
    **SEMANTIC_MODEL_FIGURES,
}
"""Readers of figures of one model."""
GROUP_FIGURES: Mapping[str, GroupFigureReader] = {
    name: _of_model_in_report(read) for name, read in {**SURVEY_GROUP_FIGURES, **LOGIC_GROUP_FIGURES}.items()
}
"""Readers of figures of one model by group, such as by country."""
