"""Whether the result depends on what becomes of respondents without an answer: the alignment under each treatment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from auditor.domain import Survey
from auditor.errors import AuditorError
from auditor.reports.agreement.section import alignment
from auditor.reports.estimate_conversion import STRETCHED, is_stretched
from auditor.reports.measurement_schema import BoundsRow, NonresponsePart, TreatmentRow
from auditor.reports.report_source import Floats, Source, load, refuse_task
from auditor.storage.database import Database
from auditor.surveys import load_facts, load_survey, select
from auditor.surveys.nonresponse import complete
from auditor.surveys.survey_facts import TREATMENTS

AS_AUDITED = "as audited"


def nonresponse_experiment(db: Database, audit_name: str) -> NonresponsePart:
    """The experiment on a stored audit; no model is asked anything.

    Raises:
        StorageError: there is no such audit.
        UsageError: it is of a task.
    """
    source = load(db, audit_name)
    refuse_task(audit_name, source.survey, "the experiment `nonresponse`")
    return nonresponse(source)


def nonresponse(source: Source) -> NonresponsePart:
    """Every alignment figure and the ranking of models, under the treatments that the survey allows."""
    surveys, reasons = _surveys(source)
    rows = [_row(source, AS_AUDITED, source.survey), *(_row(source, name, s) for name, s in surveys.items())]
    holds = None if len(rows) == 1 or len(source.columns) < 2 else all(r.ranking == rows[0].ranking for r in rows)
    reason = None
    if holds is None:
        reason = "fewer than two models" if len(source.columns) < 2 else "no treatment is possible with this survey"
    return NonresponsePart(
        treatments=rows,
        not_possible=reasons,
        bounds=_bounds(source, surveys),
        ranking_holds=holds,
        reason=reason,
    )


def _row(source: Source, treatment: str, survey: Survey) -> TreatmentRow:
    rows = alignment(dataclasses.replace(source, survey=survey))
    ranked = sorted(rows, key=lambda r: (r.pearson_r is None, -(r.pearson_r or 0.0), r.model, r.method))
    several = len({r.method for r in rows}) > 1
    return TreatmentRow(
        treatment=treatment,
        alignment=rows,
        ranking=[f"{r.model} ({r.method})" if several else r.model for r in ranked],
    )


def _surveys(source: Source) -> tuple[dict[str, Survey], dict[str, str]]:
    """The survey under each treatment, read from its source anew, and why others are not possible."""
    if source.config is None:
        return {}, dict.fromkeys(TREATMENTS, "scores were imported: the audit does not know where its survey is")
    if (section := source.config.survey) is None:
        return {}, dict.fromkeys(TREATMENTS, "the audit has no survey")
    try:
        survey = select(load_survey(section.source), section.countries, section.topics)
        facts = load_facts(section.source)
    except AuditorError as error:
        return {}, dict.fromkeys(TREATMENTS, error.message)
    possible: dict[str, Survey] = {}
    reasons: dict[str, str] = {}
    for treatment in TREATMENTS:
        try:
            possible[treatment] = complete(survey, treatment, facts)
        except AuditorError as error:
            reasons[treatment] = error.message
    return possible, reasons


def _bounds(source: Source, surveys: Mapping[str, Survey]) -> list[BoundsRow]:
    """The MAE if in every cell those without an answer thought as it suits the model best, and worst."""
    if not {"low", "high"} <= surveys.keys():
        return []
    low, high = (dataclasses.replace(source, survey=surveys[end]).truth for end in ("low", "high"))
    return [_bound(source, column, low, high) for column in range(len(source.columns))]


def _bound(source: Source, column: int, low: Floats, high: Floats) -> BoundsRow:
    method, model = source.columns[column]
    scores = source.matrix[column]
    there = ~np.isnan(scores) & ~np.isnan(low) & ~np.isnan(high)
    x, least, most = scores[there], low[there], high[there]
    best = np.abs(x - np.clip(x, least, most))
    worst = np.maximum(np.abs(x - least), np.abs(x - most))
    n = int(there.sum())
    reason = STRETCHED if is_stretched(method) else None if n else "no cell has both a score and bounds"
    return BoundsRow(
        model=model,
        method=method,
        n=n,
        mae_best=None if reason else float(best.mean()),
        mae_worst=None if reason else float(worst.mean()),
        reason=reason,
    )
