"""The section of differences on non-inferiority: the verdict, whether it was registered, and each region."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.differences.schema import DifferenceReport, NonInferiorityReport, RegionMarginRow
from auditor.reports.document import Block, List, ListItem, Paragraph, Section
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.tables import tabulate


def build_non_inferiority_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none unless a margin was given or registered."""
    if not differences.non_inferiority:
        return
    blocks: list[Block] = [List([_describe_outcome(row) for row in differences.non_inferiority], is_findings=True)]
    for i, report in enumerate(differences.non_inferiority, start=1):
        blocks += [Paragraph(describe_registration(report)), _tabulate_regions(report, f"non-inferiority-{i}")]
    yield Section("non-inferiority", "Non-inferiority by region", blocks, contents_title="Non-inferiority")


def _describe_outcome(report: NonInferiorityReport) -> ListItem:
    """State in how many regions the second series is not inferior."""
    n_passed, n_regions = sum(row.passes for row in report.regions), len(report.regions)
    regions = "all" if report.passes else f"{n_passed} of {pluralize(n_regions, 'region')}"
    suffix = " regions" if report.passes else ""
    text = (
        f"{report.second} passes in {regions}{suffix}: its mean absolute error is less than "
        f"{format_number(report.margin, 3)} above that of {report.first} there."
    )
    return ListItem(text, "positive" if report.passes else "negative")


def describe_registration(report: NonInferiorityReport) -> str:
    """Say whether the margin was chosen before the answers."""
    claim = f"The margin of {format_number(report.margin, 3)} for {report.second}"
    match report.registration:
        case "registered":
            return f"{claim} was registered in the hash chain at {report.registered_at}, before its first answer."
        case "registered late":
            return f"{claim} was registered at {report.registered_at}, when answers were already recorded."
        case "other margin":
            return (
                f"{claim} is not registered: the margin that was registered first, at {report.registered_at}, is "
                f"{format_number(report.registered_margin, 3)}."
            )
        case _:
            return (
                f"{claim} is not registered. To register one, add non_inferiority to [compare] of the configuration "
                "before the audit runs."
            )


def _tabulate_regions(report: NonInferiorityReport, table_id: str) -> Block:
    """The change in each region, and whether it passes."""
    return tabulate(
        table_id,
        f"{report.second} against {report.first}, margin {format_number(report.margin, 3)}",
        "Change in MAE: second minus first; above 0 the second is farther from people. A region passes if the 95% CI "
        "of its change ends below the margin, after correction for the regions (Holm). n counts cells; CIs are over "
        "countries and topics.",
        report.regions,
        RegionMarginRow,
        {"passes": lambda row: "yes" if row.passes else "no"},
    )
