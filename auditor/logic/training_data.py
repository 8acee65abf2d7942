"""Rows for preference tuning from repaired comparisons: built, written as JSONL or Parquet, with a data card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor.agents.logic.questions import render_question
from auditor.atomic_files import report_write_errors, write_atomically
from auditor.domain import Message, Relation
from auditor.errors import UsageError
from auditor.logic.repair import RepairSummary
from auditor.logic.repair_stages import RepairStage, StageAnswers, StageSummary
from auditor.metrics.preference_repair import RatingMethod

TrainingFormat = Literal["preference", "chat"]
AnswerForm = Literal["json", "letter"]


class TrainingRow(NamedTuple):
    """One question with the answer of its stage (`chosen`) and the opposite one (`rejected`).

    Attributes:
        context: name of the item set.
        item_a, item_b: ids of the items shown first and second.
        relation: whether the question is the standard or the negated form.
        messages: the prompt.
        flipped: whether the judge had given the rejected answer; always False for the negated form.
    """

    judge: str
    context: str
    item_a: str
    item_b: str
    relation: Relation
    messages: tuple[Message, ...]
    chosen: str
    rejected: str
    flipped: bool


def build_training_rows(answers: Sequence[StageAnswers], answer_form: AnswerForm = "json") -> list[TrainingRow]:
    """Build a row for preference tuning from each decided answer of a stage (`auditor.logic.repair_stages`).

    Pairs of equal rating, and pairs that no comparison connects, have no repaired answer.

    Args:
        answer_form: `json` writes answers as `{"answer": "A"}`, `letter` as `A`.
    """
    return [row for set_answers in answers for row in _training_rows_of_set(set_answers, answer_form)]


def _training_rows_of_set(answers: StageAnswers, answer_form: AnswerForm) -> list[TrainingRow]:
    """Build the training rows of one judge's answers on one set; see `build_training_rows`."""
    item_set, judge = answers.source.original.item_set, answers.source.original.judge
    texts = {letter: letter if answer_form == "letter" else f'{{"answer": "{letter}"}}' for letter in "AB"}
    rows = []
    for relation, values in ((Relation.STANDARD, answers.standard), (Relation.NEGATED, answers.negated)):
        for i, j in np.argwhere(~np.isnan(values)):
            chosen, rejected = ("A", "B") if values[i, j] > 0.5 else ("B", "A")
            rows.append(
                TrainingRow(
                    judge=judge,
                    context=item_set.context,
                    item_a=item_set.items[i].id,
                    item_b=item_set.items[j].id,
                    relation=relation,
                    messages=render_question(item_set, int(i), int(j), relation, as_letter=answer_form == "letter"),
                    chosen=texts[chosen],
                    rejected=texts[rejected],
                    flipped=relation is Relation.STANDARD and bool(answers.flipped[i, j]),
                )
            )
    return rows


def training_records(rows: Sequence[TrainingRow], row_format: TrainingFormat) -> list[dict[str, Any]]:
    """Convert the rows to records for training libraries, one dictionary per row.

    In the format `preference` the fields `prompt`, `chosen` and `rejected` are texts, in `chat` they are lists of
    messages. Both also record the row's judge, item set, items, relation and whether it was flipped.
    """
    return [_training_record(row, row_format) for row in rows]


def _training_record(row: TrainingRow, row_format: TrainingFormat) -> dict[str, Any]:
    """Convert one row to a record; see `training_records`."""
    source = {
        "judge": row.judge,
        "context": row.context,
        "item_a": row.item_a,
        "item_b": row.item_b,
        "relation": row.relation.value,
        "flipped": row.flipped,
    }
    if row_format == "preference":
        prompt = "\n\n".join(message.content for message in row.messages)
        return {"prompt": prompt, "chosen": row.chosen, "rejected": row.rejected, **source}
    return {
        "prompt": [{"role": message.role, "content": message.content} for message in row.messages],
        "chosen": [{"role": "assistant", "content": row.chosen}],
        "rejected": [{"role": "assistant", "content": row.rejected}],
        **source,
    }


def write_training_rows(rows: Sequence[TrainingRow], file: Path, row_format: TrainingFormat) -> None:
    """Write the rows as JSONL or Parquet, chosen by the file's suffix.

    Raises:
        UsageError: another suffix, no rows, or the folder does not exist.
    """

    if not rows:
        raise UsageError(
            "the comparisons determine no ranking, so there is nothing to write.", "Collect comparisons of more pairs."
        )
    if file.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"{file}: the file name must end in .jsonl or .parquet.", "Rename the file.")
    records = training_records(rows, row_format)
    if file.suffix == ".jsonl":
        write_atomically("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), file)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.parent.is_dir():
        raise UsageError(f"{file}: the folder does not exist.", "Create it first.")
    partial_file = file.with_name(f".{file.name}.part")  # renamed when complete, so that no reader sees half a file
    try:
        with report_write_errors(file):
            pq.write_table(pa.Table.from_pylist(records), partial_file)
            partial_file.replace(file)
    finally:
        partial_file.unlink(missing_ok=True)


class RowSource(NamedTuple):
    """How rows were made, for the data card.

    Attributes:
        stage, method: of the repair.
        k: number of items in the subsets that were checked for cycles.
    """

    stage: RepairStage
    method: RatingMethod
    k: int


def build_data_card(
    audit_name: str,
    rows: Sequence[TrainingRow],
    source: RowSource,
    summaries: Sequence[RepairSummary],
    stages: Sequence[StageSummary],
    row_format: TrainingFormat,
) -> str:
    """Describe the rows, their source and their limits, as the text of a Markdown file."""
    by_judge, relations = Counter(row.judge for row in rows), Counter(row.relation.value for row in rows)
    table = "\n".join(
        f"| {summary.judge} | {by_judge[summary.judge]} | {summary.questions} | {summary.flipped} | "
        f"{_format_change(summary.transitivity)} | {_format_change(summary.commutativity)} | "
        f"{_format_change(summary.people)} |"
        for summary in summaries
    )
    stage_table = "\n".join(f"| {' | '.join(map(str, format_stage(stage)))} |" for stage in stages)
    counts = ", ".join(f"{n} {name}" for name, n in relations.items())
    return f"""# Data card: comparisons of the audit {audit_name}, stage {source.stage}

{len(rows)} rows for preference tuning, {counts}, in the form `{row_format}`.

## How they were made
Judges compared pairs of items. Within each set the items were ranked (method: {source.method}), and every pair was
given the answer that follows from the ranking, in both orders and in its negated form (REPAIR of "Aligning with Logic",
ICML 2025). Pairs of equal rating, and pairs that no comparison connects, are left out. `flipped` marks the answers to
the standard question that the ranking reverses. The rows of this file are of the stage `{source.stage}`.

| judge | rows | answers | flipped | transitivity (K = {source.k}) | commutativity | agreement with people |
| --- | --- | --- | --- | --- | --- | --- |
{table}

Figures are before → after, over all answers to the standard question; a dash means not available.

| {" | ".join(stage_columns(source.k))} |
|{" --- |" * len(stage_columns(source.k))}
{stage_table}

Transitivity by stage is by the comparisons there are: a missing one cannot be part of a cycle.

## Columns
`prompt`, `chosen`, `rejected`: what to train on. `judge`, `context`, `item_a`, `item_b` (shown first and second),
`relation` (`standard` or `negated`), `flipped`: where the row comes from.

## What they are not
They make a judge agree with itself, not with people: a consistent error remains, and is trained. Items may be texts by
others, with their own licences. Keep the rows of a set together: split training and test data by `context`.
"""


def stage_columns(k: int) -> list[str]:
    """Titles of the columns of `format_stage`."""
    return ["judge", "stage", f"transitivity (K = {k})", "pairs present", "commutativity", "rows", "rows per set"]


def format_stage(stage: StageSummary) -> list[str | int]:
    """One stage as a row of text: a row of table 2 of the paper."""
    figures = [
        "–" if value is None else f"{value:.3f}"
        for value in (stage.transitivity, stage.pairs_present, stage.commutativity)
    ]
    name = f"{stage.stage} + negated" if stage.negated else stage.stage
    return [stage.judge, name, *figures, stage.rows, f"{stage.rows_per_set:.2f}"]


def _format_change(before_after: tuple[float | None, float | None]) -> str:
    """Two shares as "0.50 → 0.80"; a dash where one is None."""
    return " → ".join("–" if value is None else f"{value:.2f}" for value in before_after)
