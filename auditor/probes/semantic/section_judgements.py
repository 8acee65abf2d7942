"""Tables and findings of the consistency score: how often a judge finds that a model's answers support each other."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.probes.semantic.figures.schema import JudgedConsistencyRow, SemanticReport
from auditor.reports.document import Block, List, ListItem, Paragraph, Table
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import build_finding, describe_interval
from auditor.reports.sections.sampling_marks import SamplingMarks
from auditor.reports.sections.tables import tabulate


def build_judged_blocks(semantic: SemanticReport, marks: SamplingMarks) -> list[Block]:
    """Build the blocks of an audit that measured the consistency score alone."""
    each = "each of " if semantic.questions > 1 else ""
    text = (
        f"Several answers to {each}{pluralize(semantic.questions, name_question(semantic))}, all in the original "
        "wording. A judge compares them: a consistent model’s answers support each other."
    )
    findings = [_describe_judged_row(row) for row in semantic.judged]
    lists = [List(findings, is_findings=True)] if findings else []
    return [Paragraph(text), *lists, *build_judged_tables(semantic, marks)]


def _describe_judged_row(row: JudgedConsistencyRow) -> ListItem:
    """State the consistency score of one model by one judge."""
    if row.instances.value is None:
        return build_finding(row.model, f"has no consistency score by {row.judge}: {row.instances.reason}", "unclear")
    interval, n_text = describe_interval(row.instances), pluralize(row.instances.n, "question")
    figures = f"{n_text}, {interval}" if row.instances.ci_low is None else f"{interval}, {n_text}"
    score = f"has the consistency score {format_number(row.instances.value)} by {row.judge} ({figures})"
    return build_finding(row.model, score, "unclear")


def name_question(semantic: SemanticReport) -> str:
    """Name a question by its subject."""
    return "moral question" if semantic.subject == "moral" else "question"


def build_judged_tables(semantic: SemanticReport, marks: SamplingMarks) -> Iterator[Table]:
    """Build the table of consistency as a judge sees it; none where no judge was asked."""
    if semantic.judged:
        caption = (
            "Share of pairs of answers to the same wording in which a judge finds the second supported by the first, "
            "with 95% CI over questions. Mean over questions: each question has equal weight. Pooled: each pair has "
            "equal weight. Failed judgements are excluded. The last three columns count pairs."
        )
        title, rows, columns = "Consistency found by a judge", semantic.judged, JudgedConsistencyRow
        yield tabulate("paraphrase-judged", title, caption, rows, columns, marks.derived, more_columns=marks.columns)
