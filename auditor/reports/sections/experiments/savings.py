"""Document of the savings study: sampling plans compared with the full design."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.cost.savings_study import MAX_R_SHIFT, N_DRAWS, SamplingPlanRow, SavingsStudy
from auditor.reports.document import Block, Column, Document, Paragraph, Section, Table
from auditor.reports.number_format import format_percent, pluralize

PLAN_COLUMNS = (
    Column("Sampling plan"),
    *(Column(title, "number", style="percent", digits=1) for title in ("Direct answers", "Verdicts", "All calls")),
    Column("r, mean shift", "number", style="signed", digits=3, emphasis=True),
    Column("r, largest change", "number", digits=3, emphasis=True),
    Column("Corrected r, mean shift", "number", style="signed", digits=3),
    Column("Corrected r, largest change", "number", digits=3),
    Column("Same tier", "number", style="percent", digits=1),
    Column("Peer agreement, largest change", "number", digits=3),
    Column("Same conflict outcome", "number", style="percent", digits=1),
)


def build_savings_document(study: SavingsStudy) -> Document:
    """Build the document of a study, headed by the cheapest plan that keeps every r within `MAX_R_SHIFT`."""
    explanation = (
        f"The full design has {pluralize(study.full, 'call')}. Each plan is replayed from its recorded answers, "
        f"without new calls; each row is the mean of {N_DRAWS} random draws. Calls of adaptive panels are upper limits."
    )
    blocks: list[Block] = [Paragraph(explanation), _tabulate_plans(study.rows)]
    sizes = ((study.models, "model"), (study.cells, "cell"), (study.samples, "sample"))
    return Document(
        "Savings study",
        study.audit,
        ", ".join(pluralize(n, noun) for n, noun in sizes),
        [Section("comparison", "Sampling plans compared with the full design", blocks)],
        [Paragraph(describe_cheapest_plan(study.rows), role="lead")],
    )


def describe_cheapest_plan(rows: Sequence[SamplingPlanRow]) -> str:
    """Name the cheapest plan that keeps every r, and every corrected r, within `MAX_R_SHIFT`."""
    accurate_rows = [row for row in rows if max(row.largest, row.corrected_largest or 0.0) <= MAX_R_SHIFT]
    cheapest = min(accurate_rows, key=lambda row: row.calls, default=None)
    if cheapest is None:
        return f"No sampling plan keeps every model’s r within {MAX_R_SHIFT} of the full design."
    calls = format_percent(round(1000 * cheapest.calls), 1000)
    finding = f"With {cheapest.name}, every model’s r stays within {MAX_R_SHIFT} of the full design"
    return f"{finding}, for {calls} of the calls."


def _tabulate_plans(rows: Sequence[SamplingPlanRow]) -> Table:
    """Tabulate what each plan costs and what it changes."""
    return Table(
        "plans",
        "Sampling plans",
        "Calls as a percentage of the full design, and differences from it. Corrected r: r without sampling noise. "
        "Same tier: share of models in their tier of the full design. Same conflict outcome: share of conflicts with "
        "the same winner, or still open.",
        PLAN_COLUMNS,
        [(row.name, *list_plan_figures(row)) for row in rows],
    )


def list_plan_figures(row: SamplingPlanRow) -> tuple[float | None, ...]:
    """Figures of one plan, in the order of `PLAN_COLUMNS` after the first."""
    return (
        row.direct, row.review, row.calls, row.shift, row.largest, row.corrected_shift, row.corrected_largest,
        row.same_tiers, row.peers, row.same_winners,
    )  # fmt: skip
