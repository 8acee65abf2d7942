"""Sensitivity of the results to survey nonresponse: the alignment under each treatment of missing answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from auditor.domain import Survey
from auditor.errors import AuditorError
from auditor.reports.data.agreement.alignment import compute_alignment, rank_by_error
from auditor.reports.data.measurement_schema import NonresponseBoundsRow, NonresponseReport, NonresponseTreatmentRow
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores
from auditor.surveys import load_survey, load_survey_facts, select_cells
from auditor.surveys.nonresponse import apply_treatment_to_all_cells
from auditor.surveys.survey_facts import TREATMENTS

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
