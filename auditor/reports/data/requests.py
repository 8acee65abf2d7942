"""How models were asked: what their servers accept, forms of structured answers, and sampling settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from auditor.config import AuditConfig, ModelSection
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Capability, Cell, Purpose
from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON, mae
from auditor.reports.data.report_model import FlatRow, ModelName, ReportModel, publish
from auditor.reports.data.report_source import ReportSource
from auditor.reports.document import Column
from auditor.storage import capabilities
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import Alteration, FormScore, current_capabilities
from auditor.storage.costs import CallCounts
from auditor.storage.database import Database


class CapabilityReportRow(FlatRow):
    """What the server of one model or judge was found to accept at the first contact."""

    name: Annotated[str, Column("Model", "name")]
    capability: Annotated[
        Capability,
        publish("form", "dropped_params", "dropped_keywords", "token_limit_param", "thinking_tokens"),
        Column("Form", part="form"),
        Column("Changed or left out", key="not_sent", part="dropped_params"),
        Column("Schema keywords left out", key="keywords", part="dropped_keywords"),
        Column("Token limit", part="token_limit_param"),
        Column("Tokens for reasoning", part="thinking_tokens"),
    ]
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
        form_split=_build_form_split(source, capabilities.load_scores_by_form(db, source.audit.id))
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
    return CapabilityReportRow(
        name=model.name,
        capability=stored.capability,
        evidence=stored.evidence,
        litellm_version=stored.litellm_version,
        created_at=stored.created_at,
    )


def count_forms(call_counts: Iterable[CallCounts]) -> list[RequestFormRow]:
    """Count the answers that the audit uses by model, purpose and form, in this order; free texts have no form."""
    answers = Counter[_FormKey]()
    for counts in call_counts:
        if counts.version.form is not None and counts.is_current:
            answers[_FormKey(counts.name, counts.purpose, counts.version.form)] += counts.sums.answers
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


SAMPLING_PARAMS = ("temperature", "top_p", "top_k", "min_p")
SAMPLED_PURPOSES = (
    Purpose.DIRECT,
    *(purpose for name in list_built_in_names() if (purpose := load_built_in(name).sampled_purpose) is not None),
)
"""Purposes whose questions are asked several times, so that the spread of the answers is measured."""
INCOMPARABLE_REASON = (
    "the two models were asked with different sampling settings, because one of them rejects a setting"
)
Settings = tuple[tuple[str, str], ...]
"""Sampling parameters as sent, by name."""


class SamplingSettingsRow(ReportModel):
    """Sampling settings of one model's answers for one purpose."""

    model: str
    purpose: Annotated[str, Field(json_schema_extra={"enum": [purpose.value for purpose in SAMPLED_PURPOSES]})]
    requested: dict[str, float]
    """Parameters that the configuration sets, by name."""
    sent: list[dict[str, float | str]]
    """Parameters as sent; one that the model's server refuses is left out. More than one entry if they changed during
    the audit."""
    honoured: bool
    """Whether every request was sent with the settings of the configuration."""
    label: str
    """The settings as sent, in words. Models with equal labels are comparable."""


class SamplingReport(ReportModel):
    """Sampling settings by model, and whether they differ because a model's server refuses one."""

    sampling_settings_differ: bool
    """Whether figures on the spread of answers (self-consistency, variance, agreement of samples) are not comparable
    between the models of some purpose."""
    rows: list[SamplingSettingsRow]

    def labels(self, purpose: Purpose) -> dict[str, str]:
        """Settings in words by model, of a purpose for which they differ; empty where all figures are comparable."""
        rows = [row for row in self.rows if row.purpose == purpose]
        return {row.model: row.label for row in rows} if settings_differ(rows) else {}

    def refusing_models(self, purpose: Purpose) -> list[str]:
        """Models that were not asked with the configured settings, of a purpose for which the settings differ."""
        rows = [row for row in self.rows if row.purpose == purpose]
        return [row.model for row in rows if not row.honoured] if settings_differ(rows) else []

    def are_comparable(self, first: str, second: str, purpose: Purpose) -> bool:
        """Whether the spread of two models' answers is comparable: a difference is one that the configuration sets."""
        rows = {row.model: row for row in self.rows if row.purpose == purpose}
        return first not in rows or second not in rows or not settings_differ([rows[first], rows[second]])


@dataclass(frozen=True, slots=True)
class _SentSettings:
    """The settings of one model's requests.

    Attributes:
        requested: as the configuration sets them.
        sent: one entry for each way in which requests were altered.
    """

    requested: Mapping[str, float]
    sent: Sequence[Mapping[str, float | str]]


def build_sampling_report(config: AuditConfig | None, call_counts: Iterable[CallCounts]) -> SamplingReport:
    """Collect the sampling settings of all answers that the audit uses; no rows for imported scores."""
    alterations = [
        Alteration(counts.name, counts.purpose, counts.version.altered)
        for counts in call_counts
        if counts.sums.answers and counts.is_current
    ]
    rows = build_sampling_rows(config, alterations)
    differ = any(settings_differ([row for row in rows if row.purpose == purpose]) for purpose in SAMPLED_PURPOSES)
    return SamplingReport(sampling_settings_differ=differ, rows=rows)


def build_sampling_rows(config: AuditConfig | None, alterations: Iterable[Alteration]) -> list[SamplingSettingsRow]:
    """Describe the sampling settings of each model and purpose, in the config's order; empty for imported scores.

    Answers whose requests are not known, as those from a file, have no row.
    """
    if config is None:
        return []
    altered_by_use: dict[tuple[str, str], set[str]] = {}
    for name, purpose, altered in alterations:
        if altered is not None:
            altered_by_use.setdefault((name, purpose), set()).add(altered)
    servers = sorted({model.api_base for model in config.models if model.api_base})
    return [
        _build_row(
            model,
            _describe_source(model, servers),
            purpose,
            _list_settings(_requested_settings(config, model, purpose), alterations_of_use),
        )
        for purpose in SAMPLED_PURPOSES
        for model in config.models
        if (alterations_of_use := altered_by_use.get((model.name, purpose)))
    ]


def parse_alterations(altered: str) -> dict[str, str | None]:
    """Parameters that were not sent as requested, by name: their value as sent, None if they were left out.

    Args:
        altered: as in `auditor.domain.Answer`, such as `seed, temperature=1`.
    """
    settings = (setting.partition("=") for setting in altered.split(", ") if setting)
    return {name: sent_value if separator else None for name, separator, sent_value in settings}


def _requested_settings(config: AuditConfig, model: ModelSection, purpose: Purpose) -> dict[str, float]:
    """Sampling parameters that the configuration sets for a model's answers for a purpose."""
    temperatures = {
        load_built_in(name).sampled_purpose: probe.sampled_temperature for name, probe in config.probes.stages.items()
    }
    default_temperature = config.direct.temperature if purpose is Purpose.DIRECT else temperatures.get(purpose)
    params: dict[str, Any] = {
        "temperature": default_temperature if model.temperature is None else model.temperature,
        "top_p": config.direct.top_p if purpose is Purpose.DIRECT else None,
        **model.params,
    }
    return {name: float(params[name]) for name in SAMPLING_PARAMS if isinstance(params.get(name), (int, float))}


def _list_settings(requested: Mapping[str, float], altered: Collection[str]) -> _SentSettings:
    """The settings as sent, for each way in which requests were altered; equal ones once."""
    distinct: dict[Settings, Mapping[str, float | str]] = {}
    for alteration in sorted(altered):
        changes = parse_alterations(alteration)
        sent = {name: _as_number(changes.get(name, number)) for name, number in requested.items()}
        known = {name: number for name, number in sent.items() if number is not None}
        distinct[tuple(sorted((name, str(number)) for name, number in known.items()))] = known
    return _SentSettings(requested, list(distinct.values()))


def _as_number(sent_value: float | str | None) -> float | str | None:
    """A value as a number where it is one."""
    try:
        return None if sent_value is None else float(sent_value)
    except ValueError:
        return sent_value


def _describe_source(model: ModelSection, servers: Sequence[str]) -> str:
    """Whose defaults a model has; with an address of its own, the provider's name is only that of the protocol.

    Several servers are numbered, as their defaults need not be the same.
    """
    if model.api_base is None:
        return f"{model.provider.prefix}’s"
    return "the server’s" if len(servers) == 1 else f"server {servers.index(model.api_base) + 1}’s"


def _build_row(model: ModelSection, source: str, purpose: Purpose, settings: _SentSettings) -> SamplingSettingsRow:
    """Describe one model's settings."""
    requested, sent = dict(settings.requested), [dict(entry) for entry in settings.sent]
    phrases = [_describe_settings(source, requested, entry) for entry in sent]
    return SamplingSettingsRow(
        model=model.name,
        purpose=purpose.value,
        requested=requested,
        sent=sent,
        honoured=all(entry == requested for entry in sent),
        label=" or ".join(phrases),
    )


def _describe_settings(source: str, requested: Mapping[str, float], sent: Mapping[str, float | str]) -> str:
    """The settings in words; one that was left out is the default of `source`, which is not known."""
    phrases = []
    for name in requested:
        number = sent.get(name)
        sent_text = f"{number:g}" if isinstance(number, float) else number
        phrases.append(f"{source} default {name}" if sent_text is None else f"{name} {sent_text}")
    return ", ".join(phrases)


def settings_differ(rows: Sequence[SamplingSettingsRow]) -> bool:
    """Whether settings differ because a model's server refuses one; differences that the user set do not count.

    Settings that changed during the audit are equal to no other model's.
    """
    if len(rows) < 2 or all(row.honoured for row in rows):
        return False
    return len({row.label for row in rows}) > 1 or any(len(row.sent) > 1 for row in rows)
