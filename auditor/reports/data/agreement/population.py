"""Agreement with the population that a survey asked a sample of, and whether a model is closer than that allows."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from auditor.metrics.cell_statistics import MAE
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.survey_error import (
    NO_ERROR_REASON,
    CorrectedAgreement,
    correct_for_survey_error,
    sampling_floor_of_mae,
)
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.baselines import load_source_facts
from auditor.reports.data.measurement_schema import CeilingRow
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores
from auditor.reports.document import Column
from auditor.surveys.survey_facts import score_errors, uses_design_effect

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
    are over the cells with a known standard error."""
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
    if reason is None:
        places = (source.cluster_countries(scores, truth, errors), source.topic_index)
        corrected = correct_for_survey_error(scores, truth, errors, *places)
    floor = sampling_floor_of_mae(errors[is_known]) if reason is None else None
    mae_high, r_low = raw.mae.ci_high, raw.pearson_r.ci_low
    if reason is None and is_known.sum() < raw.mae.n:  # the floor is that of the cells with a known error
        places = (source.cluster_countries(scores, truth, errors), source.topic_index)
        mae_high = crossed_jackknife(MAE, np.where(is_known, scores, np.nan), truth, *places).ci_high
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
        is_below_floor=floor is not None and mae_high is not None and mae_high < floor,
        is_above_ceiling=ceiling is not None and r_low is not None and r_low > ceiling,
        reason=reason,
    )
