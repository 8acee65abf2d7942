"""Section on refusals to the direct question, and on answers that were asked for again."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.coverage.refusals import RefusalRow, RefusalsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Inline, List, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import format_count, format_styled, pluralize
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import describe_interval

MAX_PLOTTED_ROWS = 20
"""Topics or countries in a plot; the table has all."""


def build_refusals_section(report: Report) -> Section | None:
    """Build the section on refusals; None if no answer to a direct question is recorded."""
    refusals = report.refusals
    if refusals is None:
        return None
    blocks: list[Block] = [Paragraph(_describe_refusals(refusals))]
    if report.repairs:
        blocks.append(List([_describe_repeated_questions(row.model, row.asked, row.read) for row in report.repairs]))
    if refusals.total.value:
        blocks.append(
            Paragraph(
                "A refusal is an answer that the provider marks as one. An answer without a readable score also counts "
                "if it says, in the language of the question or in English, that its author will not answer. "
                "95% CIs are over countries and topics, or over cells where there are fewer than five of either. "
                "n is the number of answers.",
                role="note",
            )
        )
        topic_noun = "topic" if report.task is None else "item"
        for noun, rows in (("model", refusals.models), (topic_noun, refusals.topics), ("country", refusals.countries)):
            blocks += _build_group_blocks(noun, rows)
    return Section("refusals", "What do they refuse?", blocks, contents_title="Refusals")


def _describe_refusals(refusals: RefusalsReport) -> Text:
    """State the share of refusals, and the topic and the country that are refused most often."""
    total = refusals.total
    if not total.value:
        return f"There are no refusals among {pluralize(total.n, 'answer')}."
    return [
        f"{format_styled(total.value, 'percent', 1)} of {pluralize(total.n, 'answer')} are refusals "
        f"({describe_interval(total, 1, 'percent')}). Refusals are most frequent for ",
        *_name_most_refused([*refusals.topics[:1], *refusals.countries[:1]]),
        ".",
    ]


def _name_most_refused(rows: Sequence[RefusalRow]) -> list[Inline]:
    """Name groups with their shares of refusals, joined by "and"."""
    nodes: list[Inline] = []
    for row in rows:
        nodes += [" and "] if nodes else []
        nodes += [Name(row.name), f" ({format_styled(row.share.value, 'percent', 1)})"]
    return nodes


def _describe_repeated_questions(model: str, n_asked: int, n_read: int) -> Text:
    """State how many answers of a model were asked for again, and how many then had a score."""
    return [
        Name(model),
        f": {pluralize(n_asked, 'answer')} could not be read at first and had to be shown to the model again; "
        f"{format_count(n_read)} then had a score.",
    ]


def _build_group_blocks(noun: str, rows: Sequence[RefusalRow]) -> list[Block]:
    """Build the table of refusals by model, topic, item or country, and but for models a plot of the largest shares."""
    if not rows:
        return []
    table = Table(
        f"share-refused-by-{noun}",
        f"Refusals by {noun}",
        f"Share of answers that are refusals by {noun}, from 0 to 1, largest first.",
        [Column(noun.capitalize(), "name"), Column("Share refused", "estimate", digits=3)],
        [[Name(row.name), row.share] for row in rows],
    )
    if noun == "model":
        return [table]
    plotted_rows = rows[:MAX_PLOTTED_ROWS]
    scope = f"the {MAX_PLOTTED_ROWS} largest of {len(rows)}" if len(rows) > MAX_PLOTTED_ROWS else "largest first"
    figure = build_interval_figure(
        f"refusals-by-{noun}",
        f"Share refused by {noun}",
        [(row.name, row.share) for row in plotted_rows],
        SHARE_AXIS,
        table_id=table.id,
        caption=f"Share of answers that are refusals by {noun}, over all models, with its 95% CI ({scope}).",
    )
    return [figure, table]
