"""Document of the savings study: sampling plans compared with the full design."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.cost.savings_study import MAX_R_SHIFT, N_DRAWS, SamplingPlanRow, SavingsStudy
from auditor.reports.document import Column, Document, Paragraph, Section
from auditor.reports.number_format import format_percent, pluralize
from auditor.reports.sections.tables import tabulate

PLAN_COLUMNS = (
    Column("Sampling plan", "text", "name"),
    Column("Direct answers", "number", "direct", 1, "percent"),
    Column("Verdicts", "number", "review", 1, "percent"),
    Column("All calls", "number", "calls", 1, "percent"),
    Column("r, mean shift", "number", "shift", 3, "signed", emphasis=True),
    Column("r, largest change", "number", "largest", 3, emphasis=True),
    Column("Corrected r, mean shift", "number", "corrected_shift", 3, "signed"),
    Column("Corrected r, largest change", "number", "corrected_largest", 3),
    Column("Same tier", "number", "same_tiers", 1, "percent"),
    Column("Peer agreement, largest change", "number", "peers", 3),
    Column("Same conflict outcome", "number", "same_winners", 1, "percent"),
)


def build_savings_document(study: SavingsStudy) -> Document:
    """Build the document of a study, headed by the cheapest plan that keeps every r within `MAX_R_SHIFT`."""
    explanation = (
        f"The full design has {pluralize(study.full, 'call')}. Each plan is replayed from its recorded answers, "
        f"without new calls; each row is the mean of {N_DRAWS} random draws. Calls of adaptive panels are upper limits."
    )
    table = tabulate(
        "plans",
        "Sampling plans",
        "Calls as a percentage of the full design, and differences from it. Corrected r: r without sampling noise. "
        "Same tier: share of models in their tier of the full design. Same conflict outcome: share of conflicts with "
        "the same winner, or still open.",
        study.rows,
        PLAN_COLUMNS,
    )
    sizes = ((study.models, "model"), (study.cells, "cell"), (study.samples, "sample"))
    return Document(
        "Savings study",
        study.audit,
        ", ".join(pluralize(n, noun) for n, noun in sizes),
        [Section("comparison", "Sampling plans compared with the full design", [Paragraph(explanation), table])],
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
