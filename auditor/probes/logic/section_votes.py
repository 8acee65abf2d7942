"""The subsection on the consistency of the panel's judges, and the weights of their votes that follow from it."""

from __future__ import annotations

from auditor.probes.logic.figures.schema import JudgeConsistencyRow, LogicReport
from auditor.reports.document import Paragraph, Section
from auditor.reports.sections.tables import DerivedCells, tabulate


def build_votes_section(logic: LogicReport) -> Section | None:
    """Build the subsection on the consistency of the panel's judges and their votes; None without a panel."""
    if not logic.ledger:
        return None
    derived: DerivedCells[JudgeConsistencyRow] = {"weight": lambda row: 0.0 if row.benched else row.weight}
    caption = (
        "Consistency of each judge in its own comparisons, from 0 to 1 (higher is better), pooled over sets. Mean: "
        "over the figures that at least half of the judges have. Above chance: the mean, rescaled to 0 for answers "
        "that ignore the items and 1 for perfect consistency; self-agreement counts at most as much as the other "
        "figures. Decided: answers that are not ties. Same side: decisions for the side, first or second, that the "
        "judge names more often. The tables above have the CIs."
    )
    table = tabulate("logic-votes", "Consistency of the judges", caption, logic.ledger, JudgeConsistencyRow, derived)
    return Section("logic-panel", "Consistency and votes of the judges", [Paragraph(_describe_votes(logic)), table])


def _describe_votes(logic: LogicReport) -> str:
    """Describe whether votes are weighted by consistency, and which judges are excluded from voting."""
    if all(row.weight is None for row in logic.ledger):
        return (
            "Votes are not weighted by these figures: each judge has one vote, or its configured weight. "
            'The setting panel.weights_from = "logic" weights votes by consistency.'
        )
    return (
        "Votes on conflicts are weighted by consistency above chance. The section on conflicts reports the effect. "
        f"{describe_excluded_judges(logic) or 'No judge is excluded from voting.'}"
    )


def describe_excluded_judges(logic: LogicReport | None) -> str:
    """Name the judges that are excluded from voting by their consistency, with the reasons; empty without one."""
    excluded = ", ".join(f"{row.judge} ({row.reason})" for row in logic.ledger if row.benched) if logic else ""
    return f"Excluded from voting: {excluded}." if excluded else ""
