"""The section of differences between judges that drifted: their agreement with people in two audits."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.differences.schema import DifferenceReport, JudgeDriftRow
from auditor.reports.document import List, ListItem, Section
from auditor.reports.number_format import describe_interval, format_share, format_signed
from auditor.reports.sections.tables import tabulate

FIGURE_TITLES = {"accuracy": "agreement with people", "excess": "excess of VALID over people"}


def build_judge_drift_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none unless people labelled random samples of two audits with the same judges."""
    rows = differences.judge_drift
    if not rows:
        return
    caption = (
        "Agreement with people: share of the traces on which the judge agrees with a random rater. Excess: the judge’s "
        "share of VALID minus people’s; above 0 the judge is lenient. Change: second audit minus first. 95% CIs are "
        "over other random samples of the traces of both audits. Different raters also change these figures. P-values "
        "are adjusted for all rows (Holm)."
    )
    derived = {"title": _find_title}
    table = tabulate("judge-drift", "Judges and people in both audits", caption, rows, JudgeDriftRow, derived)
    findings = List([_describe_change(row) for row in rows], is_findings=True)
    yield Section("judge-drift", "Have the judges drifted?", [findings, table], contents_title="Drift of judges")


def _find_title(row: JudgeDriftRow) -> str:
    return FIGURE_TITLES[row.figure]


def _describe_change(row: JudgeDriftRow) -> ListItem:
    """One sentence on one figure of a judge; a change counts only if it is significant."""
    title = FIGURE_TITLES[row.figure]
    if row.change.value is None or row.first.value is None or row.second.value is None:
        return ListItem(f"{row.judge}: its {title} cannot be compared: {row.change.reason}.", "unclear")
    format_value = format_share if row.figure == "accuracy" else format_signed
    values = f"{format_value(row.first.value)} to {format_value(row.second.value)}"
    interval = describe_interval(row.change, style="signed")
    if not row.change.is_significant:
        text = f"{row.judge}: no change of its {title} is shown ({values}; change {interval})."
        return ListItem(text, "unclear")
    is_better = row.change.value > 0 if row.figure == "accuracy" else abs(row.second.value) < abs(row.first.value)
    text = f"{row.judge}: its {title} changed from {values} (change {interval})."
    return ListItem(text, "positive" if is_better else "negative")
