"""How models were asked: what servers accept, and marks of figures whose sampling settings differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from auditor.domain import AnswerForm, Capability, Purpose
from auditor.reports.data.coverage.counts import ModelVersionRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import (
    CapabilityReportRow,
    FormSplitRow,
    SamplingReport,
    find_mixed_models,
    parse_alterations,
)
from auditor.reports.document import Block, Cell, Column, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import format_count, pluralize
from auditor.reports.sections.phrasing import tabulate

FLAG = "†"


class ModelRow(Protocol):
    """A row of the report about one model."""

    @property
    def model(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SamplingMarks:
    """The sampling settings of each model in words, by name; empty where they do not differ.

    Attributes:
        refusing_models: models whose servers refuse a setting of the configuration.
    """

    label_by_model: Mapping[str, str]
    refusing_models: Sequence[str] = ()

    @classmethod
    def of(cls, sampling: SamplingReport, purpose: Purpose) -> SamplingMarks:
        """The marks of the answers for one purpose."""
        return cls(sampling.labels(purpose), sampling.refusing_models(purpose))

    @property
    def columns(self) -> list[Column]:
        """A column with each model's settings; none where they do not differ."""
        return [Column("Sampling")] if self.label_by_model else []

    @property
    def derived(self) -> dict[str, Callable[[ModelRow], Cell]]:
        """The function that computes the column's cells, by its key."""
        return {"sampling": lambda row: self.label_by_model.get(row.model)}

    def cells(self, model: str) -> list[Cell]:
        """The column's cell for a model; none where the settings do not differ."""
        return [self.label_by_model.get(model)] if self.label_by_model else []

    def remark(self, figures: str) -> str:
        """A sentence for a caption: which figures are not comparable between models; empty where all are."""
        if not self.label_by_model:
            return ""
        return f" Sampling: settings as they were sent. {figures} of models with different settings are not comparable."

    def flag(self, label: str, model: str) -> str:
        """A label in a plot, with a sign if the model was asked with other settings than the configuration's."""
        return f"{label} {FLAG}" if model in self.refusing_models else label

    @property
    def flag_remark(self) -> str:
        """A sentence for a plot's caption that explains the sign; empty where all models are comparable."""
        return f" {FLAG} Asked with other sampling settings, so not comparable." if self.refusing_models else ""

    def mark(self, label: str, model: str) -> str:
        """A label in a sentence or a table, followed by the model's settings where they differ."""
        settings = self.label_by_model.get(model)
        return f"{label} ({settings})" if settings else label


NO_MARKS = SamplingMarks({})
"""Where all figures are comparable."""


FORM_LABELS: Mapping[str, str] = {
    AnswerForm.JSON_SCHEMA: "JSON schema",
    AnswerForm.JSON_OBJECT: "JSON object",
    AnswerForm.TOOL: "tool call",
    AnswerForm.TEXT: "text",
}


def build_requests_subsection(report: Report) -> Section | None:
    """Build the subsection; None where nothing is known of the requests, or all were sent as configured."""
    requests = report.requests
    sentences = [*_describe_poorer_forms(report), *_describe_altered_requests(report.served)]
    blocks: list[Block] = [*map(Paragraph, sentences)]
    if requests.capabilities or _list_unknown_models(report):
        blocks.insert(0, _build_capability_table(report))
    if requests.form_split:
        blocks.append(_build_form_table(requests.form_split))
    return Section("requests", "How the models were asked", blocks) if blocks else None


def describe_forms(report: Report, name: str) -> str | None:
    """The forms of a model's structured answers, with the number of answers if there are several; None if none."""
    answers = Counter[str]()
    for row in report.requests.forms:
        if row.name == name:
            answers[row.form] += row.answers
    if len(answers) == 1:
        return label_form(next(iter(answers)))
    return ", ".join(f"{label_form(form)} ({format_count(n)})" for form, n in answers.items()) or None


def describe_mixed_forms(report: Report) -> Iterator[str]:
    """Yield a sentence for each model or judge that was asked in several forms, as after `run --rediscover`."""
    for name in find_mixed_models(report.requests.forms):
        yield (
            f"The structured answers of {name} were requested in several forms ({describe_forms(report, name)}), so "
            "its figures are a mixture of them. “How the models were asked” has the figures by form."
        )


def label_form(form: str) -> str:
    """A form of structured answers in words."""
    return FORM_LABELS.get(form, form)


def _build_capability_table(report: Report) -> Table:
    """Tabulate what each model's server was found to accept."""
    unknown_models = _list_unknown_models(report)
    return tabulate(
        "capabilities",
        "What each model’s server accepts",
        "Detected at the first contact with each model. Form: how structured answers were requested. Changed or left "
        "out: parameters not sent as configured, with the value sent instead, if any. Tokens for reasoning: added to "
        "each limit. Evidence: what the server rejected; “Why did requests fail?” quotes its responses.",
        [*report.requests.capabilities, *unknown_models],
        CapabilityReportRow,
        {
            "form": lambda row: (
                "not detected" if row in unknown_models else describe_forms(report, row.name) or _label_found_form(row)
            ),
            "not_sent": lambda row: None if row in unknown_models else _list_alterations(report.served, row),
            "keywords": lambda row: (
                None if row in unknown_models else ", ".join(row.capability.dropped_keywords) or "none"
            ),
            "token_limit_param": lambda row: None if row in unknown_models else row.capability.token_limit_param,
            "thinking_tokens": lambda row: None if row in unknown_models else row.capability.thinking_tokens,
            "evidence": lambda row: Name(row.evidence) if row.evidence else None,
            "litellm_version": lambda row: row.litellm_version or None,
        },
    )


def _list_unknown_models(report: Report) -> list[CapabilityReportRow]:
    """An empty row for each model without any success, of which nothing was found out."""
    known_names = {row.name for row in report.requests.capabilities}
    names = dict.fromkeys(model.name for model in report.failures.unusable_models)
    return [
        CapabilityReportRow(name=name, capability=Capability(), evidence="", litellm_version="", created_at="")
        for name in names
        if name not in known_names
    ]


def _label_found_form(row: CapabilityReportRow) -> str | None:
    """The form that was found out, in words; None if none was."""
    form = row.capability.form
    return label_form(form) if form else None


def _describe_poorer_forms(report: Report) -> Iterator[Text]:
    """Yield a sentence for each model whose structured answers were not requested by a JSON schema."""
    for row in report.requests.capabilities:
        if (form := row.capability.form) is not None and form != AnswerForm.JSON_SCHEMA:
            yield [
                "Structured answers of ",
                Name(row.name),
                f" were requested in the form “{label_form(form)}”, not as JSON schema.",
            ]


def _list_alterations(served: Sequence[ModelVersionRow], row: CapabilityReportRow) -> str:
    """Parameters of one model's answered requests that were not sent as configured; what was found if none is known."""
    altered = {
        entry.version.altered: None
        for entry in served
        if entry.version.name == row.name and entry.version.altered is not None
    }
    texts = [alteration or "none" for alteration in altered] or [", ".join(row.capability.dropped_params) or "none"]
    return " or ".join(texts)


def _build_form_table(rows: Sequence[FormSplitRow]) -> Table:
    """Tabulate agreement with people by the form in which a model was asked."""
    return tabulate(
        "form-split",
        "Agreement with people by form",
        "Models that were asked in several forms, as after run --rediscover: r (higher is better) and MAE (lower is "
        "better) of the answers in each form. 95% CIs are for other countries and topics like these. The forms cover "
        "different cells or samples, so a difference may have other causes than the form.",
        rows,
        FormSplitRow,
        {"form": lambda row: label_form(row.form)},
    )


def _describe_altered_requests(rows: Sequence[ModelVersionRow]) -> Iterator[Text]:
    """Yield a sentence for each model and set of parameters that were not sent as configured."""
    answers = Counter[tuple[str, str]]()
    for row in rows:
        if row.version.altered:
            answers[row.version.name, row.version.altered] += row.answers
    for (name, alterations), n in sorted(answers.items()):
        changes = parse_alterations(alterations).items()
        texts = (
            f"{key} was left out" if sent_value is None else f"{key} was sent as {sent_value}"
            for key, sent_value in changes
        )
        verb = "was" if n == 1 else "were"
        yield [
            f"{pluralize(n, 'answered request')} to ",
            Name(name),
            f" {verb} not sent as configured: {'; '.join(texts)}.",
        ]
