"""The report as Markdown, second half: what its figures rest on, from the panel to how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.conflicts import wording as conflict_words
from auditor.reports.cost import wording as cost_words
from auditor.reports.cost.savings import told
from auditor.reports.coverage.model_versions import remarks
from auditor.reports.coverage.schema import CoverageRow
from auditor.reports.pages import sentences
from auditor.reports.pages.markdown_format import escape, estimated, quote, tabled, yes
from auditor.reports.pages.number_format import count, share, usd
from auditor.reports.panel.tables import panel_tables
from auditor.reports.report_schema import ConflictRow, Report, Side


def panel(report: Report) -> Iterable[str]:
    if not report.panel.judges:
        return
    yield "## The panel"
    yield sentences.kappa(report)
    aspects = sentences.aspects(report)
    yield tabled(
        ["Model", "Verdicts", "VALID", "Peer agreement", *aspects.values()],
        [
            [r.model, count(r.given), count(r.valid), *(estimated(getattr(r, n)) for n in ("agreement", *aspects))]
            for r in report.peer_agreement
        ],
    )
    yield "**What this panel can and cannot settle**"
    yield "\n".join(f"- {escape(sentence)}" for sentence in report.panel.certificate)
    for table in panel_tables(report.panel):
        yield escape(table.caption)
        yield tabled(table.head, [[f if isinstance(f, str) else estimated(f) for f in row] for row in table.rows])


def conflicts(report: Report) -> Iterable[str]:
    part = report.conflicts
    if not report.audit.survey.title and report.task is None:
        return
    yield "## Conflicts"
    yield escape(conflict_words.conflicts(report))
    yield "\n".join(f"- {escape(sentence)}" for sentence in conflict_words.method_conflicts(report))
    if not part.total:
        return
    yield escape(conflict_words.voting(report))
    yield tabled(
        ["Kind", *(conflict_words.STATES[state] for state in part.states), "all"],
        [[row.kind, *map(count, row.states.values()), count(row.total)] for row in part.kinds],
    )
    if part.not_listed:
        yield f"The {len(part.largest)} largest; {count(part.not_listed)} smaller ones are not listed."
    for row in part.largest:
        yield f"### {escape(conflict_words.cell(row))} ({row.kind}, {conflict_words.STATES[row.state]})"
        yield _conflict(row)


def _conflict(row: ConflictRow) -> str:
    sides = [part for side in (row.left, row.right) for part in _side(side)]
    notes = [f"Note: {escape(note)}" for note in row.notes]
    return "\n\n".join([escape(conflict_words.conflict(row)), *sides, *notes])


def _side(side: Side) -> Iterable[str]:
    yield f"**{escape(side.model)}** says {escape(conflict_words.position(side))}:"
    yield quote(side.reasoning + (" […]" if side.shortened else "")) if side.reasoning else "No reasoning is stored."


def coverage(report: Report) -> Iterable[str]:
    part = report.coverage
    if not part.total:
        return
    yield "## Coverage"
    yield _coverage_table("What", part.total)
    for title, rows in (
        ("Model", part.models),
        ("Judge", part.judges),
        ("Country", part.countries),
        ("Topic" if report.task is None else "Item", part.topics),
    ):
        if rows:
            yield _coverage_table(title, rows)
    yield from map(escape, sentences.coverage_notes(report))


def _coverage_table(title: str, rows: Sequence[CoverageRow]) -> str:
    causes = list(dict.fromkeys(name for row in rows for name in row.losses))
    table = []
    for row in rows:
        lost = [count(row.losses.get(cause, 0)) for cause in causes]
        names = [row.name or row.what, *([row.what] if row.name else [])]
        table.append([*names, count(row.planned), count(row.ok), share(row.ok, row.planned), *lost, count(row.missing)])
    head = [title, *(["What"] if rows and rows[0].name else []), "Planned", "Usable", "Share"]
    return tabled([*head, *(cause.replace("_", " ") for cause in causes), "not recorded"], table)


def refusals(report: Report) -> Iterable[str]:
    told, part = sentences.refusals(report), report.refusals
    if told is None or part is None:
        return
    topic = "Topic" if report.task is None else "Item"
    yield "## Refusals"
    yield escape(told)
    yield "\n".join(f"- {escape(line)}." for line in sentences.repairs(report))
    if part.total.value:
        for title, rows in (("Model", part.models), (topic, part.topics), ("Country", part.countries)):
            if rows:
                yield tabled([title, "Share refused"], [[r.name, estimated(r.share, 3)] for r in rows])


def cost(report: Report) -> Iterable[str]:
    yield "## Cost"
    yield cost_words.cost(report)
    if report.savings:
        yield "\n".join(f"- {escape(told(row))}" for row in report.savings)
    if report.cost.rows:
        yield tabled(
            ["Model", "For", "Calls", "Requests", "Answers", "Tokens in", "Kept", "Tokens out", "USD", "Unpriced"],
            [
                [
                    row.name or "", row.purpose or "", *map(count, (row.calls, row.attempts, row.answers)),
                    count(row.prompt_tokens), cost_words.kept(row), count(row.completion_tokens),
                    usd(row.usd, row.lower_bound), count(row.unpriced),
                ]
                for row in report.cost.rows
            ],
        )  # fmt: skip


def made(report: Report) -> Iterable[str]:
    survey = report.audit.survey
    yield "## How this was made"
    if survey.title:
        yield f"The question put to models: “{escape(survey.wording)}”."
        yield f"Source of the people’s scores: {escape(survey.source)}"
    yield from map(escape, sentences.rephrased(report))
    models = [[m.name, m.model or "scores were imported", yes(m.audited), yes(m.judge)] for m in report.audit.models]
    yield tabled(["Name", "Provider and model", "Audited", "Judge"], models)
    yield from map(escape, remarks(report.served))
    yield tabled(["Setting", "Value"], sentences.settings(report))
