"""The section on judges of pairs of answers and of comparisons, measured on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from auditor.reports.data.judge_quality.pair_schema import PairJudgeRow, PairLabelsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Code, List, ListItem, Paragraph, Section, Table
from auditor.reports.number_format import describe_interval, format_interval, format_share, pluralize
from auditor.reports.sections.tables import tabulate
from auditor.storage.probe_answers import find_label_form


def build_pair_labels_section(report: Report) -> Section | None:
    """Build the section; None without labels of pairs."""
    blocks = [block for labels in report.pair_labels for block in _build_kind(labels, report.audit.name)]
    if not blocks:
        return None
    title = "Do people agree with the judges of pairs?"
    return Section("pair-labels", title, blocks, "Judges of pairs")


def _build_kind(labels: PairLabelsReport, audit: str) -> Iterator[Block]:
    """Build the findings and the table of one kind, or one line that says how to get enough labels."""
    measured = [row for row in labels.judges if row.agreement.value is not None]
    if labels.labels and not labels.judges and labels.reason is None:
        return  # no judge was asked about these pairs
    if not measured:
        yield _describe_missing(labels, audit)
        return
    yield List([_describe_judge(row, labels) for row in measured], is_findings=True)
    yield _build_table(labels)


def _describe_missing(labels: PairLabelsReport, audit: str) -> Paragraph:
    """Say why there are no figures, and with which command to go on."""
    n_labels = max(labels.suggested_labels, labels.sampled)
    plural = find_label_form(labels.kind).plural
    command = f"auditor review {shlex.quote(audit)} --sample {n_labels} --kind {labels.kind}"
    if labels.reason is not None:
        text = f"People’s labels of {plural} are not used: {labels.reason}. To draw a new sample: "
        return Paragraph([text, Code(f"{command} --redraw"), "."], "note")
    text = (
        f"{labels.labels:,} of about {pluralize(n_labels, 'label')} of {plural}: too few to say how "
        "often the judges agree with people. To continue: "
    )
    return Paragraph([text, Code(command), "."])


def _describe_judge(row: PairJudgeRow, labels: PairLabelsReport) -> ListItem:
    """One sentence on a judge; in favour if it agrees with people beyond chance, where that is measured."""
    question = "" if row.question == labels.kind else f" about {row.question}"
    plural = find_label_form(labels.kind).plural
    noun = find_label_form(labels.kind).noun if row.labels == 1 else plural
    interval = describe_interval(row.agreement, 0, "percent")
    text = (
        f"{row.judge} agrees with people{question} on {format_share(row.agreement.value)} of the "
        f"{plural} ({interval}, {row.labels:,} labelled {noun})."
    )
    if row.kappa is None or row.kappa.ci_low is None or row.kappa.ci_high is None:
        return ListItem(text, "neutral")
    is_shown = row.kappa.ci_low > 0 or row.kappa.ci_high < 0
    return ListItem(text, ("positive" if row.kappa.ci_low > 0 else "negative") if is_shown else "unclear")


def _build_table(labels: PairLabelsReport) -> Table:
    """Build the table of one kind of pairs."""
    plural = find_label_form(labels.kind).plural
    caption = (
        f"Agreement: share of the {plural} on which the judge gives the answer of a random rater. If "
        "unsure: the agreement if all raters that are unsure disagreed or agreed. 95% CIs are for these "
        f"{plural}: over other random samples of them. n counts labels of "
        f"{pluralize(len(labels.raters), 'rater')}, whose errors are not removed."
    )
    if labels.kind == "answer_pair":
        caption += (
            " Sensitivity: share of the pairs of which people say yes on which the judge agrees; specificity: of those "
            "of which they say no."
        )
    derived = {"if_unsure": _format_unsure_bounds}
    title = f"Judges of {plural}"
    table_id = f"{labels.kind.replace('_', '-')}-judges"
    return tabulate(table_id, title, caption, labels.judges, PairJudgeRow, derived)


def _format_unsure_bounds(row: PairJudgeRow) -> str:
    bounds = row.agreement_if_unsure_disagree, row.agreement_if_unsure_agree
    return format_interval(*bounds) if row.unsure else "–"
