"""The first section of a report: the question, answers, strongest findings, shortcomings, cautions, next steps."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.interval_plot import CORRELATION_AXIS
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Figure,
    Inline,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Text,
)
from auditor.reports.number_format import pluralize
from auditor.reports.sections.agreement import classify_alignment, describe_alignment, summarize_alignment
from auditor.reports.sections.baselines import list_guess_findings, summarize_guesses
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.cultural_findings import build_findings_block
from auditor.reports.sections.distribution import TITLE as DISTRIBUTION_TITLE
from auditor.reports.sections.distribution import describe_models, find_key_finding
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.judge_quality import describe_excess
from auditor.reports.sections.next_steps import list_next_steps
from auditor.reports.sections.phrasing import SeriesLabels, build_finding
from auditor.reports.sections.probe_sections import build_probe_section, list_headlines
from auditor.reports.sections.task import build_task_section
from auditor.reports.sections.tiers import describe_closest
from auditor.reports.sections.weaknesses import list_weaknesses

MAX_OPEN_FINDINGS = 6
"""With more series of scores, the others' findings are in a disclosure."""
GUESS_DEFINITION = "A simple guess uses no model: for example, the mean of a topic in the other countries of a region."
MAX_BRIEF_ITEMS = 3
"""Findings and cautions in each list of the brief report."""
MAX_BRIEF_MODELS = 5
"""Models of which the brief report has a sentence."""
MAX_BRIEF_ROWS = 10
"""Models in the plot of the brief report."""
NOT_MEASURED = "Nothing has been measured yet."


def build_summary_section(report: Report) -> Section | None:
    """Build the first section, which every report has."""
    return build_summary(report)


def build_summary(report: Report, *, is_brief: bool = False) -> Section:
    """Build the first section; the brief report consists of it alone, with short lists."""
    has_opinions_only = not report.alignment and report.distribution is not None
    is_survey = bool(report.audit.survey.title) and not has_opinions_only
    blocks = _answer_survey(report, is_brief=is_brief) if is_survey else []
    if has_opinions_only and (opinions := describe_models(report)) is not None:
        blocks += _limit(opinions.items, "model", is_brief=is_brief)
    blocks += _answer_other_probes(report)
    if (key_finding := find_key_finding(report)) is not None:
        heading = "What matters most" if has_opinions_only else DISTRIBUTION_TITLE
        blocks.append(Section("summary-distribution", heading, [List([key_finding], is_findings=True)]))
    if weaknesses := list_weaknesses(report):
        items = _limit(weaknesses, "shortcoming", is_brief=is_brief, is_findings=False)
        blocks.append(Section("weaknesses", "Where the models fall short", items))
    blocks += _describe_judges(report)
    if cautions := list_cautions(report):
        blocks.append(Callout("Reasons for caution", _limit(cautions, "reason", is_brief=is_brief, is_findings=False)))
    blocks = blocks or [Paragraph(NOT_MEASURED, "lead")]
    steps = Section("next", "What to do next", [List(list_next_steps(report))])
    title = "Do the models know what people accept?" if is_survey else "What did the audit find?"
    title = DISTRIBUTION_TITLE if has_opinions_only else title
    return Section("summary", title, [*blocks, steps], "Summary")


def _answer_survey(report: Report, *, is_brief: bool) -> list[Block]:
    """The answer for each model, the strongest findings and the comparison with simple guesses."""
    labels = SeriesLabels.of(report)
    rows = sorted(report.alignment, key=_rank_by_error)
    answers = [build_finding(labels.label(row), describe_alignment(row), classify_alignment(row)) for row in rows]
    blocks: list[Block] = [
        Paragraph(" ".join(filter(None, (describe_closest(report), summarize_alignment(report.alignment)))), "lead"),
        Paragraph(_describe_question(report), "note"),
        *_limit(answers, "model", is_brief=is_brief),
    ]
    if rows:
        blocks.append(_build_forest_plot(rows[:MAX_BRIEF_ROWS] if is_brief else rows, labels))
    if (cultural_findings := build_findings_block(report)) is not None:
        blocks.append(cultural_findings)
    if report.baselines:
        findings = list_guess_findings(report)
        guesses = [List(findings[:1], is_findings=True)] if is_brief else _limit(findings, "model", is_brief=False)
        lead = f"{summarize_guesses(report)} {GUESS_DEFINITION}"
        blocks.append(Section("guess", "Is it better than a simple guess?", [Paragraph(lead), *guesses]))
    return blocks


def _rank_by_error(row: AlignmentRow) -> tuple[bool, float, float]:
    """Sort key: the smallest mean absolute error first, then the largest r; rows without an error last."""
    return row.mae.value is None, row.mae.value or 0.0, -2.0 if row.pearson_r.value is None else -row.pearson_r.value


def _limit(items: Sequence[ListItem | Text], noun: str, *, is_brief: bool, is_findings: bool = True) -> list[Block]:
    """A list; the brief report says how many further items there are, and the full one has findings in a disclosure."""
    max_items = MAX_BRIEF_ITEMS if is_brief else MAX_OPEN_FINDINGS if is_findings else len(items)
    if is_brief and noun == "model":
        max_items = MAX_BRIEF_MODELS
    shown = items[:max_items]
    if is_brief and noun == "model" and len(items) > max_items:
        shown = [*items[: max_items - 1], items[-1]]  # the worst model matters as much as the best
    blocks: list[Block] = [List(shown, is_findings=is_findings)] if items else []
    if len(items) > max_items:
        others = pluralize(len(items) - max_items, f"more {noun}")
        if is_brief:
            blocks.append(Paragraph(f"The full report has {others}.", "note"))
        else:
            blocks.append(Disclosure(others, [List(items[max_items:], is_findings=is_findings)]))
    return blocks


def _describe_question(report: Report) -> list[Inline]:
    """The question that was asked, as far as it is known, and the scale of the scores."""
    survey = report.audit.survey
    low, high = survey.scale
    others = pluralize(len(survey.topic_questions), "topic")
    own_questions = f"{others} had another question or scale: see “How was this report made?”. "
    return [
        *describe_asked_question(report),
        f" {own_questions if survey.topic_questions else ''}Scores range from −1 (",
        Name(low),
        ") to +1 (",
        Name(high),
        "). r = 1: the model’s scores rise and fall exactly as people’s do. r = 0: they are unrelated.",
    ]


def describe_asked_question(report: Report) -> list[Inline]:
    """The question that models were asked: our own, or what the importer of recorded answers states."""
    survey = report.audit.survey
    if not report.audit.imported:
        return ["Each model was asked: “", Name(survey.wording), "”"]
    if survey.question is None:
        return ["The answers were imported; the question that the models were asked is not recorded."]
    return [
        "The answers were imported. According to their importer, each model was asked: “",
        Name(survey.question),
        "”",
    ]


def _build_forest_plot(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Figure:
    """The plot of r with its two-way interval, for each series of scores."""
    return build_interval_figure(
        "agreement",
        "Agreement with people: r and its 95% CI",
        [(labels.label(row), row.pearson_r) for row in rows],
        CORRELATION_AXIS,
        table_id="alignment",
        caption="Pearson’s r of each model’s scores with people’s, with its 95% CI for other countries and topics like "
        "these. If the interval includes zero, the agreement is not statistically distinguishable from zero.",
        description="; ".join(f"{labels.label(row)} {describe_alignment(row)}" for row in rows),
    )


def _answer_other_probes(report: Report) -> list[Block]:
    """The first findings of each other probe: a task, paraphrases, logic."""
    sections = [build_task_section(report), *(build_probe_section(probe, report) for probe in ("semantic", "logic"))]
    blocks: list[Block] = []
    for section in sections:
        findings = None if section is None else _first_findings(section.blocks)
        if section is not None and findings is not None:
            blocks.append(Section(f"summary-{section.id}", section.title, [findings]))
    if headlines := [ListItem(sentence) for sentence in list_headlines(report)]:
        blocks.append(Section("summary-probes", "What other probes found", [List(headlines, is_findings=True)]))
    return blocks


def _describe_judges(report: Report) -> list[Block]:
    """By how much the judges were off, where people labelled a random sample of the traces."""
    quality = report.judge_quality
    if quality is None or not quality.labels:
        return []
    return [Section("summary-judges", "Can the judges be trusted?", [describe_excess(report)])]


def _first_findings(blocks: Sequence[Block]) -> List | None:
    """The first list of findings among blocks, shortened; None without any."""
    for block in blocks:
        if isinstance(block, List) and block.is_findings and block.items:
            return List(block.items[:MAX_OPEN_FINDINGS], is_findings=True)
    return None
