"""What each model's server was found to accept, and the answers of models that were asked in several ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Cell
from auditor.metrics.cell_statistics import MAE, PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.error import mae
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import crossed_jackknife
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.document import Column
from auditor.storage import request_forms
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities
from auditor.storage.costs import CallCounts
from auditor.storage.database import Database
from auditor.storage.request_forms import FormScore


class CapabilityReportRow(ReportModel):
    """What the server of one model or judge was found to accept at the first contact."""

    name: Annotated[str, Column("Model", "name")]
    form: Annotated[str | None, Column("Form")]
    """Form in which structured answers are requested; null where none was requested."""
    dropped_params: Annotated[list[str], Column("Changed or left out", key="not_sent")]
    """Parameters that are left out, by OpenAI's names."""
    dropped_keywords: Annotated[list[str], Column("Schema keywords left out", key="keywords")]
    """Keywords that are left out of JSON schemas; `strict` is the strict mode itself."""
    token_limit_param: Annotated[str, Column("Token limit")]
    """Name under which the limit on output tokens is sent."""
    thinking_tokens: Annotated[int, Column("Tokens for reasoning")]
    """Tokens added to each limit, as room for hidden reasoning."""
    evidence: Annotated[str, Column("Evidence")]
    """What the server answered that led to it."""
    litellm_version: Annotated[str, Column("litellm")]
    """Version of litellm that it was found out with."""
    created_at: str


class RequestFormRow(ReportModel):
    """Answers of one model or judge for one purpose that were requested in one form."""

    name: str
    purpose: str
    form: str
    answers: int


class FormSplitRow(ReportModel):
    """Scores of one model that was asked in several forms: those from one form. Intervals are over countries and
    topics."""

    model: ModelName
    form: Annotated[str, Column("Form")]
    answers: Annotated[int, Column("Answers")]
    """Answers to direct questions with a score."""
    cells: Annotated[int, Column("Cells")]
    pearson_r: Annotated[Estimate, Column("r", show_n=False)]
    mae: Annotated[Estimate, Column("MAE", show_n=False)]


class RequestsReport(ReportModel):
    """How models were asked, below what the configuration asks for."""

    capabilities: list[CapabilityReportRow]
    """Models whose servers were found to accept something; empty for embedded models and answers from files."""
    forms: list[RequestFormRow]
    """Forms of structured answers, read from the requests as sent."""
    form_split: list[FormSplitRow]
    """Models whose direct questions were asked in several forms, as after `run --rediscover`; empty if none was."""


class _FormKey(NamedTuple):
    """A model or judge, the purpose of a call, and the form of the structured answer."""

    name: str
    purpose: str
    form: str


def build_requests_report(db: Database, source: ReportSource) -> RequestsReport:
    """Collect what servers accept and in which forms models answered; compare the forms of a model with several."""
    forms = count_forms(source.call_counts)
    return RequestsReport(
        capabilities=build_capability_rows(source.config, source.capability_history),
        forms=forms,
        form_split=_build_form_split(source, request_forms.load_scores_by_form(db, source.audit.id))
        if find_mixed_models(forms)
        else [],
    )


def build_capability_rows(config: AuditConfig | None, history: Iterable[StoredCapability]) -> list[CapabilityReportRow]:
    """List the current capability of each model and judge that has one, in the config's order."""
    if config is None:
        return []
    current = current_capabilities(history)
    models = config.models_by_name.values()
    return [_build_capability_row(model, stored) for model in models if (stored := current.get(model.capability_key))]


def _build_capability_row(model: ModelSection, stored: StoredCapability) -> CapabilityReportRow:
    """Describe one model's stored capability."""
    capability = stored.capability
    return CapabilityReportRow(
        name=model.name,
        form=capability.form,
        dropped_params=list(capability.dropped_params),
        dropped_keywords=list(capability.dropped_keywords),
        token_limit_param=capability.token_limit_param,
        thinking_tokens=capability.thinking_tokens,
        evidence=stored.evidence,
        litellm_version=stored.litellm_version,
        created_at=stored.created_at,
    )


def count_forms(call_counts: Iterable[CallCounts]) -> list[RequestFormRow]:
    """Count the answers that the audit uses by model, purpose and form, in this order; free texts have no form."""
    answers = Counter[_FormKey]()
    for counts in call_counts:
        if counts.form is not None and counts.is_current:
            answers[_FormKey(counts.name, counts.purpose, counts.form)] += counts.answers
    return [RequestFormRow(**key._asdict(), answers=n) for key, n in sorted(answers.items()) if n]


def find_mixed_models(forms: Iterable[RequestFormRow]) -> dict[str, list[str]]:
    """Models and judges whose answers for one purpose were requested in several forms, with these forms."""
    forms_by_use: dict[tuple[str, str], list[str]] = {}
    for row in forms:
        forms_by_use.setdefault((row.name, row.purpose), []).append(row.form)
    mixed: dict[str, list[str]] = {}
    for (name, _), names_of_forms in forms_by_use.items():
        if len(names_of_forms) > 1:
            mixed[name] = list(dict.fromkeys([*mixed.get(name, []), *names_of_forms]))
    return mixed


def _build_form_split(source: ReportSource, scores: Sequence[FormScore]) -> list[FormSplitRow]:
    """Compare each model's scores with people's for each form, if there are several."""
    forms_by_model: dict[str, dict[str, list[FormScore]]] = {}
    for score in scores:
        forms_by_model.setdefault(score.model, {}).setdefault(score.form, []).append(score)
    return [
        _build_form_row(source, model, form, form_scores)
        for model in source.models
        if len(forms_by_model.get(model, {})) > 1
        for form, form_scores in forms_by_model[model].items()
    ]


def _build_form_row(source: ReportSource, model: str, form: str, scores: Sequence[FormScore]) -> FormSplitRow:
    """Compute r and MAE of the cell means of one model's answers in one form; null for a task."""
    score_by_cell = {Cell(score.country, score.topic): score.score for score in scores}
    cell_scores = np.array([score_by_cell.get(cell, np.nan) for cell in source.cells], dtype=float)
    places = (source.cluster_countries(cell_scores, source.survey_scores), source.topic_index)
    r_interval, mae_interval = (
        crossed_jackknife(statistic, cell_scores, source.survey_scores, *places) for statistic in (PEARSON, MAE)
    )
    return FormSplitRow(
        model=model,
        form=form,
        answers=sum(score.answers for score in scores),
        cells=len(score_by_cell),
        # With too few countries or topics there is no interval, but a value.
        pearson_r=replace(r_interval, value=pearson(cell_scores, source.survey_scores).value),
        mae=replace(mae_interval, value=mae(cell_scores, source.survey_scores).value),
    )
