"""Agreement with the population that a survey sampled: sampling error, relations of topics, nonresponse."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import ceil
from typing import Annotated

import numpy as np

from auditor.domain import Survey
from auditor.errors import AuditorError
from auditor.metrics.intervals.estimate import SHARED_LEVEL, Estimate
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import MAE
from auditor.metrics.people.structure import compare_structure
from auditor.metrics.people.survey_error import (
    NO_ERROR_REASON,
    CorrectedAgreement,
    correct_for_survey_error,
    sampling_floor_of_mae,
)
from auditor.reports.data.adjusted_tests import adjust_claims
from auditor.reports.data.agreement.alignment import AlignmentRow, compute_alignment, rank_by_error
from auditor.reports.data.agreement.baselines import load_source_facts
from auditor.reports.data.measurement_schema import (
    CeilingRow,
    NonresponseBoundsRow,
    NonresponseReport,
    NonresponseTreatmentRow,
    StructureRow,
)
from auditor.reports.data.report_model import ROUNDING_ERROR, ModelName, ReportModel
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, FloatArray, ReportSource, has_rescaled_scores
from auditor.reports.document import Column
from auditor.surveys import load_survey, load_survey_facts, select_cells
from auditor.surveys.survey_facts import TREATMENTS, apply_treatment_to_all_cells, score_errors, uses_design_effect

TEST_FAMILY = "models that relate topics as people do"


def compute_structure(source: ReportSource) -> list[StructureRow]:
    """Compare each series' correlations among topics with people's. A claim needs both forms (intersection-union)."""
    if not source.columns:  # a task
        return []
    max_permutations = ceil(len(source.columns) / SHARED_LEVEL)  # so that Holm's smallest p-value can be reached
    structures = [
        compare_structure(
            scores, source.survey_scores, source.country_index, source.topic_index, source.seed,
            max_permutations=max_permutations,
        )
        for scores in source.score_matrix
    ]  # fmt: skip
    return [
        StructureRow(
            model=model,
            method=method,
            structure=structure,
            is_found=test.is_significant_at(SHARED_LEVEL),
            **dict(test),
        )
        for (method, model), structure, test in zip(
            source.columns,
            structures,
            adjust_claims([structure.p_value for structure in structures], TEST_FAMILY),
            strict=True,
        )
    ]


BELOW_FLOOR_REASON = (
    "the scores repeat the sampling error of this survey, which can be taken out only of scores that do not have it"
)
MIN_SHOWN_CHANGE = 0.05
"""Smallest change of MAE, as a share of the raw one, for which page one shows the corrected figure too."""


class PopulationAgreementRow(ReportModel):
    """Agreement of one model with the population: without the sampling error of people's scores.

    Figures are over the cells with a known standard error. Intervals are over other countries and topics; they hold if
    the standard errors do.
    """

    model: ModelName
    method: str
    mae: Annotated[Estimate, Column("MAE", show_n=False, emphasis=True)]
    """By analytic simulation extrapolation (Cook & Stefanski 1994)."""
    rmse: Annotated[Estimate, Column("RMSE", show_n=False)]
    pearson_r: Annotated[Estimate, Column("r", show_n=False)]
    """Corrected for attenuation on people's side only; the noise of few samples of the model is still in it."""
    concordance: Annotated[Estimate, Column("Concordance", show_n=False)]
    cells: Annotated[int, Column("Cells")]
    """Cells with both scores and a standard error of people's."""
    design_effect: float
    """By which variances of people's scores that are not those of an import were multiplied: `survey.design_effect`."""
    takes_file_errors: bool
    """Whether the standard errors are those of the survey's file, by the number of respondents, and not of an import
    with weights and clusters."""
    mae_floor: Annotated[float | None, Column("Floor of MAE")]
    """MAE that is expected of a model that knows the population exactly: sqrt(2/π) times the mean standard error."""
    is_below_floor: bool
    """Whether the upper end of the raw MAE's interval is below the floor: the model repeats this survey's sample. Both
    are over the cells with a known standard error. Nothing is corrected then; the estimates have the reason."""
    is_above_ceiling: bool
    """Whether the lower end of the raw r's interval is above the upper end of the highest r that people's sampling
    error allows."""
    reason: str | None = None
    """Why nothing is corrected."""


def compute_population_agreement(
    source: ReportSource, alignment: list[AlignmentRow], ceilings: list[CeilingRow]
) -> list[PopulationAgreementRow]:
    """Correct the agreement of each series of scores for people's sampling error.

    Args:
        alignment: the raw figures, a row for each series.
        ceilings: the survey's reliability, over all cells first.
    """
    facts = load_source_facts(source)
    design_effect = source.config.survey.design_effect if source.config and source.config.survey else 1.0
    survey_facts = None if isinstance(facts, str) else facts
    errors_by_cell = score_errors(source.survey, survey_facts, design_effect)
    design_effect = design_effect if uses_design_effect(source.survey, survey_facts) else 1.0
    errors = np.array([errors_by_cell.get(cell, np.nan) for cell in source.cells])
    highest = ceilings[0].reliability.ci_high if ceilings else None
    ceiling = None if highest is None else max(0.0, highest) ** 0.5
    return [
        _build_row(source, column, errors, design_effect, alignment[column], ceiling, isinstance(facts, str))
        for column in range(len(source.columns))
    ]


def _build_row(
    source: ReportSource,
    column: int,
    errors: FloatArray,
    design_effect: float,
    raw: AlignmentRow,
    ceiling: float | None,
    takes_file_errors: bool,
) -> PopulationAgreementRow:
    """Correct one series; `errors` has shape (cells,), nan where unknown."""
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    is_known = ~(np.isnan(scores) | np.isnan(truth) | np.isnan(errors))
    reason = None if is_known.any() else NO_ERROR_REASON
    if has_rescaled_scores(method):
        reason = RESCALED_SCORES_REASON
    missing = Estimate(None, int(is_known.sum()), reason=reason or NO_ERROR_REASON)
    corrected = CorrectedAgreement(missing, missing, missing, missing)
    mae, floor = raw.mae, None
    places = (source.cluster_countries(scores, truth, errors), source.topic_index)
    if reason is None:
        floor = sampling_floor_of_mae(errors[is_known])
        if is_known.sum() < mae.n:  # the floor is that of the cells with a known error
            mae = crossed_jackknife(MAE, np.where(is_known, scores, np.nan), truth, *places)
    is_below_floor = floor is not None and _is_below(mae, floor)
    if is_below_floor:  # the model has the sampling error of people's scores too
        missing = dataclasses.replace(missing, reason=BELOW_FLOOR_REASON)
        corrected = CorrectedAgreement(missing, missing, missing, missing)
    elif reason is None:
        corrected = correct_for_survey_error(scores, truth, errors, *places)
    r_low = raw.pearson_r.ci_low
    return PopulationAgreementRow(
        model=model,
        method=method,
        mae=corrected.mae,
        rmse=corrected.rmse,
        pearson_r=corrected.pearson_r,
        concordance=corrected.concordance,
        cells=int(is_known.sum()),
        design_effect=design_effect,
        takes_file_errors=takes_file_errors,
        mae_floor=floor,
        is_below_floor=is_below_floor,
        is_above_ceiling=ceiling is not None and r_low is not None and r_low > ceiling,
        reason=reason,
    )


def _is_below(mae: Estimate, floor: float) -> bool:
    """Whether an error is clearly below the floor; one of 0 on enough cells is, though it has no interval."""
    if mae.ci_high is not None:
        return mae.ci_high < floor
    return mae.value is not None and mae.value < ROUNDING_ERROR < floor and mae.n >= MIN_UNITS


AS_AUDITED = "as audited"
SAME_SCORES = {"bounds": "drop", "zero": "neutral"}
"""Configured treatments whose scores are those of another treatment."""


def build_nonresponse_report(source: ReportSource) -> NonresponseReport:
    """Compute alignment, ranking and MAE bounds under each treatment that the survey allows."""
    surveys, reasons = _apply_treatments(source)
    rows = [
        _build_treatment_row(source, AS_AUDITED, source.survey),
        *(_build_treatment_row(source, treatment, treated_survey) for treatment, treated_survey in surveys.items()),
    ]
    reason = _explain_missing_comparison(source, surveys)
    ranking_holds = None if reason else all(row.ranking == rows[0].ranking for row in rows)
    return NonresponseReport(
        treatments=rows,
        not_possible=reasons,
        bounds=_build_bounds_rows(source, surveys),
        ranking_holds=ranking_holds,
        reason=reason,
    )


def _explain_missing_comparison(source: ReportSource, surveys: Mapping[str, Survey]) -> str | None:
    """Why rankings cannot be compared between treatments; None if they can be."""
    if len(source.columns) < 2:
        return "fewer than two models"
    if not surveys or source.config is None or source.config.survey is None:
        return "no treatment is possible with this survey"
    audited = source.config.survey.nonresponse
    if set(surveys) == {SAME_SCORES.get(audited, audited)}:
        return f"the audit’s own treatment, {audited}, is the only one that is possible with this survey"
    return None


def _build_treatment_row(source: ReportSource, treatment: str, survey: Survey) -> NonresponseTreatmentRow:
    """Compute alignment and the ranking by mean absolute error with one version of the survey."""
    rows = compute_alignment(dataclasses.replace(source, survey=survey), family=f"agreement with people, {treatment}")
    ranked = sorted(rows, key=lambda row: (*rank_by_error(row), row.model, row.method))
    has_several_methods = len({row.method for row in rows}) > 1
    return NonresponseTreatmentRow(
        treatment=treatment,
        alignment=rows,
        ranking=[f"{row.model} ({row.method})" if has_several_methods else row.model for row in ranked],
    )


def _apply_treatments(source: ReportSource) -> tuple[dict[str, Survey], dict[str, str]]:
    """Load the survey again and apply each treatment.

    Returns:
        The surveys by treatment, and the reasons why other treatments are not possible.
    """
    if source.config is None:
        return {}, dict.fromkeys(TREATMENTS, "scores were imported without the survey’s respondents")
    if (section := source.config.survey) is None:
        return {}, dict.fromkeys(TREATMENTS, "the audit has no survey")
    try:
        survey = select_cells(load_survey(section.source), section.countries, section.topics)
        facts = load_survey_facts(section.source)
    except AuditorError as error:
        return {}, dict.fromkeys(TREATMENTS, error.message)
    possible: dict[str, Survey] = {}
    reasons: dict[str, str] = {}
    for treatment in TREATMENTS:
        try:
            possible[treatment] = apply_treatment_to_all_cells(survey, treatment, facts)
        except AuditorError as error:
            reasons[treatment] = error.message
    return possible, reasons


def _build_bounds_rows(source: ReportSource, surveys: Mapping[str, Survey]) -> list[NonresponseBoundsRow]:
    """Bound each model's MAE: nonrespondents answer in every cell as suits the model best, or worst.

    Empty unless the survey can be recomputed with all nonrespondents at the low, and at the high, end of the scale.
    """
    if not {"low", "high"} <= surveys.keys():
        return []
    low, high = (dataclasses.replace(source, survey=surveys[treatment]).survey_scores for treatment in ("low", "high"))
    return [_build_bounds_row(source, column, low, high) for column in range(len(source.columns))]


def _build_bounds_row(
    source: ReportSource, column: int, truth_low: FloatArray, truth_high: FloatArray
) -> NonresponseBoundsRow:
    """Bound the MAE of one model and method, if people's mean in each cell may lie anywhere from low to high.

    The smallest error of a cell is the distance of the score from that range, the largest that from its farther
    end. `truth_low` and `truth_high` have shape (cells,).
    """
    method, model = source.columns[column]
    scores = source.score_matrix[column]
    has_bounds = ~np.isnan(scores) & ~np.isnan(truth_low) & ~np.isnan(truth_high)
    known_scores, lowest_truth, highest_truth = scores[has_bounds], truth_low[has_bounds], truth_high[has_bounds]
    smallest_error = np.abs(known_scores - np.clip(known_scores, lowest_truth, highest_truth))
    largest_error = np.maximum(np.abs(known_scores - lowest_truth), np.abs(known_scores - highest_truth))
    n = int(has_bounds.sum())
    reason = (
        RESCALED_SCORES_REASON if has_rescaled_scores(method) else None if n else "no cell has both a score and bounds"
    )
    return NonresponseBoundsRow(
        model=model,
        method=method,
        n=n,
        mae_best=None if reason else float(smallest_error.mean()),
        mae_worst=None if reason else float(largest_error.mean()),
        reason=reason,
    )
