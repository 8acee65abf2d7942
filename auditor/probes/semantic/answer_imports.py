"""Import recorded answers to moral questions and score their consistency, without calling any model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from auditor import bootstrap
from auditor.config import EmbeddingSection, require_audit_name
from auditor.domain import Outcome, canonical_hash
from auditor.errors import ImportFileError, UsageError
from auditor.models.text_similarity import check_similarity_packages, consistency_measures
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_rows import ScoredAnswers
from auditor.probes.semantic.answers import check_recorded_statement, check_statement
from auditor.probes.semantic.questions import load_questions
from auditor.probes.semantic.records import (
    FOUNDATIONS,
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    NullScore,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.probes.semantic.scoring import ScoringPlan, rescore_stored_answers, score_audit
from auditor.probes.semantic.settings import SemanticProbe
from auditor.run import EMPTY_SURVEY, describe_environment, resolve_storage_url
from auditor.storage import audits
from auditor.storage.database import Database, open_database
from auditor.storage.records import load_records, save_records
from auditor.surveys.column_reader import is_missing_marker
from auditor.surveys.row_reader import read_column_names, read_rows
from auditor.text_safety import clean_name

if TYPE_CHECKING:
    from auditor.agents.run_context import TextEncoder

DEFAULT_MIC_MODEL = "MIC"


class AnswerFileRow(NamedTuple):
    """One row of a file: a model's answer to one wording of a question, and its rule of thumb; "" if missing."""

    location: str
    model: str
    question: str
    text: str
    paraphrase: str
    answer: str
    rot: str
    foundation: str


class ImportedAnswers(NamedTuple):
    """Counts of what `import_answers` read and stored.

    Attributes:
        rows: answers read.
        empty: rows without an answer, counted as failed.
        unscorable: pairs of model and question with fewer than two usable texts to compare, which cannot be scored.
        replaced: whether an earlier import of this name was replaced.
    """

    rows: int
    models: int
    questions: int
    empty: int
    unscorable: int
    replaced: bool


def import_answers(
    file: Path,
    *,
    audit: str,
    probe: SemanticProbe | None = None,
    model: str | None = None,
    storage: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportedAnswers:
    """Store a file of answers as an audit and score it. An earlier import of the same name is replaced.

    Args:
        file: CSV, JSONL or Parquet with `model,question_id,paraphrase,answer[,rot]`, or as the authors publish them the
            Moral Consistency Corpus (`question_id,paraphrased,model_output[,question,rot,model]`) and the Moral
            Integrity Corpus (`Q,A,rot[,moral]`, where the wordings are several answers to one question).
        audit: the audit's name.
        probe: how to score: variant, alpha, rot_weight, encoder, rivals; `questions` names the question set of the ids.
        model: the model that answered, if the file does not say.
        storage: database URL.
        on_progress: receives two increments: texts planned for embedding, and texts embedded since the last call.

    Raises:
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the name is invalid, or belongs to an audit that was run.
        ModelSetupError: the encoder cannot be loaded.
    """
    require_audit_name(audit)
    bootstrap.prepare_environment()
    probe = probe or SemanticProbe()
    from auditor.models.embeddings import check_encoders, load_encoder  # late: tests replace `load_encoder` there

    encoder_name = probe.encoder or EmbeddingSection().model
    check_encoders(encoder_name, probe.used_bertscore_model)
    check_similarity_packages(probe.rivals)
    collector = _AnswerCollector(_load_known_questions(probe.questions))
    for row in read_answer_rows(file, model):
        row = row._replace(model=clean_name(row.model))
        collector.add(row)
    if not collector.answers:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    settings = collector.build_settings(file.name, encoder_name, probe)
    with open_database(resolve_storage_url(storage)) as db:
        previous_audit = audits.find_audit(db, audit)
        if previous_audit is not None and previous_audit.config is not None:
            raise UsageError(f"audit '{audit}' was run, not imported.", "Choose another name with --audit.")
        scored = _score_answers(
            db, collector, settings, probe, lambda: load_encoder(encoder_name), on_progress or (lambda total, n: None)
        )
        _save_audit(db, audit, scored)
        rescore_stored_answers(db, audits.get_audit(db, audit).id)  # without answers that were declared invalid earlier
    usable = Counter((answer.model, answer.question) for answer in collector.answers if _is_compared(answer, settings))
    model_questions = {(answer.model, answer.question) for answer in collector.answers}
    empty = sum(answer.text is None for answer in collector.answers)
    models = len({answer.model for answer in collector.answers})
    unscorable = sum(usable[model_question] < 2 for model_question in model_questions)
    return ImportedAnswers(
        len(collector.answers), models, len(collector.questions), empty, unscorable, previous_audit is not None
    )


def _is_compared(answer: MoralAnswerRecord, settings: SemanticScoringSettings) -> bool:
    """Whether an answer has all texts that the score compares."""
    has_answer, has_rule = answer.text is not None, answer.rot is not None
    return {"answer": has_answer, "rot": has_rule, "mix": has_answer and has_rule}[settings.measured]


def _load_known_questions(source: str) -> dict[str, MoralQuestion]:
    return {question.id: question for question in load_questions(source)}


@dataclass
class _AnswerCollector:
    """Collects the rows of a file; the wordings of a question are numbered from 1 in order of appearance."""

    known_questions: dict[str, MoralQuestion]
    questions: dict[str, MoralQuestion] = field(default_factory=dict)
    wordings: dict[str, dict[str, int]] = field(default_factory=dict)
    answers: list[MoralAnswerRecord] = field(default_factory=list)
    _seen_keys: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, row: AnswerFileRow) -> None:
        """Add a row.

        Raises:
            ImportFileError: the same model, question and wording was added before.
        """
        known = self.known_questions.get(row.question)
        if row.question not in self.questions:
            question = MoralQuestion(row.question, row.text or row.question, foundation=row.foundation)
            self.questions[row.question] = replace(known, paraphrases=()) if known else question
        wording_numbers = self.wordings.setdefault(row.question, {})
        wording_number = wording_numbers.setdefault(row.paraphrase, len(wording_numbers) + 1)
        if (row.model, row.question, wording_number) in self._seen_keys:
            raise ImportFileError(
                f"{row.location}: {row.model}'s answer to this question and paraphrase occurs twice.",
                "Keep one of the rows.",
            )
        self._seen_keys.add((row.model, row.question, wording_number))
        outcome, text = check_recorded_statement(row.answer)
        has_rule = not is_missing_marker(row.rot or None)
        has_rule = (
            has_rule and outcome is not Outcome.REFUSED
        )  # as of a model that is asked: no rule is behind a refusal
        rot_outcome, rot = check_statement(row.rot) if has_rule else (None, None)  # rot: the answer's rule of thumb
        answer = MoralAnswerRecord(
            row.model, row.question, wording_number, 0, outcome, text, rot=rot, rot_outcome=rot_outcome
        )
        self.answers.append(answer)

    def wording_text(self, question: str, label: str) -> str:
        """Text of a wording: the known paraphrase whose number (from 1) the label is, else the label itself."""
        known = self.known_questions.get(question)
        number = int(label) if known and label.isascii() and label.isdigit() else 0
        return known.paraphrases[number - 1] if known and 1 <= number <= len(known.paraphrases) else label

    def build_wordings(self) -> list[MoralWording]:
        """The wordings of all questions, with their numbers."""
        return [
            MoralWording(question, number, number, self.wording_text(question, label), "imported")
            for question, numbers in self.wordings.items()
            for label, number in numbers.items()
        ]

    def build_settings(self, source: str, encoder: str, probe: SemanticProbe) -> SemanticScoringSettings:
        """Build the scoring settings; rules of thumb count only if the file has any."""
        has_rots = any(answer.rot for answer in self.answers)
        return SemanticScoringSettings(
            source=source,
            encoder=encoder,
            revision="",
            variant=probe.variant,
            alpha=probe.alpha,
            rot_weight=probe.rot_weight if has_rots else 0.0,
            measured=probe.measured if has_rots else "answer",
            wordings=max(map(len, self.wordings.values())),
            evidence="",
            bertscore_model=probe.used_bertscore_model,
        )


def _score_answers(
    db: Database,
    collector: _AnswerCollector,
    settings: SemanticScoringSettings,
    probe: SemanticProbe,
    make_encoder: Callable[[], TextEncoder],
    on_progress: Callable[[int, int], None],
) -> ScoredAnswers:
    """Score the answers of a file in a temporary database, so that an earlier import stays whole until the end.

    Args:
        db: the database of the embeddings that were computed before, and which stores new ones.
        collector: the answers.
        settings: settings of the scores, stored with them.
        probe: names the further consistency measures to compute (`rivals`).
        make_encoder: loads the sentence encoder when the first text is embedded.
        on_progress: as in `import_answers`.
    """
    plan = ScoringPlan(
        baseline_names=probe.rivals,
        load_baselines=lambda encoder: consistency_measures(probe.rivals, encoder, probe.bertscore_model),
        settings=settings,
        load_encoder=make_encoder,
        on_texts_planned=lambda n: on_progress(n, 0),
        on_texts_embedded=lambda n: on_progress(0, n),
        vector_db=db,
    )
    questions, wordings = list(collector.questions.values()), collector.build_wordings()
    with TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/answers.db") as scratch:
        audit = audits.save_audit(
            scratch, name="answers", config=None, config_hash=None, survey=EMPTY_SURVEY, environment={}
        )
        answer_rows.replace_questions(scratch, audit.id, questions)
        save_records(scratch, audit.id, wordings)
        save_records(scratch, audit.id, collector.answers)
        score_audit(scratch, audit.id, plan)
        scores = load_records(scratch, audit.id, QuestionScore)
        null_scores = load_records(scratch, audit.id, NullScore)
        facts = answer_rows.load_facts(scratch, audit.id) or settings
    return ScoredAnswers(questions, wordings, collector.answers, scores, null_scores, facts)


def _save_audit(db: Database, name: str, scored: ScoredAnswers) -> None:
    """Store scored answers as a finished audit in one transaction."""
    digest = canonical_hash(
        [[answer.model, answer.question, answer.wording, answer.text, answer.rot] for answer in scored.answers]
    )
    audits.save_finished_audit(
        db,
        name=name,
        config_hash=digest,
        survey=EMPTY_SURVEY,
        environment=describe_environment(),
        write_results=lambda connection, audit_id: answer_rows.replace_scored_answers(connection, audit_id, scored),
    )


# --- the forms of a file ----------------------------------------------------------------------------------------


def read_answer_rows(file: Path, model: str | None = None) -> Iterator[AnswerFileRow]:
    """Read the rows of a file in one of the three formats, detected by its columns.

    Raises:
        ImportFileError: the columns are those of no format, or a row cannot be used.
    """
    columns = {name.casefold() for name in read_column_names(file)}
    if "model_output" in columns:
        return _read_mcc_rows(file, model)
    return _read_mic_rows(file, model) if {"q", "a"} <= columns else _read_standard_rows(file)


def _read_standard_rows(file: Path) -> Iterator[AnswerFileRow]:
    """Read auditor's own format: `model,question_id,paraphrase,answer[,rot][,question][,foundation]`."""
    for row in read_rows(file, ("model", "question_id", "paraphrase", "answer"), ("rot", "question", "foundation")):
        cells = row.cells
        model, question, paraphrase = (row.required_text(name) for name in ("model", "question_id", "paraphrase"))
        foundation = _first_foundation(cells["foundation"])
        yield AnswerFileRow(
            row.location, model, question, cells["question"], paraphrase, cells["answer"], cells["rot"], foundation
        )


def _read_mcc_rows(file: Path, model: str | None) -> Iterator[AnswerFileRow]:
    """Read the Moral Consistency Corpus: one file per model, named by a column, the argument or the file name."""
    for row in read_rows(file, ("question_id", "paraphrased", "model_output"), ("rot", "question", "model")):
        cells = row.cells
        answering_model = cells["model"] or model or file.stem
        question, paraphrase = row.required_text("question_id"), row.required_text("paraphrased")
        yield AnswerFileRow(
            row.location,
            answering_model,
            question,
            cells["question"],
            paraphrase,
            cells["model_output"],
            cells["rot"],
            "",
        )


def _read_mic_rows(file: Path, model: str | None) -> Iterator[AnswerFileRow]:
    """Read the Moral Integrity Corpus: each row is a question, a chatbot's answer and an annotator's rule of thumb."""
    id_by_question: dict[str, str] = {}
    answers_per_question: Counter[str] = Counter()
    for row in read_rows(file, ("Q", "A", "rot"), ("moral", "chatbot")):
        cells = row.cells
        question = id_by_question.setdefault(row.required_text("Q"), f"mic-{len(id_by_question) + 1}")
        answers_per_question[question] += 1
        answering_model = cells["chatbot"] or model or DEFAULT_MIC_MODEL
        yield AnswerFileRow(
            row.location,
            answering_model,
            question,
            cells["Q"],
            f"{answers_per_question[question]}",
            cells["A"],
            cells["rot"],
            _first_foundation(cells["moral"]),
        )


def _first_foundation(text: str) -> str:
    """First moral foundation of a list such as `care|fairness`; "" if it is none of the six."""
    first = text.split("|")[0].strip().lower()
    return first if first in FOUNDATIONS else ""
