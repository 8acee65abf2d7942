"""Savings of an audit: calls made, compared with the full design over the same models and survey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.storage import audits


class SavingsRow(ReportModel):
    """Calls of one stage, and those of the full design."""

    stage: str
    """`direct` or `review`."""
    made: int
    full: int
    """Every sample of every cell; every judge on every trace. For reviews it is an estimate: traces that were not asked
    for are assumed to have a score as often as those that were."""
    means: list[str]
    """Settings that saved calls, as the configuration names them."""


def build_savings_rows(source: ReportSource) -> list[SavingsRow]:
    """Build a row for each stage with settings that save calls; empty without such settings.

    Empty also for an audit that has not ended: calls that are still to come are not saved.
    """
    config = source.config
    if config is None or not config.probes.direct or source.audit.stage not in audits.FINAL_STAGES:
        return []
    direct_settings = list(_list_direct_settings(config))
    review_settings = [*direct_settings, *_list_review_settings(config)]
    rows = [_build_direct_row(source, config, direct_settings)] if direct_settings else []
    if review_settings and config.judge_models:
        rows.append(_build_review_row(source, config, review_settings))
    return rows


def _list_direct_settings(config: AuditConfig) -> Iterator[str]:
    """Yield the settings that save direct calls, each as `name = value`."""
    if config.direct.tolerance is not None:
        yield f"probes.direct.tolerance = {config.direct.tolerance:g}"
    if config.direct.target_width is not None:
        yield f"probes.direct.target_width = {config.direct.target_width:g}"


def _list_review_settings(config: AuditConfig) -> Iterator[str]:
    """Yield the settings that save verdicts, as the configuration names them."""
    if config.probes.review.traces != "all":
        yield f"probes.review.traces = {config.probes.review.traces}"
    if config.panel.judges_per_trace is not None:
        yield f"panel.judges_per_trace = {config.panel.judges_per_trace}"
    if config.panel.adaptive:
        yield "panel.adaptive"


def _build_direct_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    """Compare the recorded samples with all planned samples of every cell and model."""
    full = sum(config.samples_by_cell(source.survey).values()) * len(config.models)
    return SavingsRow(
        stage="direct", made=sum(count.n for count in source.trace_counts), full=full, means=saving_settings
    )


def _build_review_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    """Compare the verdicts asked for with those of every judge on every usable trace of a full design.

    The usable traces of the full design are estimated from each model's recorded share of usable traces.
    """
    n_traces, n_usable = Counter[str](), Counter[str]()
    for count in source.trace_counts:
        n_traces[count.model] += count.n
        n_usable[count.model] += count.n if count.outcome == Outcome.OK else 0
    samples_per_model = sum(config.samples_by_cell(source.survey).values())
    full = sum(
        samples_per_model * n_usable[model.name] / n_traces[model.name] * len(config.judges_of(model.name))
        for model in config.models
        if n_traces[model.name]
    )
    return SavingsRow(
        stage="review",
        made=sum(judge_count.n for judge_count in source.judge_counts),
        full=round(full),
        means=saving_settings,
    )
