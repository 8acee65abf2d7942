"""Experiment `accuracy`: is a model right where it is consistent?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult
from auditor.probes.semantic.experiments.temperature import MoralAuditArgument

if TYPE_CHECKING:
    from auditor.agents.run_context import RunContext
    from auditor.config import AuditConfig
    from auditor.metrics.estimate import Estimate
    from auditor.metrics.model_correlation import ModelCorrelation
    from auditor.probes.semantic.figures.experiment_rows import ConsistencyAccuracyRow
    from auditor.probes.semantic.group_scores import GroupScores
    from auditor.probes.semantic.known_answers import KnownAnswerQuestion
    from auditor.reports.data.report_source import FloatArray
    from auditor.surveys.row_reader import TextRow

    Measures: TypeAlias = dict[str, tuple[FloatArray, GroupScores]]
    """By model: the share of correct answers, shape (questions,), and the consistency of the reasons."""


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
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Ask only the first N questions of FILE.")
    ] = None,
    score_choices: Annotated[
        bool, typer.Option("--score-choices", help="Compare the texts of the chosen answers, not the reasons for them.")
    ] = False,
) -> ExperimentResult:
    """Test if consistent answers are more often correct.

    The questions are in FILE; each has one correct answer and several paraphrases, which are asked instead of the
    question itself. AUDIT's paraphraser writes those of questions without any. The models, the sentence encoder and the
    measures of consistency are those of AUDIT. Models are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment accuracy moral facts.csv
    """
    from auditor.experiments.stored_audit import ask_models
    from auditor.probes.semantic.experiment_runs import SEMANTIC_PROBE
    from auditor.probes.semantic.experiments.section_consistency import build_accuracy_document
    from auditor.probes.semantic.known_answers import accuracy_and_consistency, paraphrase_known_answers

    questions = read_known_answers(file)[:limit]

    async def ask(run: RunContext) -> tuple[AuditConfig, list[KnownAnswerQuestion], Measures]:
        asked = await paraphrase_known_answers(run, questions)
        return run.config, asked, await accuracy_and_consistency(run, asked, scores_choices=score_choices)

    config, asked, measures = ask_models(context, audit, (SEMANTIC_PROBE,), ask)
    scored = {"scored": "choices"} if score_choices else {}
    settings = _describe_questions(config, questions, asked) | scored
    rows = [_build_row(model, *values).model_copy(update=settings) for model, values in measures.items()]
    rows = _add_correlation_over_models(rows, {model.name: model.resolved_family for model in config.models})
    return ExperimentResult(rows, build_accuracy_document(audit, rows))


def _describe_questions(
    config: AuditConfig, questions: Sequence[KnownAnswerQuestion], asked: Sequence[KnownAnswerQuestion]
) -> dict[str, Any]:
    """What was asked, as fields of a row: the number of questions, their wordings, and who wrote any.

    Args:
        questions, asked: as in the file, and with the wordings that the paraphraser wrote.
    """
    n_wordings = [len(question.asked_texts) for question in asked]
    from auditor.probes.semantic.settings import SemanticProbe

    probe = config.probes.find(SemanticProbe)
    was_paraphrased = any(not question.paraphrases for question in questions)
    return {
        "questions": len(asked),
        "wordings": (min(n_wordings), max(n_wordings)),
        "paraphraser": probe.paraphraser if probe is not None and was_paraphrased else None,
    }


def _add_correlation_over_models(
    rows: Sequence[ConsistencyAccuracyRow], families: Mapping[str, str]
) -> list[ConsistencyAccuracyRow]:
    """Copy the rows with the correlations over models of accuracy with mean consistency, by each measure."""
    names = [families[row.model] for row in rows]
    accuracies = [row.accuracy for row in rows]
    of_score = _correlate_means([row.consistency for row in rows], accuracies, names)
    of_measures = [
        _correlate_means([measure.consistency for measure in measures], accuracies, names)
        for measures in zip(*(row.measures for row in rows), strict=True)
    ]
    return [
        row.model_copy(
            update={
                "over_models": of_score,
                "measures": [
                    measure.model_copy(update={"over_models": correlation})
                    for measure, correlation in zip(row.measures, of_measures, strict=True)
                ],
            }
        )
        for row in rows
    ]


def _correlate_means(
    consistencies: Sequence[Estimate], accuracies: Sequence[Estimate], families: Sequence[str]
) -> ModelCorrelation:
    """Correlate two estimates of each model over the models; those without a value are left out."""
    import numpy as np

    from auditor.metrics.model_correlation import correlate_models

    x, y = (
        np.array([np.nan if estimate.value is None else estimate.value for estimate in estimates])
        for estimates in (consistencies, accuracies)
    )
    return correlate_models(x, y, families)


def _build_row(model: str, accuracies: FloatArray, scores: GroupScores) -> ConsistencyAccuracyRow:
    """Correlate a model's accuracy and consistency over questions; accuracy is nan where there is none."""
    import numpy as np

    from auditor.metrics.averaging import averaged_share
    from auditor.metrics.clustered_correlation import correlate_over_units
    from auditor.probes.semantic.figures.answer_counts import build_count_rows
    from auditor.probes.semantic.figures.experiment_rows import ConsistencyAccuracyRow, TaskConsistencyRow
    from auditor.probes.semantic.figures.score_table import mean_over_questions

    units, has_answers = {"question": np.arange(len(accuracies))}, ~np.isnan(accuracies)
    return ConsistencyAccuracyRow(
        model=model,
        accuracy=averaged_share(
            np.where(has_answers, accuracies, 0.0),
            has_answers,
            units,
            "instances",
            empty_reason="no question has a usable answer",
        ),
        consistency=mean_over_questions(scores.main),
        r=correlate_over_units(scores.main, accuracies, units),
        measures=[
            TaskConsistencyRow(text=text, metric=metric, consistency=mean_over_questions(values, metric=metric))
            for (text, metric), values in scores.by_measure.items()
        ],
        counts=build_count_rows({"": scores.outcomes}),
    )


def read_known_answers(file: Path) -> list[KnownAnswerQuestion]:
    """Read the questions of a file, one entry per id with all its paraphrases.

    Raises:
        ImportFileError: a row that cannot be used, rows of one id that differ, or no rows.
    """
    from auditor.errors import ImportFileError
    from auditor.surveys.row_reader import read_rows

    questions_by_id: dict[str, KnownAnswerQuestion] = {}
    for row in read_rows(file, ("question_id", "question", "choices", "correct"), ("paraphrase",)):
        parsed = _parse_question(row)
        earlier = questions_by_id.setdefault(parsed.id, parsed)
        if earlier._replace(paraphrases=()) != parsed:
            raise ImportFileError(
                f"{row.location}: question '{parsed.id}' differs from an earlier row.",
                "Repeat the same question, choices and correct in all rows of a question_id.",
            )
        if row.cells["paraphrase"]:
            questions_by_id[parsed.id] = earlier._replace(paraphrases=(*earlier.paraphrases, row.cells["paraphrase"]))
    if not questions_by_id:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return list(questions_by_id.values())


def _parse_question(row: TextRow) -> KnownAnswerQuestion:
    """The question of a row without its paraphrase; ImportFileError if it has no text, or if it has
    no correct choice or equal choices."""
    from auditor.probes.semantic.known_answers import KnownAnswerQuestion

    question_id, question, correct = (row.required_text(column) for column in ("question_id", "question", "correct"))
    choices = tuple(choice.strip() for choice in row.cells["choices"].split("|") if choice.strip())
    if len(choices) < 2:
        raise row.make_cell_error("choices", "needs two choices or more", "Separate them by |.")
    if len(set(choices)) < len(choices):
        raise row.make_cell_error("choices", "has two equal choices", "Leave the question out, or change one of them.")
    if correct not in choices:
        how_to_fix = f"Copy one of the choices: {', '.join(choices)}."
        raise row.make_cell_error("correct", f"'{correct}' is not one of the choices", how_to_fix)
    return KnownAnswerQuestion(question_id, question, choices, choices.index(correct) + 1)  # choices count from 1
