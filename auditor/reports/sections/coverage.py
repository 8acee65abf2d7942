"""Section on coverage: what was planned, what can be used, and what is missing for which cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from auditor.reports.data.coverage.schema import CoverageReport, CoverageRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    BarSegment,
    Block,
    Cell,
    Code,
    Column,
    CountShare,
    Disclosure,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_count, pluralize
from auditor.reports.sections.phrasing import join_texts
from auditor.reports.sections.tables import tabulate


def build_coverage_section(report: Report) -> Section | None:
    """Build the section on coverage; None if nothing was planned."""
    coverage = report.coverage
    if not coverage.total:
        return None
    groups = (
        ("", coverage.total, True),
        ("model", coverage.models, True),
        ("judge", coverage.judges, False),
        ("country", coverage.countries, False),
        ("topic" if report.task is None else "item", coverage.topics, False),
    )
    causes = list(dict.fromkeys(cause for _, rows, _ in groups for row in rows for cause in row.losses))
    introduction = (
        "A failed request or unusable answer is never turned into a score. It is counted here by its cause and "
        "excluded everywhere else."
    )
    blocks: list[Block] = [Paragraph(introduction)]
    for noun, rows, is_open in groups:
        table = _build_table(noun, rows, causes)
        blocks += [Disclosure(f"By {noun}" if noun else "In total", [table], is_open=is_open)] if rows else []
    return Section("coverage", "What is missing?", [*blocks, *map(Paragraph, _list_notes(coverage))], "Coverage")


def _build_table(noun: str, rows: Sequence[CoverageRow], causes: Sequence[str]) -> Table:
    """Build the table of one group; `noun` names what its rows are of, empty for the total."""
    labels = {"ok": "usable", **{cause: cause.replace("_", " ") for cause in causes}, "missing": "not recorded"}
    columns = [
        *([Column(noun.capitalize(), "name", "name")] if noun else []),
        Column("Answers", key="counted_label"),
        Column("Planned", "number"),
        Column("Usable", "number", "ok"),
        Column("Share", "share", emphasis=True),
        Column("Breakdown", "bar"),
        *(Column(labels[cause].capitalize(), "number", cause) for cause in causes),
        Column("Not recorded", "number", "missing"),
    ]
    derived: dict[str, Callable[[CoverageRow], Cell]] = {
        "share": lambda row: CountShare(row.ok, row.planned),
        "breakdown": lambda row: [
            BarSegment(series, n) for series, n in (("ok", row.ok), *row.losses.items(), ("missing", row.missing))
        ],
        **{cause: partial(_count_losses, cause=cause) for cause in causes},
    }
    table = tabulate(
        f"coverage-{f'by-{noun}' if noun else 'total'}",
        f"Coverage {f'by {noun}' if noun else 'in total'}",
        "Numbers of scores, verdicts and other answers that were planned, that are usable, and that are missing by "
        "cause. Share is usable out of planned (higher is better).",
        rows,
        columns,
        derived,
    )
    return replace(table, legend=tuple(labels.items()), is_dense=True)


def _count_losses(row: CoverageRow, cause: str) -> int:
    """Number of a row's items that were lost for a cause."""
    return row.losses.get(cause, 0)


def _list_notes(coverage: CoverageReport) -> Iterable[Text]:
    """Yield limits of the answers: undocumented finish reasons, and traces that were shortened for judges."""
    if reasons := coverage.undocumented_finish_reasons:
        texts: list[Text] = [
            [Name(row.name), f": “{row.reason}” ({pluralize(row.answers, 'answer')})"] for row in reasons
        ]
        yield [
            "Some finish reasons are not documented: ",
            *join_texts(texts, "; "),
            ". An answer with such a reason is usable only if it could be read in full.",
        ]
    if by_model := coverage.shortened_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        yield [
            f"Judges saw only the beginning and the end of {pluralize(sum(by_model.values()), 'trace')} longer than ",
            Code("probes.review.max_trace_chars"),
            f" ({models}).",
        ]
