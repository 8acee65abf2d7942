"""Figures of models by their attributes, such as how they were tuned, and trends over the number of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.config import JsonDict

from auditor.config import AuditConfig
from auditor.config.installed_probes import list_built_in_probes
from auditor.config.value_checks import PARAMETERS, RELEASED
from auditor.domain import Method
from auditor.metrics.cell_statistics import CONCORDANCE, MAE, PEARSON, Statistic
from auditor.metrics.estimate import Tested
from auditor.metrics.model_trend import trend_within_families
from auditor.metrics.over_models import SummaryOverModels, summarize_models
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.measurement_schema import ConsistencyRow
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.document import Column

FiguresByModel = Mapping[str, Mapping[str, float | None]]
"""Values by figure, then model: a figure of `CORE_FIGURES`, or of the `attribute_figures` of a built-in probe."""
CORE_FIGURES = ("mae", "concordance", "pearson_r", "corrected_r", "self_consistency", "accuracy")
"""Figures of a model, as published. `corrected_r` is r without the noise of few samples, which could make r grow with
size where only the noise shrinks; `accuracy` is of a task."""
SIZE_CLASSES = ((1e9, "below 1B"), (1e10, "1B to 10B"), (1e11, "10B to 100B"), (float("inf"), "100B and more"))
"""Upper end of each class of parameters, and its name."""


def _add_figures(schema: JsonDict) -> None:
    """Add the names of all figures to a JSON schema."""
    schema["enum"] = [*CORE_FIGURES, *(name for probe in list_built_in_probes() for name in probe.attribute_figures)]


class ModelAttributesRow(ReportModel):
    """The attributes of one model."""

    model: ModelName
    family: str
    attributes: dict[str, float | str]
    """As configured; `parameters` is a number."""


class AttributeFigureRow(ReportModel):
    """One figure over the models with one value of an attribute; each model counts once."""

    attribute: Annotated[str, Column("Attribute", "name")]
    value: Annotated[str, Column("Value", "name")]
    """Parameters by powers of ten, dates of release by year."""
    figure: Annotated[str, Column("Figure"), Field(json_schema_extra=_add_figures)]
    summary: Annotated[
        SummaryOverModels,
        Column("Mean", part="mean", digits=3, emphasis=True),
        Column("SD", part="standard_deviation", digits=3),
        Column("Lowest", part="lowest", digits=3),
        Column("Highest", part="highest", digits=3),
    ]


class AttributeTrendRow(ReportModel):
    """Trend of one figure over the number of parameters within a family of models."""

    figure: Annotated[str, Column("Figure"), Field(json_schema_extra=_add_figures)]
    family: Annotated[str | None, Column("Family", "name")]
    """Null for all families with several models together, each with an intercept of its own."""
    slope: Annotated[
        Tested, Column("Change with ten times as many parameters", key="slope", digits=3, style="signed", emphasis=True)
    ]
    """n counts models. The adjusted p-value is for all trends."""


class AttributesReport(ReportModel):
    """Models by their attributes."""

    models: list[ModelAttributesRow]
    figures: list[AttributeFigureRow]
    trends: list[AttributeTrendRow]
    """Empty where no model has a number of parameters."""


def build_attributes_report(configs: Sequence[AuditConfig | None], figures: FiguresByModel) -> AttributesReport | None:
    """Summarize figures by the models' attributes; None where no model has any.

    Args:
        configs: of the audits; of a model in several of them, the first section with attributes counts.
        figures: by figure, then model.
    """
    sections = [section for config in configs if config for section in config.models]
    rows = list(
        {
            section.name: ModelAttributesRow(
                model=section.name, family=section.resolved_family, attributes=dict(section.attributes)
            )
            for section in reversed(sections)
            if section.attributes
        }.values()
    )[::-1]
    if not rows:
        return None
    measured = {figure: values for figure, values in figures.items() if any(v is not None for v in values.values())}
    return AttributesReport(
        models=rows,
        figures=list(_summarize_values(rows, measured)),
        trends=adjust_rows(_measure_trends(rows, measured), "slope", "trends over the number of parameters"),
    )


def _summarize_values(rows: Sequence[ModelAttributesRow], figures: FiguresByModel) -> Iterator[AttributeFigureRow]:
    """Yield each figure over the models with each value of each attribute."""
    for attribute in dict.fromkeys(key for row in rows for key in row.attributes):
        value_by_model = {
            row.model: _label_value(attribute, row.attributes[attribute]) for row in rows if attribute in row.attributes
        }
        for value in sorted(set(value_by_model.values()), key=_order_of_value):
            for figure, by_model in figures.items():
                members = {model: by_model.get(model) for model, label in value_by_model.items() if label == value}
                yield AttributeFigureRow(
                    attribute=attribute, value=value, figure=figure, summary=summarize_models(members)
                )


def _label_value(attribute: str, value: float | str) -> str:
    """The value by which models are grouped."""
    if attribute == PARAMETERS and isinstance(value, float):
        return next(name for high, name in SIZE_CLASSES if value < high)
    return str(value)[:4] if attribute == RELEASED else str(value)


def _order_of_value(value: str) -> tuple[int, str]:
    """Classes of parameters in their order, other values alphabetically."""
    names = [name for _, name in SIZE_CLASSES]
    return (names.index(value) if value in names else -1, value)


def _measure_trends(rows: Sequence[ModelAttributesRow], figures: FiguresByModel) -> Iterator[AttributeTrendRow]:
    """Yield the trend of each figure within each family of several models, and within all of them."""
    sized = [row for row in rows if PARAMETERS in row.attributes]
    families = list(dict.fromkeys(row.family for row in sized))
    families = [name for name in families if sum(row.family == name for row in sized) > 1]
    for figure, by_model in figures.items():
        for family in (*families, *([None] if len(families) > 1 else [])):
            members = [row for row in sized if row.family == family or (family is None and row.family in families)]
            values = [by_model.get(row.model) for row in members]
            yield AttributeTrendRow(
                figure=figure,
                family=family,
                slope=trend_within_families(
                    np.array([np.nan if value is None else value for value in values]),
                    np.array([float(row.attributes[PARAMETERS]) for row in members]),
                    [row.family for row in members],
                ),
            )


# --- figures of models ------------------------------------------------------------------------------------------


def collect_report_figures(
    alignment: Iterable[AlignmentRow], self_consistency: Iterable[ConsistencyRow], of_probes: FiguresByModel, task: Any
) -> FiguresByModel:
    """The figures of an audit's models; of scores by several methods, those of direct questions.

    Args:
        of_probes: the figures of built-in probes.
        task: the report's section, None where nothing was measured.
    """
    rows = list(alignment)
    methods = {row.method for row in rows}
    method = Method.DIRECT.value if Method.DIRECT.value in methods or not methods else min(methods)
    rows = [row for row in rows if row.method == method]
    return {
        "mae": {row.model: row.mae.value for row in rows},
        "concordance": {row.model: row.concordance.value for row in rows},
        "pearson_r": {row.model: row.pearson_r.value for row in rows},
        "corrected_r": {row.model: row.corrected_r.value for row in rows},
        "self_consistency": {row.model: row.cosine.value for row in self_consistency},
        **of_probes,
        "accuracy": {row.model: row.accuracy.value for row in task.models} if task else {},
    }


def collect_score_figures(
    scores_by_model: Mapping[str, Sequence[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]],
) -> FiguresByModel:
    """The figures of models from their scores; of a model with scores in several audits, the mean over the audits.

    Args:
        scores_by_model: for each model, of each audit: its scores and people's, shape (cells,) each, without nan.
    """
    statistics: dict[str, Statistic] = {"mae": MAE, "concordance": CONCORDANCE, "pearson_r": PEARSON}
    figures: dict[str, dict[str, float | None]] = {figure: {} for figure in statistics}
    for model, audits in scores_by_model.items():
        for figure, statistic in statistics.items():
            values = [
                float(statistic.value(statistic.moments(scores, truth).sum(0)[None])[0])
                for scores, truth in audits
                if len(scores)
            ]
            defined = [value for value in values if not np.isnan(value)]
            figures[figure][model] = fmean(defined) if defined else None
    return figures
