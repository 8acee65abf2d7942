"""Rows for preference tuning from comparisons at a stage of REPAIR, written with their data card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from auditor.domain import Message
from auditor.domain.terms import is_shortened
from auditor.errors import UsageError, pluralize
from auditor.exports.training import CARD_SECTION, TrainingFormat, TrainingText, to_records, write_training_files
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.logic.ranking import RatingMethod
from auditor.probes.logic.comparisons import Relation
from auditor.probes.logic.questions import render_question
from auditor.probes.logic.repair import RepairedAnswers, RepairStage, StageAnswers, StageSummary
from auditor.probes.logic.repair_command import RepairSummary
from auditor.reports.document import Code, Column, Document, Inline, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import format_percent

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
    """Build a row for preference tuning from each decided answer of a stage (`auditor.probes.logic.repair`).

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


def write_training_rows(rows: Sequence[TrainingRow], file: Path, row_format: TrainingFormat, card: Document) -> Path:
    """Write the rows as JSONL or Parquet, chosen by the file's suffix, and their card; return the card's path.

    Besides the question and the answers, a row has its judge, item set, items, relation and whether it was flipped.

    Raises:
        UsageError: another suffix, no rows, the folder does not exist, or a file is not replaced.
    """
    if not rows:
        raise UsageError(
            "the comparisons determine no ranking, so there is nothing to write.", "Collect comparisons of more pairs."
        )
    texts = [TrainingText(row.messages, row.chosen, row.rejected, _describe_source(row)) for row in rows]
    return write_training_files({file: to_records(texts, row_format)}, card)


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


STAGE_NOTE = (
    "Transitivity and commutativity are means over sets, with 95% CI; n counts sets. Transitivity is by the "
    "comparisons there are: a missing or tied one cannot be part of a cycle. Pairs present: mean share of decided "
    "pairs in a subset."
)


def build_data_card(
    audit_name: str,
    rows: Sequence[TrainingRow],
    settings: RepairSettings,
    summaries: Sequence[RepairSummary],
    stages: Sequence[StageSummary],
) -> Document:
    """Describe the rows, their source and their limits."""
    relations = Counter(row.relation.value for row in rows)
    counts = ", ".join(f"{n} {name}" for name, n in relations.items())
    introduction: list[Inline] = [
        f"{pluralize(len(rows), 'row')} for preference tuning, {counts}, of the stage ", Code(settings.stage),
        ", in the form ",
        Code(settings.form), ".",
    ]  # fmt: skip
    agreement_note = (
        "Agreement with people is before → after the repair, over the questions that people, the judge and the "
        "ranking decide; a dash means not available."
    )
    return Document(
        "Data card",
        f"Comparisons of the audit {audit_name}, stage {settings.stage}",
        "",
        [
            Section(
                "made",
                CARD_SECTION,
                [
                    Paragraph(_describe_stage(settings, has_negated=Relation.NEGATED.value in relations)),
                    Paragraph(_describe_answers(settings)),
                    Paragraph(f"Settings: {_list_settings(settings)}."),
                    _tabulate_judges(rows, summaries),
                    Paragraph(agreement_note),
                    _make_table("stages", stage_columns(settings.k), [format_stage(stage) for stage in stages]),
                    Paragraph(STAGE_NOTE),
                ],
            ),
            Section("columns", "Columns", [Paragraph(_COLUMNS)]),
            Section("limits", "Limits", [Paragraph([_describe_limits(settings), *_USE])]),
        ],
        [Paragraph(introduction)],
    )


_COLUMNS: Sequence[Inline] = (
    Code("prompt"), ", ", Code("chosen"), ", ", Code("rejected"), ": what to train on. ", Code("judge"), ", ",
    Code("context"), ", ", Code("item_a"), ", ", Code("item_b"), " (shown first and second), ", Code("relation"), " (",
    Code("standard"), " or ", Code("negated"), "), ", Code("flipped"), ": where the row comes from.",
)  # fmt: skip
_USE: Sequence[Inline] = (
    " Items may be texts by others, with their own licences. Keep the rows of a set together: split training and test "
    "data by ",
    Code("context"),
    ".",
)


def _describe_stage(settings: RepairSettings, *, has_negated: bool) -> Text:
    """How the answers of a stage were made; `has_negated` is whether there are rows in negated form."""
    noise = (
        f"Of each judge's decided answers to the standard question, {100 * settings.noise:g}% were drawn at random and "
        f"reversed, to simulate errors (seed {settings.seed or 0})."
    )
    if settings.stage in ("raw", "perturbed"):
        negated_note = " So was this share of those to the negated question." if has_negated else ""
        reversed_note = f" {noise}{negated_note}" if settings.stage == "perturbed" else ""
        return (
            f"Judges compared pairs of items. Each row is an answer of a judge.{reversed_note} Nothing was repaired: "
            "the answers may contradict each other. Ties are left out. ",
            Code("flipped"),
            " is always false.",
        )
    noise_note = f" {noise}" if settings.noise else ""
    negated = " and in its negated form" if settings.negated else ""
    sample = (
        f" Of these answers, as many as there were before the repair were drawn at random (seed {settings.seed or 0})."
        if settings.stage == "size-matched"
        else ""
    )
    return (
        f"Judges compared pairs of items.{noise_note} Within each set the items were ranked (method: "
        f"{settings.method}), and every pair was given the answer that follows from the ranking, in both "
        f'orders{negated} (REPAIR of "Aligning with Logic", ICML 2025). Pairs of equal rating, and pairs that no '
        "comparison connects, are left out."
        f"{sample} ",
        Code("flipped"),
        " marks the answers to the standard question that the ranking reverses.",
    )


def _describe_answers(settings: RepairSettings) -> Text:
    """The form of the answers, and of the questions that they answer."""
    if settings.answers == "letter":
        setting = Code('answer = "probability"')
        return (
            "Answers are letters, ",
            Code("A"),
            " or ",
            Code("B"),
            ". The prompt is that of the setting ",
            setting,
            ".",
        )
    return (
        "Answers are JSON. The prompt is that of the setting ",
        Code('answer = "structured"'),
        ", which also allows TIE; no row has that answer.",
    )


def _list_settings(settings: RepairSettings) -> str:
    """The options of the command, as a list."""
    values = {
        "stage": settings.stage, "method": settings.method, "noise": f"{settings.noise:g}",
        "seed": "not set (0; for elo, imported comparisons in the order of their file, others in that of the items)"
        if settings.seed is None
        else settings.seed,
        "negated": "yes" if settings.negated else "no", "answers": settings.answers, "K": settings.k,
    }  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _describe_limits(settings: RepairSettings) -> str:
    """What training on the answers of a stage does not do."""
    if settings.stage in ("raw", "perturbed"):
        return "They are not consistent: they train a judge's contradictions, too."
    return "They make a judge agree with itself, not with people: a consistent error remains, and is trained."


def _tabulate_judges(rows: Sequence[TrainingRow], summaries: Sequence[RepairSummary]) -> Table:
    """The counts of each judge."""
    n_rows = Counter(row.judge for row in rows)
    cells = [
        [
            summary.judge, n_rows[summary.judge], summary.questions, summary.flipped,
            format_percent(summary.flipped, summary.questions), format_change(summary.people),
        ]
        for summary in summaries
    ]  # fmt: skip
    return _make_table(
        "judges", ["judge", "rows", "answers", "reversed by the ranking", "share", "agreement with people"], cells
    )


def _make_table(table_id: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table of plain text."""
    cells = [[Name(str(value)) for value in row] for row in rows]
    return Table(table_id, table_id.capitalize(), "", [Column(title) for title in columns], cells)


def stage_columns(k: int) -> list[str]:
    """Titles of the columns of `format_stage`."""
    return ["judge", "stage", f"transitivity (K = {k})", "pairs present", "commutativity", "rows", "rows per set"]


def format_stage(stage: StageSummary) -> list[str | int]:
    """One stage as a row of text: a row of table 2 of the paper."""
    present = stage.transitivity.pairs_present
    return [
        stage.judge,
        f"{stage.stage} + negated" if stage.negated else stage.stage,
        _format_mean(stage.transitivity),
        "–" if present is None else f"{present:.0%}",
        _format_mean(stage.commutativity),
        stage.rows,
        "–" if stage.rows_per_set.value is None else f"{stage.rows_per_set.value:.2f}",
    ]


def _format_mean(estimate: Estimate) -> str:
    """A mean over sets with its interval and the number of sets; a dash where it is not available."""
    if estimate.value is None:
        return "–"
    interval = "" if estimate.ci_low is None else f"{estimate.ci_low:.3f} to {estimate.ci_high:.3f}; "
    return f"{estimate.value:.3f} ({interval}n {estimate.n})"


def format_change(before_after: tuple[float | None, float | None]) -> str:
    """Two shares as "0.50 → 0.80"; a dash where one is None."""
    return " → ".join("–" if value is None else f"{value:.2f}" for value in before_after)
