"""Documents of the experiments on consistency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from auditor.probes.semantic.figures.experiment_rows import (
    AnswerCountRow,
    ConsistencyAccuracyRow,
    MeasureByRuleRow,
    MeasureByWordingRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
    TaskConsistencyRow,
)
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.probes.semantic.section_measures import SCORED_TEXT_LABELS, describe_labels, name_metric
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.document import Column, Document, Inline, Name, Paragraph, Section
from auditor.reports.number_format import describe_model_correlation, pluralize
from auditor.reports.sections.experiments import (
    build_experiment_document,
    build_result_sections,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.over_models import CORRELATION_REMARK
from auditor.reports.sections.phrasing import DerivedCells, describe_estimate, list_columns, list_counts, tabulate

ALL_MEASURES_TITLE = "All measures"
ALL_MEASURES_NOTE = "with 95% CI, which are not adjusted for the number of measures; n counts questions."
M = TypeVar("M", MeasureByWordingRow, MeasureByRuleRow, TaskConsistencyRow)
R = TypeVar("R", SemanticTemperatureRow, RuleFollowingRow, ConsistencyAccuracyRow)


class _MeasureRecord(NamedTuple, Generic[R, M]):
    """A measure and the row that it belongs to."""

    row: R
    measure: M


def build_wording_measures(rows: Sequence[SemanticTemperatureRow]) -> list[Section]:
    """The section with every measure at each temperature; an empty list where there is none."""
    records = [_MeasureRecord(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        Column("Temperature", "number", "row.temperature"),
        *list_columns(MeasureByWordingRow, prefix="measure."),
    ]
    caption = f"Every measure at each temperature, {ALL_MEASURES_NOTE}"
    table = tabulate("temperature-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("temperature-all", ALL_MEASURES_TITLE, [table])] if records else []


def build_rule_measures(rows: Sequence[RuleFollowingRow]) -> list[Section]:
    """The section with every measure with and without a rule; an empty list where there is none."""
    records = [_MeasureRecord(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        *list_columns(MeasureByRuleRow, prefix="measure."),
    ]
    caption = f"Every measure with and without a rule to follow, {ALL_MEASURES_NOTE}"
    table = tabulate("rules-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("rules-all", ALL_MEASURES_TITLE, [table])] if records else []


def name_scored(rows: Sequence[ConsistencyAccuracyRow]) -> str:
    """What the consistency of choices is of."""
    return "the chosen answers" if any(row.scored == "choices" for row in rows) else "the reasons"


def build_task_measures(rows: Sequence[ConsistencyAccuracyRow]) -> list[Section]:
    """The section with every measure of the reasons or of the choices; an empty list where there is none."""
    records = [_MeasureRecord(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        *list_columns(TaskConsistencyRow, prefix="measure."),
    ]
    caption = f"Consistency of {name_scored(rows)} by every measure, {ALL_MEASURES_NOTE}"
    table = tabulate("accuracy-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("accuracy-all", ALL_MEASURES_TITLE, [table])] if records else []


def _measure_cells() -> DerivedCells[_MeasureRecord[R, M]]:
    """Cells that name the measure of a record and its texts."""
    return {
        "metric": lambda record: name_metric(record.measure.metric),
        "text": lambda record: SCORED_TEXT_LABELS[record.measure.text],
    }


CountedRow = ConsistencyAccuracyRow | RuleFollowingRow | SemanticTemperatureRow
TITLE = "Usable answers"
SETTING_LABELS = {
    "same_words": "same wording",
    "other_words": "other wordings",
    "before": "without a rule",
    "after": "with a rule",
    "": "choices",
}


class _CountRecord(NamedTuple):
    """The counts of one setting, and the row that they belong to."""

    row: CountedRow
    counts: AnswerCountRow


def build_answer_counts(rows: Sequence[CountedRow], section_id: str = "usable") -> list[Section]:
    """The section with the usable answers of each model and setting; an empty list where nothing was counted."""
    records = [_CountRecord(row, counts) for row in rows for counts in row.counts]
    if not records:
        return []
    has_temperatures = any(isinstance(row, SemanticTemperatureRow) for row in rows)
    columns = [
        Column("Model", "name", "row.model"),
        *([Column("Temperature", "number", "row.temperature")] if has_temperatures else []),
        Column("Setting"),
        Column("Texts"),
        Column("Usable", "number", "counts.ok"),
        Column("Planned", "number", "counts.planned"),
        Column("Causes"),
    ]
    caption = "Answers, and rules of thumb behind usable answers, with the causes of those that cannot be used."
    table = tabulate(
        f"{section_id}-answers",
        TITLE,
        caption,
        records,
        columns,
        {
            "setting": lambda record: SETTING_LABELS[record.counts.setting],
            "texts": lambda record: SCORED_TEXT_LABELS[record.counts.text],
            "causes": lambda record: list_counts(record.counts.losses) or None,
        },
    )
    return [Section(section_id, TITLE, [Paragraph(_summarize(records)), table], contents_title=TITLE)]


def _summarize(records: Sequence[_CountRecord]) -> str:
    """State how many answers can be used, and the causes of the others."""
    planned = sum(record.counts.planned for record in records)
    losses: Counter[str] = sum((Counter(record.counts.losses) for record in records), Counter())
    if not losses:
        return f"All {pluralize(planned, 'answer')} can be used."
    return f"{pluralize(losses.total(), 'answer')} of {planned} cannot be used: {list_counts(losses)}."


def build_trial_sections(trials: Mapping[str, object]) -> list[Section]:
    """Sections on the answers and labels behind the experiments of a replication, by name of the experiment."""
    sections: list[Section] = []
    for name, result in trials.items():
        if isinstance(result, HumanJudgementReport):
            sections.append(Section(f"labels-{name}", "Labels of people", [Paragraph(describe_labels(result))]))
        elif isinstance(result, list):
            rows = [row for row in result if isinstance(row, CountedRow)]
            title = f"{TITLE} of the experiment {name}"
            sections += [
                Section(section.id, title, section.blocks, title)
                for section in build_answer_counts(rows, f"usable-{name}")
            ]
    return sections


NOTHING_COMPARED = "Nothing was compared."
P_VALUE_NOTE = "p: by the method of the interval; p (adjusted): the same, adjusted for all rows (Holm)."


def build_temperature_document(audit: str, rows: Sequence[SemanticTemperatureRow]) -> Document:
    """Build the document on whether paraphrasing changes answers more than sampling at a temperature does."""
    differences = [(f"{row.model} at temperature {row.temperature:g}", row.difference) for row in rows]
    finding = count_finding(
        [
            setting
            for row, (setting, difference) in zip(rows, differences, strict=True)
            if difference.is_significant and (difference.value or 0.0) < 0
        ],
        sum(difference.value is not None for _, difference in differences),
        "setting",
        "be less consistent under paraphrase than under repeated sampling",
    )
    table = tabulate(
        "temperature",
        "Consistency at each temperature",
        f"Consistency score at each temperature, with 95% CI; n counts questions. {P_VALUE_NOTE}",
        rows,
        SemanticTemperatureRow,
    )
    plot_title = "Consistency under paraphrase minus consistency of repeated answers"
    axis_title = "Difference of scores (below 0: paraphrasing changes more)"
    plots = plot_estimates("temperature-plot", plot_title, differences, axis_title, table_id=table.id)
    remark = (
        "One wording is asked several times, and several wordings once each. The consistency score measures how "
        "similar the answers are. Below 0, paraphrasing changes answers more than sampling does."
    )
    sections = build_result_sections("temperatures", "Results at each temperature", table, plots, remark)
    sections += [*build_answer_counts(rows), *build_wording_measures(rows)]
    return build_experiment_document(
        audit, "paraphrasing compared with sampling", [finding], sections, NOTHING_COMPARED
    )


def build_rules_document(audit: str, rows: Sequence[RuleFollowingRow]) -> Document:
    """Build the document on whether a model is more consistent if it is told to follow a rule of thumb."""
    files = {row.rules_file for row in rows}
    followed = f"a rule of {', '.join(sorted(filter(None, files)))}" if any(files) else "its own first rule of thumb"
    changes = [(row.model, row.change) for row in rows]
    findings = [
        count_finding(
            [row.model for row in rows if row.change.is_significant and ((row.change.value or 0.0) > 0) == is_increase],
            sum(change.value is not None for _, change in changes),
            "model",
            f"be {comparative} consistent with a rule",
        )
        for is_increase, comparative in ((True, "more"), (False, "less"))
    ]
    title = "Consistency with and without a rule"
    table = tabulate(
        "rules",
        title,
        f"Consistency score before and after a model is told to follow {followed}, with 95% CI; n counts questions. "
        f"{P_VALUE_NOTE}",
        rows,
        RuleFollowingRow,
    )
    plot_title = "Consistency with a rule minus consistency without"
    axis_title = "Difference of scores (above 0: more consistent with a rule)"
    plots = plot_estimates("rules-plot", plot_title, changes, axis_title, table_id=table.id)
    sections = build_result_sections("rules-results", title, table, plots)
    sections += [*build_answer_counts(rows), *build_rule_measures(rows)]
    return build_experiment_document(audit, "following a rule of thumb", findings, sections, NOTHING_COMPARED)


def build_accuracy_document(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> Document:
    """Build the document on how accuracy correlates with consistency over questions, as r per model."""
    findings: list[list[Inline]] = [
        [
            "Accuracy and consistency of ",
            Name(row.model),
            f": {describe_estimate('r', row.r, 'question')}.",
        ]
        for row in rows
    ]
    if rows and (over_models := rows[0].over_models) is not None:
        findings.append([f"Over models: {describe_model_correlation(over_models)}."])
    table = tabulate(
        "accuracy",
        "Accuracy and consistency",
        f"Accuracy (share of correct answers), consistency score of {name_scored(rows)}, and Pearson’s r of the two "
        "over questions, with 95% CI; n counts questions.",
        rows,
        ConsistencyAccuracyRow,
    )
    accuracies = [(row.model, row.accuracy) for row in rows]
    plots = plot_estimates("accuracy-plot", "Share of correct answers", accuracies, SHARE_AXIS, table_id=table.id)
    remark = f"Over models, mean consistency is compared with accuracy. {CORRELATION_REMARK}" if len(rows) > 1 else ""
    sections = build_result_sections("accuracy-results", "Questions with a known answer", table, plots, remark)
    sections += [*build_answer_counts(rows), *build_task_measures(rows)]
    return build_experiment_document(
        audit, "accuracy and consistency", findings, sections, "No model answered these questions."
    )
