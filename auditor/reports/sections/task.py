"""The sections on a user-defined task: accuracy of the answers, the items, and whether verdicts follow accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.domain import AnswerKind, Purpose
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Estimate, Tested
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.report_schema import Report
from auditor.reports.data.task import (
    JudgeValidityRow,
    PeerValidityReport,
    RaterReport,
    RaterTestRow,
    TaskItemReport,
    TaskModelRow,
    TaskReport,
    VerdictAccuracyRow,
)
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    Figure,
    Link,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Status,
    Table,
)
from auditor.reports.number_format import (
    describe_model_correlation,
    describe_points,
    format_count,
    format_number,
    format_share,
    pluralize,
)
from auditor.reports.sections.judge_quality import format_passed
from auditor.reports.sections.phrasing import (
    build_finding,
    build_interval_figure,
    compare_interval,
    compare_test,
    describe_correction,
    describe_estimate,
    describe_interval,
    tabulate,
)
from auditor.reports.sections.requests import SamplingMarks

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
            f"{shares['VALID']} of the VALID verdicts are on correct answers, and {shares['INVALID']} of the INVALID "
            f"ones: {_describe_points(difference)}."
        )
        findings.append(ListItem(text, "neutral"))  # a description: the AUC says whether there is a difference
    if validity.closeness is not None:
        subject = "Closeness of an answer to the truth and its share of VALID verdicts"
        figures = describe_estimate("ρ", validity.closeness, "answer")
        figures += describe_correction(validity.closeness)
        findings.append(_describe_correlation(subject, figures, compare_test(validity.closeness)))
    subject, figures = "Share of VALID and correctness of models", describe_model_correlation(validity.models)
    if (validity.models.p_value or 1.0) < SIGNIFICANCE_LEVEL:
        figures += describe_correction(validity.models)
    findings.append(_describe_correlation(subject, figures, compare_test(validity.models)))
    return findings


def compare_auc(auc: Tested) -> Status:
    """Whether an AUC is above chance (positive) or below it (negative), given all tests of its family, or unclear."""
    if auc.adjusted_p_value is None:
        return "neutral"
    return compare_interval(auc, CHANCE_AUC) if auc.is_significant else "unclear"


def _describe_auc(auc: Tested, pair_label: str) -> ListItem:
    """State how well verdicts separate the answers that `pair_label` names."""
    status = compare_auc(auc)
    correction = "" if compare_interval(auc, CHANCE_AUC) == status else describe_correction(auc)
    figures = f"{describe_estimate('AUC', auc)}{correction}"
    finding = {
        "positive": f"Verdicts separate {pair_label}",
        "negative": f"Verdicts separate {pair_label} in the wrong direction",
        "unclear": f"Verdicts are not shown to separate {pair_label} better than chance",
    }.get(status)
    return ListItem(
        f"{finding} ({figures})." if finding else f"How well the judges’ verdicts separate {pair_label}: {figures}.",
        status,
    )


def _describe_points(difference: Estimate) -> str:
    """Format a difference of shares in percentage points, with its interval."""
    value, low, high = (
        None if share is None else 100 * share for share in (difference.value, difference.ci_low, difference.ci_high)
    )
    points = replace(difference, value=value, ci_low=low, ci_high=high)
    return f"a difference of {describe_points(difference.value)} ({describe_interval(points, 0, 'signed')})"


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


ANSWER_KIND_LABELS = {
    AnswerKind.SCORE: "a number in a range",
    AnswerKind.CHOICE: "one of several options",
    AnswerKind.EXACT: "a few words or a number",
}
TASK_TABLE_ID = "task-accuracy"
MAX_LISTED_ITEMS = 60
"""Items listed in tables; the JSON report lists all."""
MAX_PORTRAIT_MODELS = 4
"""Models with a column each that fit a page in portrait orientation, beside the items' own columns."""


def build_task_section(report: Report) -> Section | None:
    """Build the section on the accuracy of each model; None for an audit of a survey."""
    task = report.task
    if task is None:
        return None
    best_first = sorted(task.models, key=lambda row: 2.0 if row.accuracy.value is None else -row.accuracy.value)
    is_accuracy_known = any(row.accuracy.value is not None for row in task.models)
    blocks: list[Block] = [
        List([_describe_model(row, task) for row in best_first], is_findings=True),
        Paragraph(_describe_task(task, is_imported=report.audit.imported), "note"),
        *([_build_figure(task)] if is_accuracy_known else []),
        _build_model_table(task.models, SamplingMarks.of(report.sampling, Purpose.DIRECT)),
        *_build_rater_blocks(task.raters),
    ]
    return Section("task", "How accurate are the answers?", blocks, "Accuracy")


def _describe_task(task: TaskReport, *, is_imported: bool) -> str:
    """Describe the task: items, answer format, samples and known answers."""
    at_most = "at most " if is_imported else ""
    n_known = sum(item.truth is not None for item in task.items)
    value_range = f" from {task.task.range[0]:g} to {task.task.range[1]:g}" if task.task.range else ""
    if n_known == len(task.items):
        truth = "The correct answer to each item is known."
    elif n_known:
        truth = f"The correct answer is known for {pluralize(n_known, 'item')}; accuracy is measured on these only."
    else:
        truth = "No correct answer is known, so accuracy is not available."
    tolerance = (
        f" A number is correct if it differs from the known answer by at most {task.task.tolerance:g}."
        if task.task.tolerance is not None and n_known
        else ""
    )
    return (
        f"{pluralize(len(task.items), 'item')} of {task.task.source}, each answered with "
        f"{ANSWER_KIND_LABELS[task.task.kind]}{value_range}; {at_most}{pluralize(task.samples, 'sample')} from each "
        f"model. {truth}{tolerance}"
    )


def _describe_model(row: TaskModelRow, task: TaskReport) -> ListItem:
    """Describe one model's accuracy, distance from the truth and agreement between samples."""
    statements = [*_describe_accuracy(row, task), *_describe_score(row)]
    if row.sample_agreement.value is not None and row.score is None:
        agreement = format_share(row.sample_agreement.value)
        statements.append(f"two samples for an item give the same answer in {agreement} of cases")
    text = "; ".join(statements) or f"cannot be compared with the truth: {row.accuracy.reason}"
    return build_finding(row.model, text, _compare_with_chance(row))


def _compare_with_chance(row: TaskModelRow) -> Status:
    """Whether a model is right more often than by chance, or less often, given the number of models."""
    if row.accuracy.adjusted_p_value is None:
        return "neutral"
    return compare_interval(row.accuracy, row.chance) if row.accuracy.is_significant else "unclear"


def _describe_accuracy(row: TaskModelRow, task: TaskReport) -> Iterator[str]:
    """Yield predicates on one model's accuracy, compared with chance, and its bounds if samples are unusable."""
    accuracy = row.accuracy
    if accuracy.value is None:
        if row.score is None:
            yield f"has no accuracy: {accuracy.reason}"
        return
    comparison = {
        "positive": ", more often than by chance",
        "negative": ", less often than by chance",
        "unclear": ", not statistically distinguishable from chance",
    }.get(_compare_with_chance(row), "")
    n_answered, n_known = row.commonest.n + row.undecided, sum(item.truth is not None for item in task.items)
    is_partial = row.usable == row.planned and n_answered < n_known
    items = f" to {format_count(n_answered)} of {pluralize(n_known, 'item')}" if is_partial else ""
    yield (
        f"is correct in {format_share(accuracy.value)} of {pluralize(accuracy.n, 'answer')}{items} "
        f"({describe_interval(accuracy, 0, 'percent')})"
        + (f"{comparison} ({format_share(row.chance)})" if comparison else "")
    )
    if row.usable < row.planned and row.bound_low is not None:
        yield (
            f"{format_count(row.planned - row.usable)} of {pluralize(row.planned, 'sample')} are unusable: with "
            f"them, accuracy would be between {format_share(row.bound_low)} and {format_share(row.bound_high)}"
        )


def _describe_score(row: TaskModelRow) -> Iterator[str]:
    """Yield a predicate on the mean distance of one model's scores from the truth; none unless answers are scores."""
    if row.score is None:
        return
    mae, r = row.score.mae, row.score.pearson_r
    if mae.value is None:
        yield f"has no distance from the truth: {mae.reason}"
        return
    correlation = "" if r.value is None else f"; correlation of its scores with the truth: {describe_estimate('r', r)}"
    yield (
        f"differs from the truth by {format_number(mae.value)} on average ({describe_interval(mae)}, "
        f"{pluralize(mae.n, 'item')}){correlation}"
    )


def _build_rater_blocks(raters: RaterReport | None) -> list[Block]:
    """Whether each model may replace one of the people who answered; none without people."""
    if raters is None:
        return []
    counts = (
        f"{pluralize(len(raters.people), 'person', 'people')} answered too: {pluralize(raters.answers, 'answer')}, "
        f"and {pluralize(raters.items, 'item')} with answers of at least two of them."
    )
    caption = (
        "The alternative annotator test (Calderon, Reichart & Dror, ACL 2025): a model passes if it wins against at "
        "least half of the people, given ε, what its lower cost is worth: 0.2 if the people are experts, 0.15 if "
        "skilled, 0.1 for crowd workers. At least as close: mean over people of the share of items on which the model "
        "is at least as close to the other people. Items are taken as independent."
    )
    derived = {"passed": lambda row: format_passed(row.test.passed)}
    table = tabulate("rater-test", "Alternative annotator test", caption, raters.tests, RaterTestRow, derived)
    return [Section("raters", "May a model replace a person?", [Paragraph(counts, "note"), table])]


def _build_figure(task: TaskReport) -> Figure:
    """Plot each model's accuracy."""
    rows = [(row.model, row.accuracy) for row in task.models]
    chances = sorted({round(row.chance, 9) for row in task.models if row.chance is not None})
    ends = " to ".join(dict.fromkeys(format_share(chance) for chance in chances[:1] + chances[-1:]))
    by_items = ", by the items that a model answered" if len(chances) > 1 else ""
    chance = f" Choosing at random would be correct in {ends}{by_items}." if chances else ""
    caption = f"Share of each model’s answers that are correct, with 95% CI over items.{chance}"
    axis = replace(SHARE_AXIS, reference=chances[0] if len(chances) == 1 else None)
    title = "Share of correct answers"
    return build_interval_figure("task-plot", title, rows, axis, table_id=TASK_TABLE_ID, caption=caption)


def _build_model_table(rows: Sequence[TaskModelRow], marks: SamplingMarks) -> Table:
    """Build the table with each model's accuracy and coverage; columns on scores only if answers are scores."""
    caption = (
        "Accuracy and the other shares are from 0 to 1 (higher is better), with 95% CI over items: answers to one item "
        "are correlated. Most frequent correct: share of items whose most frequent answer is correct. Undecided: items "
        "without a single most frequent answer. Samples agree: probability that two samples for an item agree. Usable "
        "and planned count samples for items with a known answer."
    )
    if any(row.score is not None for row in rows):
        caption += (
            " Scores are in units of the task, compared with the truth over items: MAE is the mean absolute error "
            "(lower is better), bias the mean of score minus truth, spread the standard deviation of an item’s samples."
        )
    caption += marks.remark("Agreement between samples, and their spread,")
    label, derived = "Answers of each model", marks.derived
    return tabulate(TASK_TABLE_ID, label, caption, rows, TaskModelRow, derived, more_columns=marks.columns)


def build_items_section(report: Report) -> Section | None:
    """Build the section with the items, those answered incorrectly most often first; None for an audit of a survey."""
    task = report.task
    if task is None:
        return None
    models = [row.model for row in task.models]
    listed = sorted(task.items, key=_item_difficulty)[:MAX_LISTED_ITEMS]
    answers = "mean score" if task.task.range else "most frequent answer"
    unlisted = (
        f" Listed are {pluralize(len(listed), 'item')} of {format_count(len(task.items))}; the JSON report has all."
        if len(listed) < len(task.items)
        else ""
    )
    caption = (
        f"Each model’s {answers} to each item, those answered incorrectly most often first. Correct: share of all "
        f"models’ usable answers.{unlisted} A dash: no usable answer, or no single most frequent one."
    )
    columns = [
        Column("Item", "name"),
        Column("Question"),
        Column("Correct answer"),
        Column("Correct", "number", digits=0, style="percent"),
        *(Column(Name(model)) for model in models),
    ]
    table = Table(
        "task-items", "Items", caption, columns, [_item_cells(report, item, models) for item in listed], is_dense=True
    )
    return Section("items", "Results by item", [table], "Items", is_landscape=len(models) > MAX_PORTRAIT_MODELS)


def _item_difficulty(item: TaskItemReport) -> float:
    """Sort key of an item: its share of correct answers; unknown ones last, since the key is above any share."""
    return 2.0 if item.right is None else item.right.value or 0.0


def _item_cells(report: Report, item: TaskItemReport, models: Sequence[str]) -> list[Cell]:
    """Cells of one item: its id, which links to its answers, question, truth, share correct, each model's answer."""
    page = report.trace_pages.find("", item.id)
    answers = (item.answers.get(model) for model in models)
    return [
        Link(item.id, page=page) if page else item.id,
        Name(item.question),
        Name(item.truth) if item.truth else "not known",
        item.right.value if item.right else None,
        *(Name(answer) if answer else None for answer in answers),
    ]
