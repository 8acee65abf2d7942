"""The questions of an audit and their wordings: built in, or a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from auditor.config.semantic import BUILT_IN, SemanticProbe
from auditor.domain.semantic import FOUNDATIONS, Question, Wording
from auditor.errors import ConfigError, ImportFileError
from auditor.input_files import read_text
from auditor.metrics.paraphrase import plain
from auditor.prompts.moral_questions import built_in_questions, parse_questions
from auditor.surveys.row_reader import Row, read_rows

REQUIRED = ("question_id", "question")
OPTIONAL = ("paraphrase", "paraphrased", "foundation", "topics", "language")
MANY = "|"
"""Between several topics in one cell."""
MAX_QUESTION_BYTES = 10_000_000


def planned_questions(probe: SemanticProbe) -> list[Question]:
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


def load_questions(source: str) -> Sequence[Question]:
    """Questions by the name `built-in`, or of a file.

    Raises:
        ConfigError, ImportFileError: there is no such file, or it cannot be used.
    """
    if source == BUILT_IN:
        return built_in_questions()
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"probes.semantic.questions: there is no file '{source}'.", f"'{BUILT_IN}' needs none.")
    questions = _from_toml(path) if path.suffix == ".toml" else _from_rows(path)
    for question in questions:
        _require_different(question, source)
    return questions


def _from_toml(path: Path) -> list[Question]:
    questions = list(parse_questions(read_text(path, ConfigError, max_bytes=MAX_QUESTION_BYTES), str(path)))
    ids = [q.id for q in questions]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise ImportFileError(f"{path}: the id '{twice[0]}' is there twice.", "Give each question its own.")
    return questions


def _from_rows(path: Path) -> list[Question]:
    found: dict[str, Question] = {}
    for row in read_rows(path, REQUIRED, OPTIONAL):
        new = _question(row)
        old = found.setdefault(new.id, new)
        if old.text != new.text:
            raise ImportFileError(f"{row.where}: question '{new.id}' has another text in an earlier row.", "Mend one.")
        if old is not new:
            found[new.id] = replace(
                old, paraphrases=old.paraphrases + new.paraphrases, languages=old.languages + new.languages
            )
    if not found:
        raise ImportFileError(f"{path}: has no rows.", "Is it the right file?")
    return list(found.values())


def _question(row: Row) -> Question:
    cells = row.cells
    for column in REQUIRED:
        row.text(column)
    foundation = cells["foundation"].lower()
    if foundation and foundation not in FOUNDATIONS:
        raise row.wrong("foundation", f"'{foundation}' is none", f"Known: {', '.join(FOUNDATIONS)}, or empty.")
    wording = cells["paraphrase"] or cells["paraphrased"]
    return Question(
        id=cells["question_id"],
        text=cells["question"],
        paraphrases=(wording,) if wording else (),
        languages=(cells["language"] or "en",) if wording else (),
        foundation=foundation,
        topics=tuple(t.strip() for t in cells["topics"].split(MANY) if t.strip()),
        language=cells["language"] or "en",
    )  # the first row's language is the question's


def _require_different(question: Question, source: str) -> None:
    seen = {plain(question.text)}
    for wording in question.paraphrases:
        if plain(wording) in seen:
            raise ImportFileError(
                f"{source}: question '{question.id}' has the wording '{wording}' twice, or it is the question itself.",
                "Word it anew, or leave it out.",
            )
        seen.add(plain(wording))


def written_wordings(question: Question) -> list[Wording]:
    """The question itself, and its paraphrases as they were written by hand."""
    languages = question.languages or (question.language,) * len(question.paraphrases)
    own = Wording(question.id, 0, 0, question.text, "question", language=question.language)
    worded = enumerate(zip(question.paraphrases, languages, strict=True), 1)
    return [own, *(Wording(question.id, i, i, text, "written", language=code) for i, (text, code) in worded)]
