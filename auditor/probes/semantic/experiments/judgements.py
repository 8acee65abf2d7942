"""Experiment `judgements`: which measure of consistency agrees best with people?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult
from auditor.probes.semantic.experiments.temperature import MoralAuditArgument

if TYPE_CHECKING:
    from auditor.probes.semantic.figures.people_labels import PairLabel
    from auditor.surveys.row_reader import TextRow

SCORES = {"Y": 1.0, "N": 0.0, "NA": float("nan")}


def judgements(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A file with the columns rater,model,question_id,left,right,judgement; if left out, the labels of "
            "`auditor review --sample --kind answer_pair`.",
        ),
    ] = None,
) -> ExperimentResult:
    """Compare measures of consistency with human judgements.

    The judgements are of pairs of answers; no model is asked. A row states whether the answers to two wordings of a
    question say the same: Y, N, or NA (cannot say). Left and right are the numbers of these wordings, from 1. Rows
    about other models, questions and wordings are left out.

    Example: auditor experiment judgements moral people.csv
    """
    from auditor.probes.semantic.experiments.section_human_judgements import build_judgements_document
    from auditor.probes.semantic.figures.human_judgements import compare_with_human_judgements
    from auditor.probes.semantic.figures.people_labels import load_sampled_labels
    from auditor.storage.audits import get_audit

    labels = [] if file is None else read_judgements(file)
    with context.open_database() as db:
        if file is None:
            labels = load_sampled_labels(db, get_audit(db, audit).id)
        report = compare_with_human_judgements(db, audit, labels, file)
    return ExperimentResult(report, build_judgements_document(audit, report))


def read_judgements(file: Path) -> list[PairLabel]:
    """Read the judgements of a file; ImportFileError for a row that cannot be used, or without rows."""
    from auditor.errors import ImportFileError
    from auditor.surveys.row_reader import read_rows

    labels: dict[tuple[str, str, str, int, int], PairLabel] = {}
    for row in read_rows(file, ("rater", "model", "question_id", "left", "right", "judgement")):
        label = _parse_judgement(row)
        if label[:5] in labels:
            raise ImportFileError(
                f"{row.location}: this rater's judgement of this pair occurs twice.", "Keep one of the rows."
            )
        labels[label[:5]] = label
    if not labels:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return list(labels.values())


def _parse_judgement(row: TextRow) -> PairLabel:
    """The judgement of a row; ImportFileError if its pair is none, or the judgement is not one of `SCORES`."""
    from auditor.probes.semantic.figures.people_labels import PairLabel

    rater, model, question, *_, text = map(row.required_text, row.cells)
    left, right = row.integer("left"), row.integer("right")
    if text.upper() not in SCORES:
        raise row.make_cell_error("judgement", f"'{text}' is not one of Y, N and NA", "Write one of these.")
    for column, number in (("left", left), ("right", right)):
        if number < 1:
            problem = f"{number} is not the number of a wording"
            raise row.make_cell_error(column, problem, "Write a whole number from 1.")
    if left == right:
        problem = f"{right} is the same wording as in the column 'left'"
        raise row.make_cell_error("right", problem, "Write the numbers of two wordings.")
    return PairLabel(rater, model, question, min(left, right), max(left, right), SCORES[text.upper()])
