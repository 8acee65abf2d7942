"""Experiments on consistency: temperatures, a rule to follow, known answers, and human judgements."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

from auditor.errors import ImportFileError, UsageError, did_you_mean
from auditor.experiments.stored_audit import ExperimentContext, ExperimentResult, ask_models, require_config
from auditor.lazy_imports import import_when_used
from auditor.metrics.intervals.correlation import correlate_over_units
from auditor.metrics.intervals.items import averaged_share
from auditor.metrics.people.over_models import correlate_models
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.experiment_rows import (
    ConsistencyAccuracyRow,
    MeasureByRuleRow,
    MeasureByWordingRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
    TaskConsistencyRow,
    build_count_rows,
    compare_measures,
    difference_over_questions,
)
from auditor.probes.semantic.figures.human_judgements import (
    PairLabel,
    compare_with_human_judgements,
    load_sampled_labels,
)
from auditor.probes.semantic.figures.schema import mean_over_questions
from auditor.probes.semantic.questions import list_question_ids
from auditor.probes.semantic.section_measures import build_judgements_document
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.sections.phrasing import join_first
from auditor.storage import audits
from auditor.storage.audits import get_audit
from auditor.surveys.row_reader import read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import RunContext
    from auditor.config import AuditConfig
    from auditor.metrics.intervals.estimate import Estimate
    from auditor.metrics.people.over_models import ModelCorrelation
    from auditor.probes.semantic.experiment_calls import GroupScores, KnownAnswerQuestion
    from auditor.probes.semantic.questions import QuestionIds
    from auditor.reports.data.report_source import FloatArray
    from auditor.surveys.row_reader import TextRow

    Measures: TypeAlias = dict[str, tuple[FloatArray, GroupScores]]
    "By model: the share of correct answers, shape (questions,), and the consistency of the reasons."

if not TYPE_CHECKING:
    experiment_calls = import_when_used("auditor.probes.semantic.experiment_calls")
    sections = import_when_used("auditor.probes.semantic.experiments.sections")
else:
    from auditor.probes.semantic import experiment_calls
    from auditor.probes.semantic.experiments import sections


MoralAuditArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="AUDIT", help="An audit with the probe semantic.")
]


def temperature(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    temperatures: Annotated[
        str, typer.Option("--temperatures", metavar="LIST", help="Temperatures, each in [0, 2].")
    ] = "0,0.5,1",
) -> ExperimentResult:
    """Compare variation over wordings and over repetitions.

    Models are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment temperature moral --temperatures 0,0.7,1.4
    """
    values = parse_temperatures(temperatures)
    scores = ask_models(
        context,
        audit,
        (experiment_calls.SEMANTIC_PROBE,),
        lambda run: experiment_calls.scores_by_temperature(run, values),
    )
    # Keys are (model, temperature, whether the answers are to paraphrases).
    rows = [
        _build_temperature_row(model, value, scores[model, value, False], scores[model, value, True])
        for model, value in dict.fromkeys((model, value) for model, value, _ in scores)
    ]
    adjusted_rows = adjust_rows(rows, "difference", "wordings compared with repeats")
    return ExperimentResult(adjusted_rows, sections.build_temperature_document(audit, adjusted_rows))


def _build_temperature_row(
    model: str, value: float, same_words: GroupScores, other_words: GroupScores
) -> SemanticTemperatureRow:
    """Compare repeated answers to one wording with answers to all wordings, at one temperature."""
    change = difference_over_questions(same_words.main, other_words.main)
    return SemanticTemperatureRow(
        model=model,
        temperature=value,
        same_words=mean_over_questions(same_words.main.values),
        other_words=mean_over_questions(other_words.main.values),
        difference=change,
        measures=compare_measures(MeasureByWordingRow, same_words.by_measure, other_words.by_measure),
        questions=len(same_words.main.values),
        counts=build_count_rows({"same_words": same_words.outcomes, "other_words": other_words.outcomes}),
    )


def parse_temperatures(text: str) -> list[float]:
    """Temperatures in [0, 2] from a comma-separated list, without duplicates."""
    try:
        parsed = [float(number) for number in text.split(",")]
    except ValueError:
        parsed = []
    if not parsed or not all(0 <= number <= 2 for number in parsed):
        raise UsageError(
            f"--temperatures: '{text}' is not a list of numbers from 0 to 2.", "Separate them by commas: 0,0.7,1.4"
        )
    return list(dict.fromkeys(parsed))


def rules(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Rules to follow, with the columns question_id,rule; other questions are left out.",
        ),
    ] = None,
) -> ExperimentResult:
    """Test if rules of thumb make models more consistent.

    Each question is asked again in all its wordings, with a rule to follow: of FILE, such as rules that people wrote,
    or else the first rule of thumb that the model gave for the question. Models are asked, which may cost money;
    recorded answers are reused.

    Example: auditor experiment rules moral
    """
    rule_by_question = None if file is None else read_rules(file, _load_question_ids(context, audit), audit)
    scores = ask_models(
        context,
        audit,
        (experiment_calls.SEMANTIC_PROBE,),
        lambda run: experiment_calls.scores_by_rule(run, rule_by_question),
    )
    # Keys are (model, whether it was told the rule).
    rows = [
        _build_rule_row(model, scores[model, False], scores[model, True])
        for model in dict.fromkeys(model for model, _ in scores)
    ]
    if file is not None and rule_by_question is not None:
        rows = [row.model_copy(update=_describe_file(file, rule_by_question)) for row in rows]
    adjusted_rows = adjust_rows(rows, "change", "changes by a rule")
    return ExperimentResult(adjusted_rows, sections.build_rules_document(audit, adjusted_rows))


def _describe_file(file: Path, rule_by_question: Mapping[str, str]) -> dict[str, Any]:
    """The file of rules as fields of a row."""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"rules_file": file.name, "rules_sha256": sha256, "questions": len(rule_by_question)}


def _build_rule_row(model: str, before: GroupScores, after: GroupScores) -> RuleFollowingRow:
    """Compare a model's consistency without and with a rule."""
    change = difference_over_questions(before.main, after.main)
    return RuleFollowingRow(
        model=model,
        before=mean_over_questions(before.main.values),
        after=mean_over_questions(after.main.values),
        change=change,
        measures=compare_measures(MeasureByRuleRow, before.by_measure, after.by_measure),
        counts=build_count_rows({"before": before.outcomes, "after": after.outcomes}),
    )


def _load_question_ids(context: ExperimentContext, audit_name: str) -> QuestionIds:
    """Ids of an audit's questions; StorageError or UsageError if it has none."""
    with context.open_database() as db:
        audit = audits.get_audit(db, audit_name)
        config = require_config(db, audit, experiment_calls.SEMANTIC_PROBE)
        stored_ids = [question.id for question in answer_rows.load_questions(db, audit.id)]
        return list_question_ids(config, audits.load_audit_survey(db, audit), stored_ids)


def read_rules(file: Path, ids: QuestionIds, audit: str) -> dict[str, str]:
    """Read the rules of a file for the questions that an audit asks, by question id.

    Raises:
        ImportFileError: a row cannot be used, names a question that is not the audit's, or repeats one; or no row is
            of a question that it asks.
    """
    known_ids = (*ids.asked, *ids.beyond_limit)
    rule_by_question: dict[str, str] = {}
    for row in read_rows(file, ("question_id", "rule")):
        question, rule = (row.required_text(column) for column in ("question_id", "rule"))
        if question not in known_ids:
            how_to_fix = did_you_mean(question, known_ids, f"Remove the row. Known: {join_first(known_ids)}.")
            raise row.make_cell_error("question_id", f"the audit '{audit}' has no question '{question}'", how_to_fix)
        if question in rule_by_question:
            raise ImportFileError(
                f"{row.location}: question '{question}' has a rule in an earlier row.", "Keep one of the rows."
            )
        rule_by_question[question] = rule
    if not rule_by_question:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    rules = {question: rule for question, rule in rule_by_question.items() if question in ids.asked}
    if not rules:
        raise ImportFileError(f"{file}: no row is of a question that the audit '{audit}' asks.", "Raise its limit.")
    return rules


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
    questions = read_known_answers(file)[:limit]

    async def ask(run: RunContext) -> tuple[AuditConfig, list[KnownAnswerQuestion], Measures]:
        asked = await experiment_calls.paraphrase_known_answers(run, questions)
        return (
            run.config,
            asked,
            await experiment_calls.accuracy_and_consistency(run, asked, scores_choices=score_choices),
        )

    config, asked, measures = ask_models(context, audit, (experiment_calls.SEMANTIC_PROBE,), ask)
    scored = {"scored": "choices"} if score_choices else {}
    settings = _describe_questions(config, questions, asked) | scored
    rows = [_build_accuracy_row(model, *values).model_copy(update=settings) for model, values in measures.items()]
    rows = _add_correlation_over_models(rows, {model.name: model.resolved_family for model in config.models})
    return ExperimentResult(rows, sections.build_accuracy_document(audit, rows))


def _describe_questions(
    config: AuditConfig, questions: Sequence[KnownAnswerQuestion], asked: Sequence[KnownAnswerQuestion]
) -> dict[str, Any]:
    """What was asked, as fields of a row: the number of questions, their wordings, and who wrote any.

    Args:
        questions, asked: as in the file, and with the wordings that the paraphraser wrote.
    """
    n_wordings = [len(question.asked_texts) for question in asked]

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
    x, y = (
        np.array([np.nan if estimate.value is None else estimate.value for estimate in estimates])
        for estimates in (consistencies, accuracies)
    )
    return correlate_models(x, y, families)


def _build_accuracy_row(model: str, accuracies: FloatArray, scores: GroupScores) -> ConsistencyAccuracyRow:
    """Correlate a model's accuracy and consistency over questions; accuracy is nan where there is none."""
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
        consistency=mean_over_questions(scores.main.values),
        r=correlate_over_units(scores.main.values, accuracies, units),
        measures=[
            TaskConsistencyRow(text=text, metric=metric, consistency=mean_over_questions(sized.values, metric=metric))
            for (text, metric), sized in scores.by_measure.items()
        ],
        counts=build_count_rows({"": scores.outcomes}),
    )


def read_known_answers(file: Path) -> list[KnownAnswerQuestion]:
    """Read the questions of a file, one entry per id with all its paraphrases.

    Raises:
        ImportFileError: a row that cannot be used, rows of one id that differ, or no rows.
    """
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
    question_id, question, correct = (row.required_text(column) for column in ("question_id", "question", "correct"))
    choices = tuple(choice.strip() for choice in row.cells["choices"].split("|") if choice.strip())
    if len(choices) < 2:
        raise row.make_cell_error("choices", "needs two choices or more", "Separate them by |.")
    if len(set(choices)) < len(choices):
        raise row.make_cell_error("choices", "has two equal choices", "Leave the question out, or change one of them.")
    if correct not in choices:
        how_to_fix = f"Copy one of the choices: {', '.join(choices)}."
        raise row.make_cell_error("correct", f"'{correct}' is not one of the choices", how_to_fix)
    return experiment_calls.KnownAnswerQuestion(
        question_id, question, choices, choices.index(correct) + 1
    )  # choices count from 1


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
    labels = [] if file is None else read_judgements(file)
    with context.open_database() as db:
        if file is None:
            labels = load_sampled_labels(db, get_audit(db, audit).id)
        report = compare_with_human_judgements(db, audit, labels, file)
    return ExperimentResult(report, build_judgements_document(audit, report))


def read_judgements(file: Path) -> list[PairLabel]:
    """Read the judgements of a file; ImportFileError for a row that cannot be used, or without rows."""
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
