"""Audits made of answers that were given elsewhere: scored as if they had been asked here, with no call at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from auditor import bootstrap
from auditor.config import EmbeddingSection, require_audit_name
from auditor.config.semantic import SemanticProbe
from auditor.domain import Outcome, canonical_hash
from auditor.domain.semantic import FOUNDATIONS, MoralAnswerRecord, MoralQuestion, MoralWording, SemanticScoringSettings
from auditor.errors import ImportFileError, UsageError
from auditor.run import EMPTY_SURVEY, describe_environment, resolve_storage_url
from auditor.storage import audits, semantic_results
from auditor.storage.database import Database, open_database
from auditor.surveys.row_reader import read_column_names, read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import TextEncoder

DEFAULT_MIC_MODEL = "MIC"


class AnswerFileRow(NamedTuple):
    """One row: what a model answered to one wording, and the rule of thumb behind it; empty where there is none."""

    location: str
    model: str
    question: str
    text: str
    paraphrase: str
    answer: str
    rot: str
    foundation: str


class ImportedAnswers(NamedTuple):
    """What came of a file.

    Attributes:
        empty: rows without an answer, counted as failed.
        alone: questions of a model with fewer than two usable answers, which cannot be scored.
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
    """Make an audit of a file of answers; the same name again replaces what it had.

    Args:
        file: CSV, JSONL or Parquet with `model,question_id,paraphrase,answer[,rot]`, or as the authors publish them the
            Moral Consistency Corpus (`question_id,paraphrased,model_output[,question,rot,model]`) and the Moral
            Integrity Corpus (`Q,A,rot[,moral]`, where the wordings are several answers to one question).
        audit: the audit's name.
        probe: how to score: variant, alpha, rot_weight, encoder, rivals; `questions` names the set that the ids are of.
        model: whose answers they are, where the file does not say.
        storage: database URL.
        embedded: is told the texts to embed in all, and those embedded since it was told last.

    Raises:
        ImportFileError: a row that cannot be used; the message names it. Nothing is stored then.
        UsageError: the name belongs to an audit that was run, or is none that an audit may have.
        ModelSetupError: the encoder cannot be loaded.
    """
    require_audit_name(audit)
    bootstrap.prepare_environment()
    probe = probe or SemanticProbe()
    from auditor.models.embeddings import check_encoder, load_encoder
    from auditor.models.text_similarity import check_similarity_packages

    name = probe.encoder or EmbeddingSection().model
    check_encoder(name)
    check_similarity_packages(probe.rivals)
    read = _AnswerCollector(_load_known_questions(probe.questions))
    for row in read_answer_rows(file, model):
        read.add(row)
    if not read.answers:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    facts = read.build_facts(file.name, name, probe)
    with open_database(resolve_storage_url(storage)) as db:
        replaced = _save_audit(db, audit, read)
        _score_answers(db, audit, facts, probe, lambda: load_encoder(name), on_progress or (lambda total, n: None))
    usable = Counter((a.model, a.question) for a in read.answers if a.text is not None)
    asked = {(a.model, a.question) for a in read.answers}
    empty = sum(a.text is None for a in read.answers)
    models = len({a.model for a in read.answers})
    alone = sum(usable[who] < 2 for who in asked)
    return ImportedAnswers(len(read.answers), models, len(read.questions), empty, alone, replaced)


def _load_known_questions(source: str) -> dict[str, MoralQuestion]:
    from auditor.agents.semantic.questions import load_questions

    return {q.id: q for q in load_questions(source)}


@dataclass
class _AnswerCollector:
    """What has been read so far; wordings of a question are numbered as they come."""

    known_questions: dict[str, MoralQuestion]
    questions: dict[str, MoralQuestion] = field(default_factory=dict)
    wordings: dict[str, dict[str, int]] = field(default_factory=dict)
    answers: list[MoralAnswerRecord] = field(default_factory=list)
    _seen_keys: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, row: AnswerFileRow) -> None:
        """Take a row."""
        known = self.known_questions.get(row.question)
        if row.question not in self.questions:
            new = MoralQuestion(row.question, row.text or row.question, foundation=row.foundation)
            self.questions[row.question] = replace(known, paraphrases=()) if known else new
        numbers = self.wordings.setdefault(row.question, {})
        number = numbers.setdefault(row.paraphrase, len(numbers) + 1)
        if (row.model, row.question, number) in self._seen_keys:
            raise ImportFileError(
                f"{row.location}: {row.model}'s answer to this question and paraphrase is there twice.", "Keep one."
            )
        self._seen_keys.add((row.model, row.question, number))
        text, rot = row.answer or None, row.rot or None
        outcome = Outcome.OK if text else Outcome.NOT_MEASURABLE
        ruled = Outcome.OK if rot else None
        answer = MoralAnswerRecord(row.model, row.question, number, 0, outcome, text, rot=rot, rot_outcome=ruled)
        self.answers.append(answer)

    def wording_text(self, question: str, label: str) -> str:
        """The text of a wording: the label itself, unless it is the number of a paraphrase that is known."""
        known = self.known_questions.get(question)
        number = int(label) if known and label.isascii() and label.isdigit() else 0
        return known.paraphrases[number - 1] if known and 1 <= number <= len(known.paraphrases) else label

    def build_facts(self, source: str, encoder: str, probe: SemanticProbe) -> SemanticScoringSettings:
        """How they are scored: by rules of thumb only where the file has any."""
        ruled = any(a.rot for a in self.answers)
        return SemanticScoringSettings(
            source=source,
            encoder=encoder,
            revision="",
            variant=probe.variant,
            alpha=probe.alpha,
            rot_weight=probe.rot_weight if ruled else 0.0,
            measured=probe.measured if ruled else "answer",
            wordings=max(map(len, self.wordings.values())),
            evidence="",
        )


def _save_audit(db: Database, name: str, collector: _AnswerCollector) -> bool:
    """Whether there was an import of this name, which this one replaces."""
    old = audits.find_audit(db, name)
    if old is not None and old.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    digest = canonical_hash([[a.model, a.question, a.wording, a.text, a.rot] for a in collector.answers])
    saved = audits.save_audit(
        db, name=name, config=None, config_hash=digest, survey=EMPTY_SURVEY, environment=describe_environment()
    )
    semantic_results.replace_questions(db, saved.id, list(collector.questions.values()))
    wordings = [
        MoralWording(question, number, number, collector.wording_text(question, label), "imported")
        for question, numbers in collector.wordings.items()
        for label, number in numbers.items()
    ]
    semantic_results.save_wordings(db, saved.id, wordings)
    semantic_results.save_answers(db, saved.id, collector.answers)
    return old is not None


def _score_answers(
    db: Database,
    name: str,
    facts: SemanticScoringSettings,
    probe: SemanticProbe,
    make_encoder: Callable[[], TextEncoder],
    on_progress: Callable[[int, int], None],
) -> None:
    from auditor.agents.semantic.scoring import ScoringPlan, score_audit

    audit = audits.get_audit(db, name)
    from auditor.models.text_similarity import consistency_measures

    plan = ScoringPlan(
        baseline_names=probe.rivals,
        load_baselines=lambda loaded: consistency_measures(probe.rivals, loaded),
        settings=facts,
        load_encoder=make_encoder,
        on_texts_planned=lambda n: on_progress(n, 0),
        on_texts_embedded=lambda n: on_progress(0, n),
    )
    score_audit(db, audit.id, plan)
    audits.set_stage(db, audit.id, audits.FINISHED)


# --- the forms of a file ----------------------------------------------------------------------------------------


def read_answer_rows(file: Path, model: str | None = None) -> Iterator[AnswerFileRow]:
    """Rows of a file in any of its forms, told by its columns.

    Raises:
        ImportFileError: it has none of the forms, or a row that cannot be used.
    """
    columns = read_column_names(file)
    if "model_output" in columns:
        return _read_mcc_rows(file, model)
    return _read_mic_rows(file, model) if {"Q", "A"} <= columns else _read_standard_rows(file)


def _read_standard_rows(file: Path) -> Iterator[AnswerFileRow]:
    for row in read_rows(file, ("model", "question_id", "paraphrase", "answer"), ("rot", "question", "foundation")):
        c = row.cells
        model, question, paraphrase = (row.required_text(name) for name in ("model", "question_id", "paraphrase"))
        foundation = _first_foundation(c["foundation"])
        yield AnswerFileRow(row.location, model, question, c["question"], paraphrase, c["answer"], c["rot"], foundation)


def _read_mcc_rows(file: Path, model: str | None) -> Iterator[AnswerFileRow]:
    """Moral Consistency Corpus: a file a model, so that the model's name is given apart."""
    for row in read_rows(file, ("question_id", "paraphrased", "model_output"), ("rot", "question", "model")):
        c = row.cells
        who = c["model"] or model or file.stem
        question, paraphrase = row.required_text("question_id"), row.required_text("paraphrased")
        yield AnswerFileRow(row.location, who, question, c["question"], paraphrase, c["model_output"], c["rot"], "")


def _read_mic_rows(file: Path, model: str | None) -> Iterator[AnswerFileRow]:
    """Moral Integrity Corpus: one row an annotator's rule of thumb for a question and a chatbot's answer to it."""
    ids: dict[str, str] = {}
    count: Counter[str] = Counter()
    for row in read_rows(file, ("Q", "A", "rot"), ("moral", "chatbot")):
        c = row.cells
        question = ids.setdefault(row.required_text("Q"), f"mic-{len(ids) + 1}")
        count[question] += 1
        who = c["chatbot"] or model or DEFAULT_MIC_MODEL
        yield AnswerFileRow(
            row.location, who, question, c["Q"], f"{count[question]}", c["A"], c["rot"], _first_foundation(c["moral"])
        )


def _first_foundation(text: str) -> str:
    """The first foundation named, as `care|fairness`; empty where it is none of the six."""
    first = text.split("|")[0].strip().lower()
    return first if first in FOUNDATIONS else ""
