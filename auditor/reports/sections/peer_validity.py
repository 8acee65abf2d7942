"""The section on whether peer verdicts separate correct from incorrect answers to a task."""

from __future__ import annotations

from dataclasses import replace

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.data.task.schema import JudgeValidityRow, PeerValidityReport, VerdictAccuracyRow
from auditor.reports.document import Block, List, ListItem, Paragraph, Section, Status
from auditor.reports.number_format import describe_model_correlation, format_share, format_signed
from auditor.reports.sections.model_correlations import compare_correlation
from auditor.reports.sections.phrasing import compare_interval, describe_estimate, describe_interval
from auditor.reports.sections.tables import tabulate

CHANCE_AUC = 0.5


def build_peer_validity_section(report: Report) -> Section | None:
    """Build the section; None where no answer was judged, or no correct answer is known."""
    validity = report.task.telling if report.task else None
    if validity is None:
        return None
    blocks: list[Block] = [List(_list_findings(validity), is_findings=True)]
    if validity.area is not None:
        explanation = (
            "AUC: how often the correct answer of a pair has the larger share of VALID verdicts. Ties count half; 50% "
            "is chance."
        )
        blocks.append(Paragraph(explanation, "note"))
    if validity.verdicts:
        caption = (
            "Share of correct answers by verdict, with 95% CI over items; n counts verdicts for VALID and INVALID, and "
            "answers for majorities."
        )
        blocks.append(
            tabulate("verdict-accuracy", "Accuracy by verdict", caption, validity.verdicts, VerdictAccuracyRow)
        )
    if validity.judges:
        caption = (
            "Share of verdicts VALID on correct and on incorrect answers, with 95% CI over items; n counts verdicts. "
            "Difference: from −1 to +1 (higher is better); 0 is no discrimination."
        )
        blocks.append(tabulate("judge-validity", "Verdicts of each judge", caption, validity.judges, JudgeValidityRow))
    return Section("telling", "Do verdicts predict correctness?", blocks, "Verdicts and truth")


def _list_findings(validity: PeerValidityReport) -> list[ListItem]:
    """State how well peer verdicts separate correct from incorrect answers, one finding per figure."""
    findings = []
    if validity.area is not None:
        findings.append(_describe_auc(validity.area, "correct from incorrect answers"))
    if validity.area_within is not None:
        findings.append(_describe_auc(validity.area_within, "correct from incorrect answers to the same item"))
    difference = validity.difference
    if difference is not None and difference.value is not None:
        shares = {row.said: format_share(row.accuracy.value) for row in validity.verdicts}
        text = (
            f"{shares['VALID']} of the answers judged VALID are correct, and {shares['INVALID']} of those judged "
            f"INVALID: {_describe_points(difference)}."
        )
        findings.append(ListItem(text, compare_interval(difference)))
    if validity.closeness is not None:
        subject = "Closeness of an answer to the truth and its share of VALID verdicts"
        figures = describe_estimate("ρ", validity.closeness, "answer")
        findings.append(_describe_correlation(subject, figures, compare_interval(validity.closeness)))
    subject, figures = "Share of VALID and correctness of models", describe_model_correlation(validity.models)
    findings.append(_describe_correlation(subject, figures, compare_correlation(validity.models)))
    return findings


def _describe_auc(auc: Estimate, pair_label: str) -> ListItem:
    """State how well verdicts separate the answers that `pair_label` names."""
    figures = describe_estimate("AUC", auc)
    status = compare_interval(auc, CHANCE_AUC)
    finding = {
        "positive": f"Verdicts separate {pair_label}",
        "negative": f"Verdicts separate {pair_label} in the wrong direction",
        "unclear": f"Verdicts are not shown to separate {pair_label} better than chance",
    }.get(status)
    return ListItem(
        f"{finding} ({figures})." if finding else f"How well peer verdicts separate {pair_label}: {figures}.", status
    )


def _describe_points(difference: Estimate) -> str:
    """Format a difference of shares in percentage points, with its interval."""
    value, low, high = (
        None if share is None else 100 * share for share in (difference.value, difference.ci_low, difference.ci_high)
    )
    points = replace(difference, value=value, ci_low=low, ci_high=high)
    return f"a difference of {format_signed(value, 0)} percentage points ({describe_interval(points, 0, 'signed')})"


def _describe_correlation(subject: str, figures: str, status: Status) -> ListItem:
    """State whether two quantities are correlated.

    Args:
        subject: names both.
        figures: the correlation in words.
        status: whether it is positive, negative or unclear.
    """
    finding = {
        "positive": " are positively correlated",
        "negative": " are negatively correlated",
        "unclear": ": the correlation is not statistically distinguishable from zero",
    }.get(status)
    return ListItem(f"{subject}{finding} ({figures})." if finding else f"{subject}: {figures}.", status)
