"""Answers that are compared without asking for them: recorded ones, and those to the items of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from auditor.agents.run_context import RunContext
from auditor.config import REPLAY, AuditConfig, ModelSection
from auditor.domain import Outcome, Trace
from auditor.errors import ImportFileError
from auditor.probes.semantic.call_builders import find_country_language, semantic_probe
from auditor.probes.semantic.records import MoralAnswerRecord
from auditor.probes.semantic.settings import TASK_QUESTIONS, SemanticProbe
from auditor.prompts import load_prompt
from auditor.storage import results
from auditor.surveys.row_reader import read_rows

RECORD_COLUMNS = ("question_id", "sample", "answer")
SUBJECT_PROMPTS = ("semantic.answer{}.structured", "semantic.answer{}.text", "semantic.consistency{}")


def load_task_answers(context: RunContext, model: str, item_ids: Iterable[str]) -> list[MoralAnswerRecord]:
    """Load a model's usable answers to some items of a task."""
    task = context.survey.task
    assert task is not None
    cells = [task.items[item_id].cell for item_id in item_ids]
    return [
        MoralAnswerRecord(model, trace.cell.topic, 0, trace.sample, trace.outcome, _trace_text(trace))
        for trace in results.load_traces(context.db, context.audit_id, cells, model)
        if trace.outcome is Outcome.OK
    ]


def _trace_text(trace: Trace) -> str:
    """The reasoning and the answer to an item of a task."""
    return "\n".join(filter(None, [trace.text, f"Answer: {trace.answer}"]))


def read_recorded_answers(model: ModelSection) -> list[MoralAnswerRecord]:
    """Read the answers of a model `replay/NAME`: all rows of its file, or those of NAME if the file names models.

    Raises:
        ImportFileError: the file cannot be read, has no row of the model, or has a question and sample twice.
    """
    name, file = model.unprefixed_model, Path(model.answers or "")
    answers: dict[tuple[str, int], MoralAnswerRecord] = {}
    for row in read_rows(file, RECORD_COLUMNS, ["model"]):
        if row.cells["model"] not in ("", name):
            continue
        question, sample, text = row.required_text("question_id"), row.integer("sample"), row.cells["answer"] or None
        if (question, sample) in answers:
            raise ImportFileError(
                f"{row.location}: two rows of '{name}' have the same question_id and sample.",
                "Give each answer its own number in the column sample, or delete the duplicate row.",
            )
        outcome = Outcome.OK if text else Outcome.NOT_MEASURABLE
        answers[question, sample] = MoralAnswerRecord(model.name, question, 0, sample, outcome, text)
    if not answers:
        raise ImportFileError(
            f"{file} has no row for the model '{name}'.",
            f"{REPLAY.prefix}/NAME uses the rows with that name in the column model, or without one.",
        )
    return list(answers.values())


def check_recorded_answers(config: AuditConfig, known_ids: set[str]) -> None:
    """Check the files of recorded answers.

    Raises:
        ImportFileError: as `read_recorded_answers`, or an answer is to a question that is not in `known_ids`.
    """
    for model, answers in list_recorded_answers(config):
        unknown_ids = sorted({answer.question for answer in answers} - known_ids)
        if unknown_ids:
            raise ImportFileError(
                f"{model.answers}: there is no question '{unknown_ids[0]}' in {semantic_probe(config).questions}.",
                "Correct the column question_id, or name the file of these questions in probes.semantic.questions.",
            )


def group_recorded_answers(config: AuditConfig) -> dict[str, dict[str, list[MoralAnswerRecord]]]:
    """Read all recorded answers, and group them by model and question.

    Raises:
        ImportFileError: as `read_recorded_answers`.
    """
    answers_by_model: dict[str, dict[str, list[MoralAnswerRecord]]] = {}
    for model, answers in list_recorded_answers(config):
        answers_by_question = answers_by_model.setdefault(model.name, {})
        for answer in answers:
            answers_by_question.setdefault(answer.question, []).append(answer)
    return answers_by_model


def list_recorded_answers(config: AuditConfig) -> Iterator[tuple[ModelSection, list[MoralAnswerRecord]]]:
    """Yield the models with recorded answers to the questions of the probe, and these answers."""
    probe = config.probes.find(SemanticProbe)
    for model in config.models if probe is not None and probe.questions != TASK_QUESTIONS else ():
        if semantic_probe(config).has_given_answers(config, model):
            yield model, read_recorded_answers(model)


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """List what determines the verdicts besides the configuration; empty with the standard prompts and no record.

    Args:
        languages: not used; the questions are asked as they are.
    """
    probe = semantic_probe(config)
    names = [name.format(probe.prompt_suffix) for name in SUBJECT_PROMPTS if probe.prompt_suffix]
    names += ["semantic.contradiction.any"] if probe.prompt_suffix and probe.contradiction else []
    names += ["semantic.consistency.paper"] if probe.consistency and probe.consistency.form == "paper" else []
    names += ["semantic.translate"] if probe.translator else []
    prompts = [load_prompt(name) for name in names]
    prompts += [load_prompt("semantic.country", language) for language in _languages_of_countries(probe)]
    inputs: list[object] = [[prompt.id, prompt.system, *(prompt.opening or ()), prompt.user] for prompt in prompts]
    for model, answers in list_recorded_answers(config):
        inputs.append([model.name, *([answer.question, answer.sample, answer.text] for answer in answers)])
    return inputs


def _languages_of_countries(probe: SemanticProbe) -> list[str]:
    """The languages in which requests name the countries that questions of the probe's file are about."""
    from auditor.probes.semantic.questions import load_questions  # imports this module

    has_file = probe.questions != TASK_QUESTIONS and Path(probe.questions).is_file()
    questions = load_questions(probe.questions) if has_file else []
    languages = {language for q in questions if q.country for language in (q.language, *q.languages)}
    return sorted({find_country_language(language) for language in languages})
