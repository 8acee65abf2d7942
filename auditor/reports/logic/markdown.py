"""The section on logic as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.reports.logic import wording as said
from auditor.reports.logic.schema import LogicPart, LogicRow, TransitivityRow
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, interval, number

Escape = Callable[[str], str]
Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Told = Callable[[Estimate], str]


def section(part: LogicPart | None, escape: Escape, table: Table, told: Told) -> Iterable[str]:
    """The section's blocks; none where nothing was compared.

    Args:
        part: the data.
        escape, table, told: how the document writes a text, a table and an estimate.
    """
    if part is None:
        return
    rows = [*part.judges, *part.wordings]
    yield "## How logical are their preferences?"
    yield escape(said.intro(part))
    yield "\n".join(f"- **{escape(row.judge)}** {escape(said.judged(row))}." for row in part.judges)
    yield table(
        ["Judge", "Usable answers", "Ties", "Names the first", *said.HEAD], [_shares(row, told) for row in rows]
    )
    head = ["Judge", *(said.transitivity_name(t) for t in part.judges[0].transitivity)]
    yield "Transitivity: the share of subsets of K items without a circle, over M subsets."
    yield table(head, [[said.name_of(row), *map(_transitivity, row.transitivity)] for row in rows])
    yield escape(said.over(part))
    if part.links:
        yield table(["Over", "Of", "with", "r"], [[link.over, link.x, link.y, told(link.r)] for link in part.links])
    if part.rankings:
        yield "### Ranking with few comparisons"
        head = ["Judge", "Ranking", "Calls a set", "Unanswered", "ρ with all pairs", "ρ with people"]
        yield table(
            head,
            [
                [r.judge, r.method, number(r.calls, 1), number(r.failed, 1), told(r.all_pairs), told(r.people)]
                for r in part.rankings
            ],
        )
    if part.ledger:
        yield "### The judges’ ledger"
        yield escape(said.ledger(part))
        yield table(said.LEDGER_HEAD, [said.ledger_row(row) for row in part.ledger])
    yield "### Where they contradict themselves"
    for row in part.contradictions:
        yield f"**{escape(row.judge)}**, {escape(row.context)}: {escape(said.contradiction(row))}."
        yield "\n".join(f"- circle: {' › '.join(escape(item) for item in cycle.items)}" for cycle in row.cycles)
        yield "\n".join(f"- to reverse: {escape(arc.winner)} › {escape(arc.loser)}" for arc in row.arcs)
    yield "### What a ranking would repair"
    yield "\n".join(f"- **{escape(row.judge)}**: {escape(said.repaired(row))}." for row in part.repairs)


def _shares(row: LogicRow, told: Told) -> list[str]:
    return [said.name_of(row), said.usable(row), count(row.ties), told(row.first), *map(told, said.figures(row))]


def _transitivity(row: TransitivityRow) -> str:
    share = row.share
    if share.value is None:
        return f"not measurable: {share.reason}"
    between = interval(share.ci_low, share.ci_high) if share.ci_low is not None else str(share.reason)
    lost = f", {count(share.lost)} unanswered" if share.lost else ""
    return f"{number(share.value)} ({between}; {said.looked_at(row)}; {count(row.decided)} decided pairs{lost})"
