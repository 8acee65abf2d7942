"""What asking less saved: calls that were made, beside those of the full design over the same models and survey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.measurement_schema import ReportModel
from auditor.reports.pages.number_format import format_count, format_percent
from auditor.reports.report_source import ReportSource
from auditor.storage import audits


class SavingsRow(ReportModel):
    """One stage: what was asked, and what the full design would ask."""

    stage: str
    """`direct` or `review`."""
    made: int
    full: int
    """Every sample of every cell; every judge on every trace. Of reviews it is an estimate: as many of the traces that
    were not asked for would have had a score as of those that were."""
    means: list[str]
    """What saved them, as the configuration names it."""


def build_savings_rows(source: ReportSource) -> list[SavingsRow]:
    """A row for each stage in which less than everything may have been asked; empty where nothing was to be saved.

    Of an audit that has not ended there is none: what is not asked yet is no saving.
    """
    config = source.config
    if config is None or not config.probes.direct or source.audit.stage not in audits.FINAL_STAGES:
        return []
    direct = list(_list_direct_settings(config))
    review = [*direct, *_list_review_settings(config)]
    rows = [_build_direct_row(source, config, direct)] if direct else []
    if review and config.judge_models:
        rows.append(_build_review_row(source, config, review))
    return rows


def summarize_savings(row: SavingsRow) -> str:
    """One row in a sentence."""
    what = "direct answers" if row.stage == "direct" else "verdicts"
    about = "" if row.stage == "direct" else "about "
    return (
        f"{format_count(row.made)} {what} were asked for, of {about}{format_count(row.full)} of the full design "
        f"({format_percent(row.made, row.full)}), by {', '.join(row.means)}."
    )


def _list_direct_settings(config: AuditConfig) -> Iterator[str]:
    if config.direct.tolerance is not None:
        yield f"probes.direct.tolerance = {config.direct.tolerance:g}"
    if config.direct.target_width is not None:
        yield f"probes.direct.target_width = {config.direct.target_width:g}"


def _list_review_settings(config: AuditConfig) -> Iterator[str]:
    if config.probes.review.traces != "all":
        yield f"probes.review.traces = {config.probes.review.traces}"
    if config.panel.judges_per_trace is not None:
        yield f"panel.judges_per_trace = {config.panel.judges_per_trace}"
    if config.panel.adaptive:
        yield "panel.adaptive"


def _build_direct_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    full = sum(config.samples_by_cell(source.survey).values()) * len(config.models)
    return SavingsRow(stage="direct", made=sum(t.n for t in source.trace_counts), full=full, means=saving_settings)


def _build_review_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    taken, usable = Counter[str](), Counter[str]()
    for t in source.trace_counts:
        taken[t.model] += t.n
        usable[t.model] += t.n if t.outcome == Outcome.OK else 0
    samples = sum(config.samples_by_cell(source.survey).values())
    full = sum(
        samples * usable[m.name] / taken[m.name] * len(config.judges_of(m.name)) for m in config.models if taken[m.name]
    )
    return SavingsRow(
        stage="review", made=sum(j.n for j in source.judge_counts), full=round(full), means=saving_settings
    )
