"""Section on coverage: what was planned, what can be used, and what is missing for which cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.data.coverage.schema import CoverageReport, CoverageRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    BarSegment,
    Cell,
    Code,
    Column,
    CountShare,
    Disclosure,
    Inline,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_count, pluralize


def build_coverage_section(report: Report) -> Section | None:
    """Build the section on coverage; None if nothing was planned."""
    coverage = report.coverage
    if not coverage.total:
        return None
    groups = (
        ("model", coverage.models, True),
        ("judge", coverage.judges, False),
        ("country", coverage.countries, False),
        ("topic" if report.task is None else "item", coverage.topics, False),
    )
    all_rows = [*coverage.total, *(row for _, rows, _ in groups for row in rows)]
    causes = list(dict.fromkeys(cause for row in all_rows for cause in row.losses))
    introduction = (
        "A failed request or unusable answer is never turned into a score. It is counted here by its cause and "
        "excluded everywhere else."
    )
    return Section(
        "coverage",
        "What is missing?",
        [
            Paragraph(introduction),
            Disclosure("In total", [_build_table("total", "", coverage.total, causes)], is_open=True),
            *(
                Disclosure(f"By {noun}", [_build_table(f"by-{noun}", noun, rows, causes)], is_open=is_open)
                for noun, rows, is_open in groups
                if rows
            ),
            *map(Paragraph, _list_notes(coverage)),
        ],
        contents_title="Coverage",
    )


def _build_table(name: str, noun: str, rows: Sequence[CoverageRow], causes: Sequence[str]) -> Table:
    """Build the table of one group; `noun` names what its rows are of, empty for the total."""
    group_columns = [Column(noun.capitalize(), "name")] if noun else []
    labels = {"ok": "usable", **{cause: cause.replace("_", " ") for cause in causes}, "missing": "not recorded"}
    return Table(
        f"coverage-{name}",
        f"Coverage by {noun}" if noun else "Coverage in total",
        "Numbers of scores, verdicts and other answers that were planned, that are usable, and that are missing by "
        "cause. Share is usable out of planned (higher is better).",
        [
            *group_columns,
            Column("Answers"),
            Column("Planned", "number"),
            Column("Usable", "number"),
            Column("Share", "share", emphasis=True),
            Column("Breakdown", "bar"),
            *(Column(labels[cause].capitalize(), "number") for cause in causes),
            Column("Not recorded", "number"),
        ],
        [[*([Name(row.name or "")] if noun else []), *_build_cells(row, causes)] for row in rows],
        legend=tuple(labels.items()),
        is_dense=True,
    )


def _build_cells(row: CoverageRow, causes: Sequence[str]) -> list[Cell]:
    """Build the cells of one row, without its name."""
    segments = (("ok", row.ok), *row.losses.items(), ("missing", row.missing))
    return [
        row.counted_label,
        row.planned,
        row.ok,
        CountShare(row.ok, row.planned),
        [BarSegment(series, n) for series, n in segments],
        *(row.losses.get(cause, 0) for cause in causes),
        row.missing,
    ]


def _list_notes(coverage: CoverageReport) -> Iterable[Text]:
    """Yield limits of the answers: undocumented finish reasons, and traces that were shortened for judges."""
    if reasons := coverage.undocumented_finish_reasons:
        nodes: list[Inline] = []
        for row in reasons:
            nodes += ["; "] if nodes else []
            nodes += [Name(row.name), f": “{row.reason}” ({pluralize(row.answers, 'answer')})"]
        yield [
            "Some finish reasons are not documented: ",
            *nodes,
            ". An answer with such a reason is usable only if it could be read in full.",
        ]
    if by_model := coverage.shortened_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        yield [
            f"Judges saw only the beginning and the end of {pluralize(sum(by_model.values()), 'trace')} longer than ",
            Code("probes.review.max_trace_chars"),
            f" ({models}).",
        ]
