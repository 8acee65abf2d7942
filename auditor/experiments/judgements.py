"""Experiment `judgements`: which measure of consistency agrees best with people?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult, MoralAuditArgument

if TYPE_CHECKING:
    from auditor.reports.data.semantic.human_judgements import JudgementsByPair

SCORES = {"Y": 1.0, "N": 0.0, "NA": float("nan")}


def judgements(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A file with the columns rater,model,question_id,left,right,judgement."),
    ],
) -> ExperimentResult:
    """Compare measures of consistency with human judgements.

    The judgements are of pairs of answers; no model is asked. A row states whether the answers to two wordings of a
    question, left and right, say the same: Y, N, or NA (cannot say).

    Example: auditor experiment judgements moral people.csv
    """
    from auditor.reports.data.semantic.human_judgements import compare_with_human_judgements
    from auditor.reports.sections.experiments.consistency import build_judgements_document

    judgements_by_pair = _read_judgements(file)
    with context.open_database() as db:
        report = compare_with_human_judgements(db, audit, judgements_by_pair, file)
    return ExperimentResult(report, build_judgements_document(audit, report))


def _read_judgements(file: Path) -> JudgementsByPair:
    """Read the judgements of a file; ImportFileError for a row that cannot be used, or without rows."""
    from auditor.errors import ImportFileError
    from auditor.surveys.row_reader import read_rows

    judgements_by_pair: JudgementsByPair = {}
    columns = ("rater", "model", "question_id", "left", "right", "judgement")
    for row in read_rows(file, columns):
        rater, model, question, left, right, text = (row.required_text(column) for column in columns)
        if text.upper() not in SCORES:
            raise row.make_cell_error("judgement", f"'{text}' is not one of Y, N and NA", "Write one of these.")
        first_wording, second_wording = sorted((left, right))
        key = (rater, model, question, first_wording, second_wording)
        if key in judgements_by_pair:
            raise ImportFileError(
                f"{row.location}: this rater's judgement of this pair occurs twice.", "Keep one of the rows."
            )
        judgements_by_pair[key] = SCORES[text.upper()]
    if not judgements_by_pair:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return judgements_by_pair
