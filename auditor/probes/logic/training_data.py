"""Rows for preference tuning from comparisons at a stage of REPAIR: built, and written as JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from auditor.domain import Message
from auditor.domain.identifiers import is_shortened
from auditor.errors import UsageError
from auditor.exports.training import TrainingFormat, TrainingText, to_records, write_records
from auditor.metrics.preference_repair import RatingMethod
from auditor.probes.logic.comparisons import Relation
from auditor.probes.logic.questions import render_question
from auditor.probes.logic.repair import RepairedAnswers
from auditor.probes.logic.repair_stages import RepairStage, StageAnswers

AnswerFormat = Literal["json", "letter"]


@dataclass(frozen=True)
class RepairSettings:
    """How comparisons are repaired, and which rows are written: the options of `auditor logic repair`.

    Attributes:
        stage, method: of the repair.
        noise: share of the answers that are reversed first, in [0, 1].
        k: number of items in the subsets that are checked for cycles.
        seed: of the noise and of samples; None is 0, and takes comparisons for Elo in the order of their file, or of
            the items where that is unknown.
        negated: whether rows in negated form are written, if the stage has them.
        answers, form: formats of the answers and of the rows.
    """

    stage: RepairStage = "repaired"
    method: RatingMethod = "win-loss"
    noise: float = 0.0
    k: int = 5
    seed: int | None = None
    negated: bool = True
    answers: AnswerFormat = "json"
    form: TrainingFormat = "preference"

    def __post_init__(self) -> None:
        """Raise UsageError for an unknown choice, or a stage that needs noise."""
        for name, annotation in get_type_hints(type(self)).items():
            choices, value = get_args(annotation), getattr(self, name)
            if get_origin(annotation) is Literal and value not in choices:
                raise UsageError(f"--{name}: '{value}' is unknown.", f"Use {', '.join(choices[:-1])} or {choices[-1]}.")
        if self.stage == "perturbed" and not self.noise:
            raise UsageError("--stage: 'perturbed' requires --noise.", "Add --noise 0.1, or use --stage raw.")

    def require_no_row_options(self) -> None:
        """Raise UsageError if an option is set that has no effect unless rows are written."""
        defaults = RepairSettings()
        if unused := [
            f"--{name}" for name in ("stage", "answers", "form") if getattr(self, name) != getattr(defaults, name)
        ]:
            raise UsageError(f"{', '.join(unused)}: no effect without -o.", "Add -o FILE, or leave it out.")


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


def check_item_texts(repaired: Sequence[RepairedAnswers]) -> None:
    """Raise UsageError if an item has no text but an id that was made by shortening the text."""
    for entry in repaired:
        for item in entry.raw.item_set.items:
            if item.text == item.id and is_shortened(item.id):
                raise UsageError(
                    f"only the beginning of the item '{item.id}' is known, so that no rows can be written.",
                    "Import the comparisons again, with --items FILE: a file with the columns item, context and text.",
                )


def build_training_rows(answers: Sequence[StageAnswers], answer_format: AnswerFormat = "json") -> list[TrainingRow]:
    """Build a row for preference tuning from each decided answer of a stage (`auditor.probes.logic.repair_stages`).

    Pairs of equal rating, and pairs that no comparison connects, have no repaired answer.

    Args:
        answer_format: `json` writes answers as `{"answer": "A"}`, `letter` as `A`.
    """
    return [row for set_answers in answers for row in _training_rows_of_set(set_answers, answer_format)]


def _training_rows_of_set(answers: StageAnswers, answer_format: AnswerFormat) -> list[TrainingRow]:
    """Build the training rows of one judge's answers on one set; see `build_training_rows`."""
    item_set, judge = answers.source.original.item_set, answers.source.original.judge
    texts = {letter: letter if answer_format == "letter" else f'{{"answer": "{letter}"}}' for letter in "AB"}
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
                    messages=render_question(item_set, int(i), int(j), relation, as_letter=answer_format == "letter"),
                    chosen=texts[chosen],
                    rejected=texts[rejected],
                    flipped=relation is Relation.STANDARD and bool(answers.flipped[i, j]),
                )
            )
    return rows


def write_training_rows(rows: Sequence[TrainingRow], file: Path, row_format: TrainingFormat) -> None:
    """Write the rows as JSONL or Parquet, chosen by the file's suffix.

    Besides the question and the answers, a row has its judge, item set, items, relation and whether it was flipped.

    Raises:
        UsageError: another suffix, no rows, or the folder does not exist.
    """
    if not rows:
        raise UsageError(
            "the comparisons determine no ranking, so there is nothing to write.", "Collect comparisons of more pairs."
        )
    texts = [TrainingText(row.messages, row.chosen, row.rejected, _describe_source(row)) for row in rows]
    write_records(to_records(texts, row_format), file)


def _describe_source(row: TrainingRow) -> dict[str, Any]:
    """Where a row comes from."""
    return {
        "judge": row.judge,
        "context": row.context,
        "item_a": row.item_a,
        "item_b": row.item_b,
        "relation": row.relation.value,
        "flipped": row.flipped,
    }
