"""The questions of an audit and their wordings: built in, or a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from auditor.config.semantic import BUILT_IN_QUESTIONS, SemanticProbe
from auditor.domain.semantic import FOUNDATIONS, MoralQuestion, MoralWording
from auditor.errors import ConfigError, ImportFileError
from auditor.input_files import read_text
from auditor.metrics.paraphrase import normalize_text
from auditor.prompts.moral_questions import load_built_in_questions, parse_questions
from auditor.surveys.row_reader import TextRow, read_rows

REQUIRED_COLUMNS = ("question_id", "question")
OPTIONAL_COLUMNS = ("paraphrase", "paraphrased", "foundation", "topics", "language")
TOPIC_SEPARATOR = "|"
"""Between several topics in one cell."""
MAX_QUESTION_BYTES = 10_000_000


def load_planned_questions(probe: SemanticProbe) -> list[MoralQuestion]:
    """The questions that a config asks.

    Raises:
        ConfigError, ImportFileError: the file cannot be used, none is left, or one has too few wordings; the message
            says where and how to mend it.
    """
    known = load_questions(probe.questions)
    chosen = [q for q in known if probe.foundations == "all" or q.foundation in probe.foundations][: probe.limit]
    if not chosen:
        there = ", ".join(sorted({q.foundation for q in known} - {""})) or "none"
        raise ConfigError(
            f"probes.semantic: no question of {probe.questions} is about what 'foundations' names.", f"There: {there}."
        )
    for question in chosen:
        if len(question.paraphrases) < probe.paraphrases and probe.paraphraser is None:
            raise ConfigError(
                f"probes.semantic: question '{question.id}' has {len(question.paraphrases)} paraphrases, but "
                f"{probe.paraphrases} are asked for.",
                "Add some, set 'paraphrases' lower, or name a model as 'paraphraser'.",
            )
    n = probe.paraphrases
    return [replace(q, paraphrases=q.paraphrases[:n], languages=q.languages[:n]) for q in chosen]


def load_questions(source: str) -> Sequence[MoralQuestion]:
    """Questions by the name `built-in`, or of a file.

    Raises:
        ConfigError, ImportFileError: there is no such file, or it cannot be used.
    """
    if source == BUILT_IN_QUESTIONS:
        return load_built_in_questions()
    path = Path(source)
    if not path.is_file():
        raise ConfigError(
            f"probes.semantic.questions: there is no file '{source}'.", f"'{BUILT_IN_QUESTIONS}' needs none."
        )
    questions = _load_toml_questions(path) if path.suffix == ".toml" else _load_table_questions(path)
    for question in questions:
        _require_distinct_wordings(question, source)
    return questions


def _load_toml_questions(path: Path) -> list[MoralQuestion]:
    questions = list(parse_questions(read_text(path, ConfigError, max_bytes=MAX_QUESTION_BYTES), str(path)))
    ids = [q.id for q in questions]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise ImportFileError(f"{path}: the id '{twice[0]}' is there twice.", "Give each question its own.")
    return questions


def _load_table_questions(path: Path) -> list[MoralQuestion]:
    found: dict[str, MoralQuestion] = {}
    for row in read_rows(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS):
        new = _parse_question_row(row)
        old = found.setdefault(new.id, new)
        if old.text != new.text:
            raise ImportFileError(
                f"{row.location}: question '{new.id}' has another text in an earlier row.", "Mend one."
            )
        if old is not new:
            found[new.id] = replace(
                old, paraphrases=old.paraphrases + new.paraphrases, languages=old.languages + new.languages
            )
    if not found:
        raise ImportFileError(f"{path}: has no rows.", "Is it the right file?")
    return list(found.values())


def _parse_question_row(row: TextRow) -> MoralQuestion:
    cells = row.cells
    for column in REQUIRED_COLUMNS:
        row.required_text(column)
    foundation = cells["foundation"].lower()
    if foundation and foundation not in FOUNDATIONS:
        raise row.make_cell_error(
            "foundation", f"'{foundation}' is none", f"Known: {', '.join(FOUNDATIONS)}, or empty."
        )
    wording = cells["paraphrase"] or cells["paraphrased"]
    return MoralQuestion(
        id=cells["question_id"],
        text=cells["question"],
        paraphrases=(wording,) if wording else (),
        languages=(cells["language"] or "en",) if wording else (),
        foundation=foundation,
        topics=tuple(t.strip() for t in cells["topics"].split(TOPIC_SEPARATOR) if t.strip()),
        language=cells["language"] or "en",
    )  # the first row's language is the question's


def _require_distinct_wordings(question: MoralQuestion, source: str) -> None:
    seen = {normalize_text(question.text)}
    for wording in question.paraphrases:
        if normalize_text(wording) in seen:
            raise ImportFileError(
                f"{source}: question '{question.id}' has the wording '{wording}' twice, or it is the question itself.",
                "Word it anew, or leave it out.",
            )
        seen.add(normalize_text(wording))


def written_wordings(question: MoralQuestion) -> list[MoralWording]:
    """The question itself, and its paraphrases as they were written by hand."""
    languages = question.languages or (question.language,) * len(question.paraphrases)
    own = MoralWording(question.id, 0, 0, question.text, "question", language=question.language)
    worded = enumerate(zip(question.paraphrases, languages, strict=True), 1)
    return [own, *(MoralWording(question.id, i, i, text, "written", language=code) for i, (text, code) in worded)]
