"""Markdown of the section on logical consistency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.logic.schema import LogicReport, LogicRow, TransitivityRow
from auditor.reports.logic import wording
from auditor.reports.number_format import format_count, format_interval, format_number

EscapeText = Callable[[str], str]
FormatTable = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
FormatEstimate = Callable[[Estimate], str]


def render_logic_section(
    logic: LogicReport | None, escape: EscapeText, format_table: FormatTable, format_estimate: FormatEstimate
) -> Iterable[str]:
    """Render the blocks of the section; none where nothing was compared.

    Args:
        escape: escapes a text for Markdown.
        format_table: renders headers and rows.
        format_estimate: formats an estimate with its interval.
    """
    if logic is None:
        return
    rows = [*logic.judges, *logic.wordings]
    yield "## How logical are their preferences?"
    yield escape(wording.describe_comparisons(logic))
    yield "\n".join(f"- **{escape(row.judge)}** {escape(wording.describe_judge(row))}." for row in logic.judges)
    yield format_table(
        ["Judge", "Usable answers", "Ties", "Names the first", *wording.FIGURE_HEADERS],
        [_format_judge_row(row, format_estimate) for row in rows],
    )
    headers = ["Judge", *(wording.transitivity_header(transitivity) for transitivity in logic.judges[0].transitivity)]
    yield "Transitivity: the share of subsets of K items without a circle, over M subsets."
    yield format_table(
        headers, [[wording.judge_label(row), *map(_format_transitivity, row.transitivity)] for row in rows]
    )
    yield escape(wording.describe_interval_units(logic))
    if logic.links:
        yield format_table(
            ["Over", "Of", "with", "r"], [[link.over, link.x, link.y, format_estimate(link.r)] for link in logic.links]
        )
    if logic.rankings:
        yield "### Ranking with few comparisons"
        headers = ["Judge", "Ranking", "Calls a set", "Unanswered", "ρ with all pairs", "ρ with people"]
        yield format_table(
            headers,
            [
                [
                    ranking.judge,
                    ranking.method,
                    format_number(ranking.calls, 1),
                    format_number(ranking.failed, 1),
                    format_estimate(ranking.all_pairs),
                    format_estimate(ranking.people),
                ]
                for ranking in logic.rankings
            ],
        )
    if logic.ledger:
        yield "### The judges’ ledger"
        yield escape(wording.describe_vote_weights(logic))
        yield format_table(wording.CONSISTENCY_HEADERS, [wording.format_consistency_row(row) for row in logic.ledger])
    yield "### Where they contradict themselves"
    for row in logic.contradictions:
        yield f"**{escape(row.judge)}**, {escape(row.context)}: {escape(wording.describe_contradiction(row))}."
        yield "\n".join(f"- circle: {' › '.join(escape(item) for item in cycle.items)}" for cycle in row.cycles)
        yield "\n".join(f"- to reverse: {escape(arc.winner)} › {escape(arc.loser)}" for arc in row.arcs)
    yield "### What a ranking would repair"
    yield "\n".join(f"- **{escape(row.judge)}**: {escape(wording.describe_repair(row))}." for row in logic.repairs)


def _format_judge_row(row: LogicRow, format_estimate: FormatEstimate) -> list[str]:
    """Format one judge's row: name, usable answers, ties, share of decisions for the item shown first, and figures."""
    return [
        wording.judge_label(row),
        wording.format_usable_answers(row),
        format_count(row.ties),
        format_estimate(row.first),
        *map(format_estimate, wording.judge_figures(row)),
    ]


def _format_transitivity(row: TransitivityRow) -> str:
    """Format the share of subsets without a cycle, with its interval, subsets, decided pairs and unanswered pairs."""
    share = row.share
    if share.value is None:
        return f"not measurable: {share.reason}"
    interval = format_interval(share.ci_low, share.ci_high) if share.ci_low is not None else str(share.reason)
    unanswered = f", {format_count(share.lost)} unanswered" if share.lost else ""
    return (
        f"{format_number(share.value)} ({interval}; {wording.describe_subsets(row)}; {format_count(row.decided)} "
        f"decided pairs{unanswered})"
    )
