"""Section on refusals to the direct question, and on answers that were asked for again."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.coverage.refusals import ReaskRow, RefusalRow, RefusalsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, Name, Paragraph, Section, Text
from auditor.reports.number_format import format_count, format_styled, pluralize
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import describe_interval, join_texts
from auditor.reports.sections.tables import tabulate

MAX_PLOTTED_ROWS = 20
"""Topics or countries in a plot; the table has all."""


def build_refusals_section(report: Report) -> Section | None:
    """Build the section on refusals; None if no answer to a direct question is recorded."""
    refusals = report.refusals
    if refusals is None:
        return None
    blocks: list[Block] = [Paragraph(_describe_refusals(refusals))]
    if report.repairs:
        blocks.append(List([*map(_describe_repeated_questions, report.repairs)]))
    if refusals.total.value:
        note = (
            "A refusal is an answer that the provider marks as one. An answer without a readable score also counts if "
            "it says, in the language of the question or in English, that its author will not answer. 95% CIs are over "
            "countries and topics, or over cells where there are fewer than five of either. n is the number of answers."
        )
        topic_noun = "topic" if report.task is None else "item"
        blocks += [
            Paragraph(note, "note"),
            *_build_group_blocks("model", refusals.models),
            *_build_group_blocks(topic_noun, refusals.topics),
            *_build_group_blocks("country", refusals.countries),
        ]
    return Section("refusals", "What do they refuse?", blocks, "Refusals")


def _describe_refusals(refusals: RefusalsReport) -> Text:
    """State the share of refusals, and the topic and the country that are refused most often."""
    total = refusals.total
    if not total.value:
        return f"There are no refusals among {pluralize(total.n, 'answer')}."
    groups: list[Text] = [
        [Name(row.name), f" ({format_styled(row.share.value, 'percent', 1)})"]
        for row in (*refusals.topics[:1], *refusals.countries[:1])
    ]
    return [
        f"{format_styled(total.value, 'percent', 1)} of {pluralize(total.n, 'answer')} are refusals "
        f"({describe_interval(total, 1, 'percent')}). Refusals are most frequent for ",
        *join_texts(groups, " and "),
        ".",
    ]


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
