"""The moral questions of an audit and their wordings: built in, or from a user's file."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated, NamedTuple

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from auditor.agents.call_builders import question_with_options
from auditor.config import AuditConfig
from auditor.config.validation_messages import explain_validation_error
from auditor.domain import Survey
from auditor.errors import ConfigError, ImportFileError, pluralize
from auditor.input_files import parse_toml, read_text
from auditor.metrics.answers.semantic import normalize_text
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answers import check_recorded_answers
from auditor.probes.semantic.records import FOUNDATIONS, MoralQuestion, MoralWording
from auditor.probes.semantic.settings import BUILT_IN_QUESTIONS, TASK_QUESTIONS, SemanticProbe
from auditor.storage.database import Database
from auditor.storage.records import save_records
from auditor.surveys.row_reader import TextRow, read_rows

NonEmptyText = Annotated[str, Field(min_length=1)]


class QuestionEntry(BaseModel):
    """One question of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: NonEmptyText
    topics: list[NonEmptyText] = []
    text: NonEmptyText
    paraphrases: list[NonEmptyText] = []
    country: str = ""


class QuestionFile(BaseModel):
    """A file of questions about one foundation, in one language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    foundation: str = ""
    language: str = "en"
    question: Annotated[list[QuestionEntry], Field(min_length=1)]


@functools.cache
def load_built_in_questions() -> tuple[MoralQuestion, ...]:
    """Load all built-in questions, alternating between the six foundations."""
    folder = resources.files("auditor.prompts") / "questions" / "en"
    questions_by_foundation = [
        parse_questions((folder / f"{foundation}.toml").read_text(encoding="utf-8"), f"{foundation}.toml")
        for foundation in FOUNDATIONS
    ]
    return tuple(
        question
        for next_of_each_foundation in zip(*questions_by_foundation, strict=True)
        for question in next_of_each_foundation
    )


def parse_questions(text: str, source: str) -> tuple[MoralQuestion, ...]:
    """Parse a TOML file of questions.

    Args:
        text: contents of the file.
        source: name of the file, for error messages.

    Raises:
        ConfigError: the file is invalid; the message names the place.
    """
    toml_table = parse_toml(text, source, ConfigError)
    try:
        file = QuestionFile.model_validate(toml_table)
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, toml_table, QuestionFile)
        raise ConfigError(f"{source}: {problem}", "Each [[question]] has an id and a text.") from None
    return tuple(
        MoralQuestion(
            id=entry.id,
            text=entry.text,
            paraphrases=tuple(entry.paraphrases),
            foundation=file.foundation,
            topics=tuple(entry.topics),
            language=file.language,
            country=entry.country,
        )
        for entry in file.question
    )


REQUIRED_COLUMNS = ("question_id", "question")
OPTIONAL_COLUMNS = ("paraphrase", "paraphrased", "foundation", "topics", "language", "country")
TOPIC_SEPARATOR = "|"
"""Separates several topics in one table cell."""
MAX_QUESTION_BYTES = 10_000_000


def check_questions(config: AuditConfig, survey: Survey) -> str:
    """Load the questions that a config selects, and describe their number.

    Raises:
        ConfigError, ImportFileError: as `load_planned_questions`.
    """
    probe = config.probes.get(SemanticProbe)
    n_questions = len(load_planned_questions(probe, survey))
    if probe.questions == TASK_QUESTIONS:
        return f"consistency of the answers to {pluralize(n_questions, 'item')}"
    check_recorded_answers(config, {question.id for question in load_questions(probe.questions)})
    return pluralize(n_questions, "question" if probe.prompt_suffix else "moral question")


def load_planned_questions(probe: SemanticProbe, survey: Survey) -> list[MoralQuestion]:
    """Load the questions selected by a config, each with the configured number of paraphrases.

    Args:
        survey: holds the task whose items are the questions if the probe says so.

    Raises:
        ConfigError, ImportFileError: the file is invalid, no question is selected, or a question has too few
            paraphrases and no paraphraser is configured.
    """
    is_task = probe.questions == TASK_QUESTIONS
    all_questions = _list_item_questions(survey) if is_task else load_questions(probe.questions)
    selected = [
        question for question in all_questions if probe.foundations == "all" or question.foundation in probe.foundations
    ][: probe.limit]
    if not selected:
        foundations = ", ".join(sorted({question.foundation for question in all_questions} - {""})) or "none"
        raise ConfigError(
            f"probes.semantic.foundations: no question of {probe.questions} is about these foundations.",
            f"There: {foundations}.",
        )
    for question in selected:
        n_paraphrases = len(question.paraphrases)
        if n_paraphrases < probe.paraphrases and probe.paraphraser is None:
            noun = "paraphrase" if n_paraphrases == 1 else "paraphrases"
            raise ConfigError(
                f"probes.semantic: question '{question.id}' has {n_paraphrases} {noun}, but "
                f"{probe.paraphrases} are required.",
                "Add paraphrases, or name a model as 'paraphraser' under [probes.semantic]. In a configuration of your "
                "own, you can lower 'paraphrases' instead.",
            )
    n_paraphrases = probe.paraphrases
    return [
        replace(
            question, paraphrases=question.paraphrases[:n_paraphrases], languages=question.languages[:n_paraphrases]
        )
        for question in selected
    ]


class QuestionIds(NamedTuple):
    """Ids of the questions that an audit asks, and of those of their file that its limit leaves out."""

    asked: tuple[str, ...]
    beyond_limit: tuple[str, ...]


def list_question_ids(config: AuditConfig, survey: Survey, stored_ids: Sequence[str] = ()) -> QuestionIds:
    """List the questions of an audit.

    Args:
        stored_ids: of the questions that it has asked already; by default, those that its config selects.

    Raises:
        ConfigError, ImportFileError: as `load_planned_questions`.
    """
    probe = config.probes.get(SemanticProbe)
    asked = stored_ids or [question.id for question in load_planned_questions(probe, survey)]
    has_file = probe.questions == BUILT_IN_QUESTIONS or Path(probe.questions).is_file()
    in_file = [question.id for question in load_questions(probe.questions)] if probe.limit and has_file else []
    return QuestionIds(tuple(asked), tuple(id_ for id_ in in_file if id_ not in asked))


def save_questions(db: Database, audit_id: int, probe: SemanticProbe, survey: Survey) -> list[MoralQuestion]:
    """Store the questions selected by a config, and their wordings in place of those of an earlier run.

    Raises:
        ConfigError, ImportFileError: as `load_planned_questions`.
    """
    questions = load_planned_questions(probe, survey)
    answer_rows.replace_questions(db, audit_id, questions)
    wordings = [wording for question in questions for wording in written_wordings(question)]
    save_records(db, audit_id, wordings)
    return questions


def _list_item_questions(survey: Survey) -> list[MoralQuestion]:
    """The asked items of a task as questions, with context and options."""
    task = survey.task
    assert task is not None
    return [MoralQuestion(cell.topic, question_with_options(task.item_for(cell))) for cell in survey.asked_cells]


def load_questions(source: str) -> Sequence[MoralQuestion]:
    """Load questions from a file, or the built-in ones if `source` is `built-in`.

    Raises:
        ConfigError, ImportFileError: the file does not exist or is invalid.
    """
    if source == BUILT_IN_QUESTIONS:
        return load_built_in_questions()
    path = Path(source)
    if not path.is_file():
        raise ConfigError(
            f"probes.semantic.questions: there is no file '{source}'.",
            f"Correct the path, or set questions = '{BUILT_IN_QUESTIONS}'.",
        )
    questions = _load_toml_questions(path) if path.suffix == ".toml" else _load_table_questions(path)
    for question in questions:
        seen_texts = {normalize_text(question.text)}
        for wording in question.paraphrases:
            if normalize_text(wording) in seen_texts:
                raise ImportFileError(
                    f"{source}: question '{question.id}' has the wording '{wording}' twice.",
                    "Change or remove it.",
                )
            seen_texts.add(normalize_text(wording))
    return questions


def _load_toml_questions(path: Path) -> list[MoralQuestion]:
    """Load questions from a TOML file; their ids must be unique."""
    questions = list(parse_questions(read_text(path, ConfigError, max_bytes=MAX_QUESTION_BYTES), str(path)))
    ids = [question.id for question in questions]
    if repeated_ids := sorted({question_id for question_id in ids if ids.count(question_id) > 1}):
        raise ImportFileError(
            f"{path}: the id '{repeated_ids[0]}' occurs twice.", "Use a different id for each question."
        )
    return questions


def _load_table_questions(path: Path) -> list[MoralQuestion]:
    """Load questions from a table with one row for each paraphrase of a question."""
    questions: dict[tuple[str, str], MoralQuestion] = {}
    for row in read_rows(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS):
        row_question = _parse_question_row(row)
        key = row_question.id, row_question.country
        first_question = questions.setdefault(key, row_question)
        if first_question.text != row_question.text:
            raise ImportFileError(
                f"{row.location}: question '{row_question.id}' has a different text in an earlier row.",
                "Correct one of the rows.",
            )
        if first_question is not row_question:
            questions[key] = replace(
                first_question,
                paraphrases=first_question.paraphrases + row_question.paraphrases,
                languages=first_question.languages + row_question.languages,
            )
    if not questions:
        raise ImportFileError(f"{path}: has no rows.", "Check that it is the right file.")
    return _name_countries(list(questions.values()), path)


def _name_countries(questions: Sequence[MoralQuestion], path: Path) -> list[MoralQuestion]:
    """Add its country to the id of each question that is asked about several countries.

    Raises:
        ImportFileError: two questions have the same id then.
    """
    n_countries = Counter(question.id for question in questions)
    named = [
        replace(question, id=f"{question.id} ({question.country or 'no country'})")
        if n_countries[question.id] > 1
        else question
        for question in questions
    ]
    repeated_ids = [id_ for id_, n in Counter(question.id for question in named).items() if n > 1]
    if repeated_ids:
        raise ImportFileError(
            f"{path}: the id '{repeated_ids[0]}' occurs twice.", "Use a different id for each question."
        )
    return named


def _parse_question_row(row: TextRow) -> MoralQuestion:
    """Parse a row into a question with at most one paraphrase."""
    cells = row.cells
    for column in REQUIRED_COLUMNS:
        row.required_text(column)
    foundation = cells["foundation"].lower()
    if foundation and foundation not in FOUNDATIONS:
        raise row.make_cell_error(
            "foundation",
            f"'{foundation}' is not a moral foundation",
            f"Use one of {', '.join(FOUNDATIONS)}, or leave it empty.",
        )
    wording = cells["paraphrase"] or cells["paraphrased"]
    return MoralQuestion(
        id=cells["question_id"],
        text=cells["question"],
        paraphrases=(wording,) if wording else (),
        languages=(cells["language"] or "en",) if wording else (),
        foundation=foundation,
        topics=tuple(topic.strip() for topic in cells["topics"].split(TOPIC_SEPARATOR) if topic.strip()),
        language=cells["language"] or "en",
        country=cells["country"],
    )  # the first row's language is the question's


def written_wordings(question: MoralQuestion) -> list[MoralWording]:
    """The wordings of a question before any are generated: itself as number 0, and its own paraphrases from 1.

    `candidate` and `number` of such a wording are equal, since all are accepted.
    """
    original = MoralWording(question.id, 0, 0, question.text, "question", language=question.language)
    numbered_paraphrases = enumerate(question.wordings if question.paraphrases else (), 1)
    return [
        original,
        *(
            MoralWording(question.id, number, number, text, "written", language=language)
            for number, (text, language) in numbered_paraphrases
        ),
    ]
