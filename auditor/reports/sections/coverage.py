"""Sections on missing answers: coverage by cause, and refusals to the direct question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.coverage.refusals import ReaskRow, RefusalRow, RefusalsReport
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
    Inline,
    List,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_count, format_percent, format_styled, pluralize
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import describe_interval, join_texts, join_with_and
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate

MAX_PLOTTED_ROWS = 10
ADDRESSING_COMMAND = "auditor traces --addressing-judge"
"""Topics or countries in a plot of refusals; the table has all."""

LONG_GROUPS = ("country", "topic", "item")
"""Groups whose tables show the rows with the smallest share of usable answers only."""

# --- coverage ---------------------------------------------------------------------------------------------------


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
    notes = [*map(Paragraph, _list_notes(coverage, is_imported=report.audit.imported))]
    finding = Paragraph(_summarize_coverage(coverage.total), "finding")
    if not notes and all(row.ok == row.planned for _, rows, _ in groups for row in rows):
        return Section("coverage", "What is missing?", [finding], "Coverage")
    blocks: list[Block] = [finding, Paragraph(introduction, "note")]
    complete = [noun for noun, rows, _ in groups if noun and rows and all(row.ok == row.planned for row in rows)]
    for noun, rows, is_open in groups:
        if rows and noun not in complete:
            table = _build_table(noun, rows, causes)
            blocks.append(Disclosure(f"By {noun}" if noun else "In total", [table], is_open=is_open))
    if complete:
        blocks.append(Paragraph(f"All planned answers of each {join_with_and(complete)} are usable."))
    return Section("coverage", "What is missing?", [*blocks, *notes], "Coverage")


def _summarize_coverage(rows: Sequence[CoverageRow]) -> str:
    """The share of usable answers of each kind."""
    parts = [f"{format_percent(row.ok, row.planned)} of the planned {row.counted_label}" for row in rows]
    return f"{join_with_and(parts)} are usable."


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
        *(
            [Column("Asked again", "number"), Column("Answered again", "number")]
            if any(row.asked_again for row in rows)
            else []
        ),
    ]
    derived: dict[str, Callable[[CoverageRow], Cell]] = {
        "share": lambda row: CountShare(row.ok, row.planned),
        "breakdown": lambda row: [
            BarSegment(series, n) for series, n in (("ok", row.ok), *row.losses.items(), ("missing", row.missing))
        ],
        **{cause: partial(_count_losses, cause=cause) for cause in causes},
    }
    repeat_note = (
        " Answers that were asked for again count by the first outcome; figures use the usable second answers "
        "(“Answered again”)."
        if any(row.asked_again for row in rows)
        else ""
    )
    table = tabulate(
        f"coverage-{f'by-{noun}' if noun else 'total'}",
        f"Coverage {f'by {noun}' if noun else 'in total'}",
        "Scores, verdicts and other answers: planned, usable, and missing by cause. “Share” is the usable share of "
        f"the planned answers (higher is better).{repeat_note}",
        sorted(rows, key=lambda row: row.ok / row.planned if row.planned else 1.0) if noun in LONG_GROUPS else rows,
        columns,
        derived,
        max_rows=MAX_LONG_TABLE_ROWS if noun in LONG_GROUPS else None,
    )
    return replace(table, legend=tuple(labels.items()), is_dense=True)


def _count_losses(row: CoverageRow, cause: str) -> int:
    """Number of a row's items that were lost for a cause."""
    return row.losses.get(cause, 0)


def _list_notes(coverage: CoverageReport, *, is_imported: bool) -> Iterable[Text]:
    """Yield limits of the answers: cells that were not planned, undocumented finish reasons, and marked traces."""
    n_unplanned = coverage.unplanned_cells
    if n_unplanned and is_imported:
        yield f"The imported file is not about {pluralize(n_unplanned, 'cell')} of the survey, which are not missing."
    elif n_unplanned:
        yield [
            f"Not planned, and therefore not missing: {pluralize(n_unplanned, 'cell')} of the configured countries and "
            "topics (",
            Code("limits.max_cells"),
            ").",
        ]
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
    if by_model := coverage.addressing_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        n_traces = pluralize(sum(by_model.values()), "usable trace")
        yield [
            f"Written to a judge, by their words: {n_traces} ({models}). To read them: ",
            Code(ADDRESSING_COMMAND),
            ".",
        ]


# --- refusals ---------------------------------------------------------------------------------------------------


def build_refusals_section(report: Report) -> Section | None:
    """Build the section on refusals; None if no answer to a direct question is recorded."""
    refusals = report.refusals
    if refusals is None:
        return None
    blocks: list[Block] = [Paragraph(_describe_refusals(refusals), "finding")]
    if report.repairs:
        blocks.append(List([*map(_describe_repeated_questions, report.repairs)]))
    if refusals.total.value:
        population = (
            "other items like these"
            if report.task
            else "other countries and topics like these; those by topic for other countries, those by country for "
            "other topics"
        )
        questions = "items" if report.task else "questions"
        note = (
            "A refusal is an answer that the provider marks as one, or that has no readable score and declines to "
            "answer. Declining is recognized in the language of the question and in English. 95% CIs are for "
            f"{population}. With too few refusals, the CI is only for other answers to the same {questions}. n counts "
            "answers."
        )
        topic_noun = "topic" if report.task is None else "item"
        blocks += [
            Paragraph(note, "note"),
            *_build_group_blocks("model", refusals.models),
            *_build_group_blocks(topic_noun, refusals.topics),
            *_build_group_blocks("country", refusals.countries),
        ]
    return Section("refusals", "What do the models refuse?", blocks, "Refusals")


def _describe_refusals(refusals: RefusalsReport) -> Text:
    """State the share of refusals, and the model, if models differ, the topic and the country with most of them."""
    total = refusals.total
    if not total.value:
        return f"There are no refusals among {pluralize(total.n, 'answer')}."
    groups: list[Text] = [
        [Name(row.name), f" ({_describe_share(row)})"] for row in (*refusals.topics[:1], *refusals.countries[:1])
    ]
    overall = f"{format_styled(total.value, 'percent', 1)} of {pluralize(total.n, 'answer')} are refusals "
    leading: list[Inline] = []
    if len({row.share.value for row in refusals.models}) > 1:
        model = refusals.models[0]
        leading = [Name(model.name), f" refuses most often ({_describe_share(model)}). Overall, "]
    return [
        *leading,
        f"{overall}({describe_interval(total, 1, 'percent')}). Refusals are most frequent for ",
        *join_texts(groups, " and "),
        ".",
    ]


def _describe_share(row: RefusalRow) -> str:
    """The share of refusals of one group, and their number."""
    n_refused = format_count(round((row.share.value or 0) * row.share.n))
    return f"{format_styled(row.share.value, 'percent', 1)}: {n_refused} of {pluralize(row.share.n, 'answer')}"


def _describe_repeated_questions(row: ReaskRow) -> Text:
    """State how many answers of a model were asked for again, and how many then had a score."""
    return [
        Name(row.model),
        f": {pluralize(row.asked, 'answer')} could not be read at first and had to be shown to the model again; "
        f"{format_count(row.read)} then had a score.",
    ]


def _build_group_blocks(noun: str, rows: Sequence[RefusalRow]) -> list[Block]:
    """Build the table of refusals by model, topic, item or country, and but for models a plot of the largest shares."""
    if not rows:
        return []
    table = tabulate(
        f"share-refused-by-{noun}",
        f"Refusals by {noun}",
        f"Share of answers that are refusals by {noun}, from 0 to 1, largest first.",
        rows,
        [Column(noun.capitalize(), "name", "name"), Column("Share refused", "estimate", "share", digits=3)],
        max_rows=MAX_LONG_TABLE_ROWS,
    )
    if noun == "model":
        return [table]
    scope = f"the {MAX_PLOTTED_ROWS} largest of {len(rows)}" if len(rows) > MAX_PLOTTED_ROWS else "largest first"
    figure = build_interval_figure(
        f"refusals-by-{noun}",
        f"Share refused by {noun}",
        [(row.name, row.share) for row in rows[:MAX_PLOTTED_ROWS]],
        SHARE_AXIS,
        table_id=table.id,
        caption=f"Share of answers that are refusals by {noun}, over all models, with its 95% CI ({scope}).",
    )
    return [figure, table]
