"""How many answers of an experiment can be used, and why others cannot; for its page, and for a replication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.probes.semantic.experiments.section_human_judgements import describe_labels
from auditor.probes.semantic.figures.experiment_rows import (
    AnswerCountRow,
    ConsistencyAccuracyRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.probes.semantic.section_consistency_measures import SCORED_TEXT_LABELS
from auditor.reports.document import Column, Paragraph, Section
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import list_counts
from auditor.reports.sections.tables import tabulate

CountedRow = ConsistencyAccuracyRow | RuleFollowingRow | SemanticTemperatureRow
TITLE = "Usable answers"
SETTING_LABELS = {
    "same_words": "same wording",
    "other_words": "other wordings",
    "before": "without a rule",
    "after": "with a rule",
    "": "choices",
}


class _Record(NamedTuple):
    """The counts of one setting, and the row that they belong to."""

    row: CountedRow
    counts: AnswerCountRow


def build_answer_counts(rows: Sequence[CountedRow], section_id: str = "usable") -> list[Section]:
    """The section with the usable answers of each model and setting; an empty list where nothing was counted."""
    records = [_Record(row, counts) for row in rows for counts in row.counts]
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


def _summarize(records: Sequence[_Record]) -> str:
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
