"""Figures over models, as papers summarize them, and by attributes of models, such as their size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field
from pydantic.config import JsonDict

from auditor.config import AuditConfig
from auditor.config.installed_probes import list_built_in_probes
from auditor.config.value_checks import PARAMETERS, RELEASED
from auditor.domain import Method
from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.people.alignment import CONCORDANCE, MAE, PEARSON, Statistic
from auditor.metrics.people.over_models import SummaryOverModels, summarize_models, trend_within_families
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.languages import MethodDifferenceRow
from auditor.reports.data.measurement_schema import (
    ConsistencyRow,
    GroupErrorRow,
    PeerAgreementRow,
    RegionGapRow,
    RegionRow,
    RegionsReport,
)
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import ReportSource, has_rescaled_scores
from auditor.reports.document import Column
from auditor.surveys.regions import get_grouping

FiguresByModel = Mapping[str, Mapping[str, float | None]]
"""Values by figure, then model: a figure of `CORE_FIGURES`, or of the `attribute_figures` of a built-in probe."""
CORE_FIGURES = ("mae", "concordance", "pearson_r", "corrected_r", "self_consistency", "accuracy")
"""Figures of a model, as published. `corrected_r` is r without the noise of few samples, which could make r grow with
size where only the noise shrinks; `accuracy` is of a task."""
CORRELATION_BOUNDS, SHARE_BOUNDS, UNBOUNDED = (-1.0, 1.0), (0.0, 1.0), (-inf, inf)
BOUNDS_BY_FIGURE: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("concordance", "pearson_r", "corrected_r", "mean_country_r", "self_consistency"), CORRELATION_BOUNDS
    ),
    **dict.fromkeys(("accuracy", "peer_agreement"), SHARE_BOUNDS),
    **dict.fromkeys(("mae", "variance"), (0.0, inf)),
    **dict.fromkeys(("method_difference", "region_gap"), (-2.0, 2.0)),
}
"""Smallest and largest possible value of a figure; a figure of a probe has none."""
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


def build_attributes_report(
    configs: Sequence[AuditConfig | None], figures: FiguresByModel, equal_series: Sequence[EqualSeries] = ()
) -> AttributesReport | None:
    """Summarize figures by the models' attributes; None where no model has any.

    Args:
        configs: of the audits; of a model in several of them, the first section with attributes counts.
        figures: by figure, then model.
        equal_series: of the method of `SCORE_FIGURES`; of the models of one value, or trend, the first counts in these.
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
        figures=list(_summarize_values(rows, measured, equal_series)),
        trends=adjust_rows(
            _measure_trends(rows, measured, equal_series), "slope", "trends over the number of parameters"
        ),
    )


def _summarize_values(
    rows: Sequence[ModelAttributesRow], figures: FiguresByModel, equal_series: Sequence[EqualSeries]
) -> Iterator[AttributeFigureRow]:
    """Yield each figure over the models with each value of each attribute."""
    for attribute in dict.fromkeys(key for row in rows for key in row.attributes):
        value_by_model = {
            row.model: _label_value(attribute, row.attributes[attribute]) for row in rows if attribute in row.attributes
        }
        for value in sorted(set(value_by_model.values()), key=_order_of_value):
            labelled = [model for model, label in value_by_model.items() if label == value]
            for figure, by_model in figures.items():
                members = {model: by_model.get(model) for model in _count_once(figure, labelled, equal_series)}
                yield AttributeFigureRow(
                    attribute=attribute, value=value, figure=figure, summary=_summarize(figure, members)
                )


def _summarize(figure: str, figure_by_model: Mapping[str, float | None]) -> SummaryOverModels:
    """Summarize a figure over models, within its bounds."""
    return summarize_models(figure_by_model, BOUNDS_BY_FIGURE.get(figure, UNBOUNDED))


def _label_value(attribute: str, value: float | str) -> str:
    """The value by which models are grouped."""
    if attribute == PARAMETERS and isinstance(value, float):
        return next(name for high, name in SIZE_CLASSES if value < high)
    return str(value)[:4] if attribute == RELEASED else str(value)


def _order_of_value(value: str) -> tuple[int, str]:
    """Classes of parameters in their order, other values alphabetically."""
    names = [name for _, name in SIZE_CLASSES]
    return (names.index(value) if value in names else -1, value)


def _measure_trends(
    rows: Sequence[ModelAttributesRow], figures: FiguresByModel, equal_series: Sequence[EqualSeries]
) -> Iterator[AttributeTrendRow]:
    """Yield the trend of each figure within each family of several models, and within all of them."""
    sized = [row for row in rows if PARAMETERS in row.attributes]
    families = list(dict.fromkeys(row.family for row in sized))
    families = [name for name in families if sum(row.family == name for row in sized) > 1]
    for figure, by_model in figures.items():
        for family in (*families, *([None] if len(families) > 1 else [])):
            members = [row for row in sized if row.family == family or (family is None and row.family in families)]
            counted = _count_once(figure, [row.model for row in members], equal_series)
            members = [row for row in members if row.model in counted]
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


def _count_once(figure: str, models: Sequence[str], equal_series: Sequence[EqualSeries]) -> Sequence[str]:
    """The models whose figure counts: for one of `SCORE_FIGURES`, of models with equal scores the first only."""
    if figure not in SCORE_FIGURES:
        return models
    members = [[model for model in models if model in group.models] for group in equal_series]
    repeated = {model for group in members for model in group[1:]}
    return [model for model in models if model not in repeated]


# --- figures of models ------------------------------------------------------------------------------------------


SCORE_FIGURES = ("mae", "concordance", "pearson_r", "corrected_r")
"""Figures that models with equal scores have in common."""


def choose_method(methods: Collection[str]) -> str:
    """The method of the scores whose figures are grouped by attributes: direct questions, where they were asked."""
    return Method.DIRECT.value if Method.DIRECT.value in methods or not methods else min(methods)


def collect_report_figures(
    alignment: Iterable[AlignmentRow], self_consistency: Iterable[ConsistencyRow], of_probes: FiguresByModel, task: Any
) -> FiguresByModel:
    """The figures of an audit's models; of scores by several methods, those of direct questions.

    Args:
        of_probes: the figures of built-in probes.
        task: the report's section, None where nothing was measured.
    """
    rows = list(alignment)
    method = choose_method({row.method for row in rows})
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


OverModelsFigure = Literal[
    "pearson_r", "mean_country_r", "method_difference", "self_consistency", "variance", "peer_agreement", "region_gap"
]
CUT_OFFS: Mapping[str, tuple[float, ...]] = {"WVS": (0.9, 0.8, 0.7), "PEW": (0.85, 0.75, 0.65)}
"""Lowest r of each tier but the last, as in the released code of EvalMORAAL (arXiv 2510.05942), for each survey."""
ERROR_BIN_WIDTH = 0.1
N_ERROR_BINS = 20
"""Errors are from 0 to 2."""


class OverModelsRow(ReportModel):
    """One figure over all models."""

    figure: Annotated[OverModelsFigure, Column("Figure")]
    """`method_difference` is r of direct scores minus r of log-probability scores; `region_gap` is r in the second
    region minus r in the first; `mean_country_r` is the mean, over a region's countries, of r over a country's
    topics."""
    method: Annotated[str, Column("Method", "name")]
    region: Annotated[str | None, Column("Region", "name")] = None
    """Of r in one region; null over all countries."""
    summary: Annotated[
        SummaryOverModels,
        Column("Mean", part="mean", digits=3),
        Column("SD", part="standard_deviation", digits=3),
        Column("Lowest", part="lowest", digits=3),
        Column("Model with the lowest", "name", part="lowest_model"),
        Column("Highest", part="highest", digits=3),
        Column("Model with the highest", "name", part="highest_model"),
    ]


class CutOffTierRow(ReportModel):
    """Models whose r is in one range; ranges are fixed, so that chance may decide between neighbouring ones."""

    cut_offs: Annotated[str, Column("Cut-offs of")]
    """Which of the published lists of cut-offs: for `WVS` or for `PEW`."""
    method: Annotated[str, Column("Method", "name")]
    tier: Annotated[int, Column("Tier")]
    """From 1, the best."""
    min_r: Annotated[float | None, Column("Lowest r")]
    """Null for the last tier, and for models without r."""
    models: Annotated[list[str], Column("Models")]


class ErrorDistributionRow(ReportModel):
    """Distribution of one model's absolute errors over cells; not for log-probability scores, which have none."""

    model: str
    method: str
    counts: list[int]
    """Number of cells with an absolute error in [0, 0.1), [0.1, 0.2), and so on; the last includes 2."""


class EqualSeries(ReportModel):
    """Models whose scores by one method are the same in all cells, as those of one model under two names are.

    Means of agreement over models count them once.
    """

    method: str
    models: list[str]


AnySeriesRow = TypeVar("AnySeriesRow", AlignmentRow, GroupErrorRow, RegionRow, RegionGapRow)


class OverModelsReport(ReportModel):
    """Figures over models, each of which counts once; models of one family are not averaged."""

    figures: list[OverModelsRow]
    variance_deviation: float | None
    """Standard deviation, over cells of all models, of the variance of the direct scores of a cell's samples."""
    cut_off_tiers: list[CutOffTierRow]
    errors: list[ErrorDistributionRow]


def build_over_models_report(
    source: ReportSource,
    alignment: Sequence[AlignmentRow],
    methods: Sequence[MethodDifferenceRow],
    consistency: Sequence[ConsistencyRow],
    peer_agreement: Sequence[PeerAgreementRow],
    regions: RegionsReport,
    countries: Sequence[GroupErrorRow],
    equal_series: Sequence[EqualSeries],
) -> OverModelsReport | None:
    """Summarize the figures of the models; None for a task, or without scores.

    Args:
        equal_series: of which means of agreement count the first model only.
    """
    if not alignment:
        return None
    counted, countries = drop_repeated(alignment, equal_series), drop_repeated(countries, equal_series)
    rows, gaps = drop_repeated(regions.rows, equal_series), drop_repeated(regions.gaps, equal_series)
    regions = regions.model_copy(update={"rows": rows, "gaps": gaps})
    columns = [i for i, (method, _) in enumerate(source.columns) if method == Method.DIRECT]
    variances = source.variance_matrix[columns]
    variances = variances[~np.isnan(variances)]
    return OverModelsReport(
        figures=[
            *_summarize_agreement(counted, methods),
            *_summarize_regions(regions),
            *_summarize_countries(countries, get_grouping(source.survey).region_by_country),
            *_summarize_consistency(consistency, peer_agreement),
        ],
        variance_deviation=float(variances.std(ddof=1)) if len(variances) > 1 else None,
        cut_off_tiers=list(_sort_into_tiers(alignment)),
        errors=list(_count_errors(source)),
    )


def drop_repeated(rows: Iterable[AnySeriesRow], equal_series: Iterable[EqualSeries]) -> list[AnySeriesRow]:
    """The rows of series of scores, of equal ones that of the first only."""
    repeated = {(group.method, model) for group in equal_series for model in group.models[1:]}
    return [row for row in rows if (row.method, row.model) not in repeated]


def _summarize_agreement(
    alignment: Sequence[AlignmentRow], methods: Sequence[MethodDifferenceRow]
) -> Iterator[OverModelsRow]:
    """Yield the rows of r by each method, and of the difference between the methods."""
    for method in dict.fromkeys(row.method for row in alignment):
        r_by_model = {row.model: row.pearson_r.value for row in alignment if row.method == method}
        yield OverModelsRow(figure="pearson_r", method=method, summary=_summarize("pearson_r", r_by_model))
    if methods:
        differences = {row.model: row.difference.value for row in methods}
        yield OverModelsRow(
            figure="method_difference", method=Method.DIRECT.value, summary=_summarize("method_difference", differences)
        )


def _summarize_regions(regions: RegionsReport) -> Iterator[OverModelsRow]:
    """Yield the rows of r in each region, and of the gap where there are two regions."""
    for method, region in dict.fromkeys((row.method, row.region) for row in regions.rows):
        r_by_model = {
            row.model: row.pearson_r.value for row in regions.rows if (row.method, row.region) == (method, region)
        }
        summary = _summarize("pearson_r", r_by_model)
        yield OverModelsRow(figure="pearson_r", method=method, region=region, summary=summary)
    for method in dict.fromkeys(gap.method for gap in regions.gaps):
        gaps = [gap for gap in regions.gaps if gap.method == method]
        if all(gap.compared == 2 for gap in gaps):  # of more regions, models differ in the pair that is compared
            summary = _summarize("region_gap", {gap.model: gap.r_gap.value for gap in gaps})
            yield OverModelsRow(figure="region_gap", method=method, summary=summary)


def _summarize_countries(
    countries: Sequence[GroupErrorRow], region_by_country: Mapping[str, str]
) -> Iterator[OverModelsRow]:
    """Yield the rows of the mean of r over the countries of each region; countries without r are left out."""
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in countries:
        if row.name in region_by_country and row.pearson_r.value is not None:
            r_by_model = values.setdefault((row.method, region_by_country[row.name]), {})
            r_by_model.setdefault(row.model, []).append(row.pearson_r.value)
    for (method, region), r_by_model in values.items():
        summary = _summarize("mean_country_r", {model: float(np.mean(r)) for model, r in r_by_model.items()})
        yield OverModelsRow(figure="mean_country_r", method=method, region=region, summary=summary)


def _summarize_consistency(
    consistency: Sequence[ConsistencyRow], peer_agreement: Sequence[PeerAgreementRow]
) -> Iterator[OverModelsRow]:
    """Yield the rows of self-consistency and variance, by method, and of peer agreement."""
    for method in dict.fromkeys(row.method for row in consistency):
        rows = [row for row in consistency if row.method == method]
        cosines = _summarize("self_consistency", {row.model: row.cosine.value for row in rows})
        variances = _summarize("variance", {row.model: row.variance.value for row in rows})
        yield OverModelsRow(figure="self_consistency", method=method, summary=cosines)
        yield OverModelsRow(figure="variance", method=method, summary=variances)
    if peer_agreement:
        summary = _summarize("peer_agreement", {row.model: row.agreement.value for row in peer_agreement})
        yield OverModelsRow(figure="peer_agreement", method=Method.DIRECT.value, summary=summary)


def _sort_into_tiers(alignment: Sequence[AlignmentRow]) -> Iterator[CutOffTierRow]:
    """Yield the tiers by each list of cut-offs and each method; models without r are in none."""
    for name, cut_offs in CUT_OFFS.items():
        for method in dict.fromkeys(row.method for row in alignment):
            r_by_model = {
                row.model: row.pearson_r.value
                for row in alignment
                if row.method == method and row.pearson_r.value is not None
            }
            tiers = {model: sum(r < cut_off for cut_off in cut_offs) + 1 for model, r in r_by_model.items()}
            for tier, min_r in enumerate([*cut_offs, None], start=1):
                models = sorted(
                    (model for model in tiers if tiers[model] == tier), key=lambda model: -r_by_model[model]
                )
                yield CutOffTierRow(cut_offs=name, method=method, tier=tier, min_r=min_r, models=models)


def _count_errors(source: ReportSource) -> Iterator[ErrorDistributionRow]:
    """Yield the histogram of absolute errors of each series of scores that has errors."""
    for scores, (method, model) in zip(source.score_matrix, source.columns, strict=True):
        if has_rescaled_scores(method):
            continue
        errors = np.abs(scores - source.survey_scores)
        # Scores are decimal fractions: an error of 0.3 must not be counted as 0.2999.
        bins = np.floor(errors[~np.isnan(errors)] / ERROR_BIN_WIDTH + 1e-9).astype(int)
        counts = np.bincount(np.minimum(bins, N_ERROR_BINS - 1), minlength=N_ERROR_BINS)
        yield ErrorDistributionRow(model=model, method=method, counts=counts.tolist())


def find_equal_series(source: ReportSource) -> list[EqualSeries]:
    """Groups of at least two models with the same scores by one method in all cells, in the order of the models."""
    groups: list[list[int]] = []
    for column, (method, _) in enumerate(source.columns):
        scores = source.score_matrix[column]
        if np.isnan(scores).all():
            continue
        group = next(
            (
                members
                for members in groups
                if source.columns[members[0]][0] == method
                and np.allclose(source.score_matrix[members[0]], scores, rtol=0, atol=1e-9, equal_nan=True)
            ),
            None,
        )
        if group is None:
            groups.append([column])
        else:
            group.append(column)
    return [
        EqualSeries(method=source.columns[group[0]][0], models=[source.columns[i][1] for i in group])
        for group in groups
        if len(group) > 1
    ]
