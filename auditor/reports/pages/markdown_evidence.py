"""Markdown sections on the evidence behind the figures: panel, conflicts, refusals, coverage, cost, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.conflicts import wording as conflict_wording
from auditor.reports.cost import wording as cost_wording
from auditor.reports.data.cost.savings import summarize_savings
from auditor.reports.data.coverage.model_versions import describe_model_versions
from auditor.reports.data.coverage.schema import CoverageRow
from auditor.reports.data.report_schema import ConflictSideReport, ListedConflictReport, Report
from auditor.reports.number_format import format_count, format_percent, format_usd
from auditor.reports.pages import sentences
from auditor.reports.pages.markdown_format import (
    escape_markdown,
    format_estimate_with_n,
    format_yes_no,
    markdown_table,
    quote_markdown,
)
from auditor.reports.panel.tables import build_panel_tables


def panel_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and tables on the panel of judges; none without judges."""
    if not report.panel.judges:
        return
    yield "## The panel"
    yield sentences.kappa_sentence(report)
    aspects = sentences.aspect_labels(report)
    yield markdown_table(
        ["Model", "Verdicts", "VALID", "Peer agreement", *aspects.values()],
        [
            [
                row.model,
                format_count(row.given),
                format_count(row.valid),
                *(format_estimate_with_n(getattr(row, aspect)) for aspect in ("agreement", *aspects)),
            ]
            for row in report.peer_agreement
        ],
    )
    yield "**What this panel can and cannot settle**"
    yield "\n".join(f"- {escape_markdown(sentence)}" for sentence in report.panel.certificate)
    for table in build_panel_tables(report.panel):
        yield escape_markdown(table.caption)
        yield markdown_table(
            table.headers,
            [
                [figure if isinstance(figure, str) else format_estimate_with_n(figure) for figure in row]
                for row in table.rows
            ],
        )


def conflicts_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and tables on conflicts; none without a survey or task."""
    conflicts = report.conflicts
    if not report.audit.survey.title and report.task is None:
        return
    yield "## Conflicts"
    yield escape_markdown(conflict_wording.describe_conflicts(report))
    yield "\n".join(f"- {escape_markdown(sentence)}" for sentence in conflict_wording.describe_method_conflicts(report))
    if not conflicts.total:
        return
    yield escape_markdown(conflict_wording.describe_voting(report))
    yield markdown_table(
        ["Kind", *(conflict_wording.STATE_LABELS[state] for state in conflicts.states), "all"],
        [[row.kind, *map(format_count, row.states.values()), format_count(row.total)] for row in conflicts.kinds],
    )
    if conflicts.not_listed:
        yield f"The {len(conflicts.largest)} largest; {format_count(conflicts.not_listed)} smaller ones are not listed."
    for row in conflicts.largest:
        state = conflict_wording.STATE_LABELS[row.state]
        yield f"### {escape_markdown(conflict_wording.format_cell(row))} ({row.kind}, {state})"
        yield _conflict_details(row)


def _conflict_details(conflict: ListedConflictReport) -> str:
    """The paragraphs on one conflict: its description, the reasoning of both sides, and the notes of reviewers."""
    side_paragraphs = [paragraph for side in (conflict.left, conflict.right) for paragraph in _side_paragraphs(side)]
    note_paragraphs = [f"Note: {escape_markdown(note)}" for note in conflict.notes]
    return "\n\n".join(
        [escape_markdown(conflict_wording.describe_conflict(conflict)), *side_paragraphs, *note_paragraphs]
    )


def _side_paragraphs(side: ConflictSideReport) -> Iterable[str]:
    """Yield the paragraphs on one side of a conflict: its model and score, then its reasoning."""
    yield f"**{escape_markdown(side.model)}** says {escape_markdown(conflict_wording.format_side(side))}:"
    yield (
        quote_markdown(side.reasoning + (" […]" if side.shortened else ""))
        if side.reasoning
        else "No reasoning is stored."
    )


def coverage_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and tables on coverage; none without planned answers."""
    coverage = report.coverage
    if not coverage.total:
        return
    yield "## Coverage"
    yield _coverage_table("What", coverage.total)
    for title, rows in (
        ("Model", coverage.models),
        ("Judge", coverage.judges),
        ("Country", coverage.countries),
        ("Topic" if report.task is None else "Item", coverage.topics),
    ):
        if rows:
            yield _coverage_table(title, rows)
    yield from map(escape_markdown, sentences.coverage_notes(report))


def _coverage_table(title: str, rows: Sequence[CoverageRow]) -> str:
    """Format coverage rows as a table with a column for each cause of loss."""
    causes = list(dict.fromkeys(name for row in rows for name in row.losses))
    table_rows = []
    for row in rows:
        loss_counts = [format_count(row.losses.get(cause, 0)) for cause in causes]
        row_labels = [row.name or row.counted_label, *([row.counted_label] if row.name else [])]
        table_rows.append(
            [
                *row_labels,
                format_count(row.planned),
                format_count(row.ok),
                format_percent(row.ok, row.planned),
                *loss_counts,
                format_count(row.missing),
            ]
        )
    header = [title, *(["What"] if rows and rows[0].name else []), "Planned", "Usable", "Share"]
    return markdown_table([*header, *(cause.replace("_", " ") for cause in causes), "not recorded"], table_rows)


def refusals_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and tables on refusals; none without recorded answers."""
    summary, refusals = sentences.refusal_sentence(report), report.refusals
    if summary is None or refusals is None:
        return
    topic_header = "Topic" if report.task is None else "Item"
    yield "## Refusals"
    yield escape_markdown(summary)
    yield "\n".join(f"- {escape_markdown(line)}." for line in sentences.repair_sentences(report))
    if refusals.total.value:
        for title, rows in (
            ("Model", refusals.models),
            (topic_header, refusals.topics),
            ("Country", refusals.countries),
        ):
            if rows:
                yield markdown_table(
                    [title, "Share refused"], [[row.name, format_estimate_with_n(row.share, 3)] for row in rows]
                )


def cost_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and the table on cost."""
    yield "## Cost"
    yield cost_wording.describe_cost(report)
    if report.savings:
        yield "\n".join(f"- {escape_markdown(summarize_savings(row))}" for row in report.savings)
    if report.cost.rows:
        yield markdown_table(
            ["Model", "For", "Calls", "Requests", "Answers", "Tokens in", "Kept", "Tokens out", "USD", "Unpriced"],
            [
                [
                    row.name or "", row.purpose or "", *map(format_count, (row.calls, row.attempts, row.answers)),
                    format_count(row.prompt_tokens), cost_wording.format_cached_share(row),
                    format_count(row.completion_tokens), format_usd(row.usd, row.lower_bound),
                    format_count(row.unpriced),
                ]
                for row in report.cost.rows
            ],
        )  # fmt: skip


def provenance_markdown(report: Report) -> Iterable[str]:
    """Yield the paragraphs and tables on models, versions and settings."""
    survey = report.audit.survey
    yield "## How this was made"
    if survey.title:
        yield f"The question put to models: “{escape_markdown(survey.wording)}”."
        yield f"Source of the people’s scores: {escape_markdown(survey.source)}"
    yield from map(escape_markdown, sentences.rewording_sentences(report))
    model_rows = [
        [model.name, model.model or "scores were imported", format_yes_no(model.audited), format_yes_no(model.judge)]
        for model in report.audit.models
    ]
    yield markdown_table(["Name", "Provider and model", "Audited", "Judge"], model_rows)
    yield from map(escape_markdown, describe_model_versions(report.served))
    yield markdown_table(["Setting", "Value"], sentences.reproduction_settings(report))
