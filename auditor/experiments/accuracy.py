"""Experiment `accuracy`: is a model right where it is consistent?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult, MoralAuditArgument

if TYPE_CHECKING:
    from auditor.agents.run_context import RunContext
    from auditor.agents.semantic.experiments import KnownAnswerQuestion
    from auditor.reports.data.report_source import FloatArray
    from auditor.reports.data.semantic.experiment_rows import ConsistencyAccuracyRow
    from auditor.surveys.row_reader import TextRow


def accuracy(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file with the columns question_id,question,choices,correct[,paraphrase]; choices "
            "are separated by |.",
        ),
    ],
) -> ExperimentResult:
    """Test if consistent answers are more often correct.

    The questions are in FILE; each has one correct answer and several wordings. AUDIT's paraphraser writes wordings of
    questions that have only one. The models, the sentence encoder and the consistency score are those of AUDIT. Models
    are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment accuracy moral facts.csv
    """
    from auditor.agents.semantic.experiments import accuracy_and_consistency, paraphrase_known_answers
    from auditor.experiments.stored_audit import MORAL_QUESTIONS, ask_models
    from auditor.reports.sections.experiments.consistency import build_accuracy_document

    questions = _read_known_answers(file)

    async def ask(run: RunContext) -> tuple[dict[str, tuple[FloatArray, FloatArray]], dict[str, str]]:
        families = {model.name: model.resolved_family for model in run.config.models}
        return await accuracy_and_consistency(run, await paraphrase_known_answers(run, questions)), families

    measures, families = ask_models(context, audit, (MORAL_QUESTIONS,), ask)
    rows = _add_correlation_over_models([_build_row(model, *values) for model, values in measures.items()], families)
    return ExperimentResult(rows, build_accuracy_document(audit, rows))


def _add_correlation_over_models(
    rows: Sequence[ConsistencyAccuracyRow], families: Mapping[str, str]
) -> list[ConsistencyAccuracyRow]:
    """Copy the rows with the correlation over models of mean consistency with accuracy."""
    import numpy as np

    from auditor.metrics.model_correlation import correlate_models

    consistencies, accuracies = (
        np.array([np.nan if estimate.value is None else estimate.value for estimate in estimates])
        for estimates in ([row.consistency for row in rows], [row.accuracy for row in rows])
    )
    over_models = correlate_models(consistencies, accuracies, [families[row.model] for row in rows])
    return [row.model_copy(update={"over_models": over_models}) for row in rows]


def _build_row(model: str, accuracies: FloatArray, consistencies: FloatArray) -> ConsistencyAccuracyRow:
    """Correlate a model's accuracy and consistency, shape (questions,) each, nan where there is none."""
    import numpy as np

    from auditor.metrics.averaging import averaged_share
    from auditor.metrics.clustered_correlation import correlate_over_units
    from auditor.reports.data.semantic.experiment_rows import ConsistencyAccuracyRow
    from auditor.reports.data.semantic.score_table import mean_over_questions

    units, has_answers = {"question": np.arange(len(accuracies))}, ~np.isnan(accuracies)
    r = correlate_over_units(consistencies, accuracies, units)
    return ConsistencyAccuracyRow(
        model=model,
        accuracy=averaged_share(
            np.where(has_answers, accuracies, 0.0),
            has_answers,
            units,
            "instances",
            empty_reason="no question has a usable answer",
        ),
        consistency=mean_over_questions(consistencies),
        n=r.n,
        r=r.value,
        p_value=r.p_value,
        ci_low=r.ci_low,
        ci_high=r.ci_high,
        reason=r.reason,
    )


def _read_known_answers(file: Path) -> list[KnownAnswerQuestion]:
    """Read the questions of a file, one entry per id with all its wordings: the question itself, then its paraphrases.

    Raises:
        ImportFileError: a row that cannot be used, rows of one id that differ, or no rows.
    """
    from auditor.errors import ImportFileError
    from auditor.surveys.row_reader import read_rows

    questions_by_id: dict[str, KnownAnswerQuestion] = {}
    for row in read_rows(file, ("question_id", "question", "choices", "correct"), ("paraphrase",)):
        parsed = _parse_question(row)
        earlier = questions_by_id.setdefault(parsed.id, parsed)
        if earlier._replace(wordings=earlier.wordings[:1]) != parsed:
            raise ImportFileError(
                f"{row.location}: question '{parsed.id}' differs from an earlier row.",
                "Repeat the same question, choices and correct in all rows of a question_id.",
            )
        if row.cells["paraphrase"]:
            questions_by_id[parsed.id] = earlier._replace(wordings=(*earlier.wordings, row.cells["paraphrase"]))
    if not questions_by_id:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return list(questions_by_id.values())


def _parse_question(row: TextRow) -> KnownAnswerQuestion:
    """The question of a row without its paraphrase; ImportFileError if it has no text or no correct choice."""
    from auditor.agents.semantic.experiments import KnownAnswerQuestion

    question_id, question, correct = (row.required_text(column) for column in ("question_id", "question", "correct"))
    choices = tuple(choice.strip() for choice in row.cells["choices"].split("|") if choice.strip())
    if len(choices) < 2:
        raise row.make_cell_error("choices", "needs two choices or more", "Separate them by |.")
    if correct not in choices:
        how_to_fix = f"Copy one of the choices: {', '.join(choices)}."
        raise row.make_cell_error("correct", f"'{correct}' is not one of the choices", how_to_fix)
    return KnownAnswerQuestion(question_id, (question,), choices, choices.index(correct) + 1)  # choices count from 1
