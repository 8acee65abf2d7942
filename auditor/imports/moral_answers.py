"""Audits made of answers that were given elsewhere: scored as if they had been asked here, with no call at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from auditor import bootstrap
from auditor.config import EmbeddingSection, require_name
from auditor.config.semantic import SemanticProbe
from auditor.domain import Outcome, canonical_hash
from auditor.domain.semantic import FOUNDATIONS, MoralAnswer, Question, SemanticFacts, Wording
from auditor.errors import ImportFileError, UsageError
from auditor.run import NO_SURVEY, environment, storage_url
from auditor.storage import audits, semantic_results
from auditor.storage.database import Database, open_database
from auditor.surveys.row_reader import columns_of, read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import Encoder

MIC_MODEL = "MIC"


class Given(NamedTuple):
    """One row: what a model answered to one wording, and the rule of thumb behind it; empty where there is none."""

    where: str
    model: str
    question: str
    text: str
    paraphrase: str
    answer: str
    rot: str
    foundation: str


class Imported(NamedTuple):
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
    alone: int
    replaced: bool


def import_answers(
    file: Path,
    *,
    audit: str,
    probe: SemanticProbe | None = None,
    model: str | None = None,
    storage: str | None = None,
    embedded: Callable[[int, int], None] | None = None,
) -> Imported:
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
    require_name(audit)
    bootstrap.prepare()
    probe = probe or SemanticProbe()
    from auditor.models.embeddings import check_encoder, load_encoder
    from auditor.models.text_similarity import check_rivals

    name = probe.encoder or EmbeddingSection().model
    check_encoder(name)
    check_rivals(probe.rivals)
    read = _Read(_questions(probe.questions))
    for row in given_rows(file, model):
        read.add(row)
    if not read.answers:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    facts = read.facts(file.name, name, probe)
    with open_database(storage_url(storage)) as db:
        replaced = _save(db, audit, read)
        _score(db, audit, facts, probe, lambda: load_encoder(name), embedded or (lambda total, n: None))
    usable = Counter((a.model, a.question) for a in read.answers if a.text is not None)
    asked = {(a.model, a.question) for a in read.answers}
    empty = sum(a.text is None for a in read.answers)
    models = len({a.model for a in read.answers})
    alone = sum(usable[who] < 2 for who in asked)
    return Imported(len(read.answers), models, len(read.questions), empty, alone, replaced)


def _questions(source: str) -> dict[str, Question]:
    from auditor.agents.semantic.questions import load_questions

    return {q.id: q for q in load_questions(source)}


@dataclass
class _Read:
    """What has been read so far; wordings of a question are numbered as they come."""

    known: dict[str, Question]
    questions: dict[str, Question] = field(default_factory=dict)
    wordings: dict[str, dict[str, int]] = field(default_factory=dict)
    answers: list[MoralAnswer] = field(default_factory=list)
    _seen: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, row: Given) -> None:
        """Take a row."""
        known = self.known.get(row.question)
        if row.question not in self.questions:
            new = Question(row.question, row.text or row.question, foundation=row.foundation)
            self.questions[row.question] = replace(known, paraphrases=()) if known else new
        numbers = self.wordings.setdefault(row.question, {})
        number = numbers.setdefault(row.paraphrase, len(numbers) + 1)
        if (row.model, row.question, number) in self._seen:
            raise ImportFileError(
                f"{row.where}: {row.model}'s answer to this question and paraphrase is there twice.", "Keep one."
            )
        self._seen.add((row.model, row.question, number))
        text, rot = row.answer or None, row.rot or None
        outcome = Outcome.OK if text else Outcome.NOT_MEASURABLE
        ruled = Outcome.OK if rot else None
        answer = MoralAnswer(row.model, row.question, number, 0, outcome, text, rot=rot, rot_outcome=ruled)
        self.answers.append(answer)

    def wording(self, question: str, label: str) -> str:
        """The text of a wording: the label itself, unless it is the number of a paraphrase that is known."""
        known = self.known.get(question)
        number = int(label) if known and label.isascii() and label.isdigit() else 0
        return known.paraphrases[number - 1] if known and 1 <= number <= len(known.paraphrases) else label

    def facts(self, source: str, encoder: str, probe: SemanticProbe) -> SemanticFacts:
        """How they are scored: by rules of thumb only where the file has any."""
        ruled = any(a.rot for a in self.answers)
        return SemanticFacts(
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


def _save(db: Database, name: str, read: _Read) -> bool:
    """Whether there was an import of this name, which this one replaces."""
    old = audits.find(db, name)
    if old is not None and old.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    digest = canonical_hash([[a.model, a.question, a.wording, a.text, a.rot] for a in read.answers])
    saved = audits.save(db, name=name, config=None, config_hash=digest, survey=NO_SURVEY, environment=environment())
    semantic_results.replace_questions(db, saved.id, list(read.questions.values()))
    wordings = [
        Wording(question, number, number, read.wording(question, label), "imported")
        for question, numbers in read.wordings.items()
        for label, number in numbers.items()
    ]
    semantic_results.save_wordings(db, saved.id, wordings)
    semantic_results.save_answers(db, saved.id, read.answers)
    return old is not None


def _score(
    db: Database,
    name: str,
    facts: SemanticFacts,
    probe: SemanticProbe,
    encoder: Callable[[], Encoder],
    embedded: Callable[[int, int], None],
) -> None:
    from auditor.agents.semantic.scoring import Plan, score_audit

    audit = audits.get(db, name)
    from auditor.models.text_similarity import measures

    plan = Plan(
        named=probe.rivals,
        rivals=lambda loaded: measures(probe.rivals, loaded),
        facts=facts,
        encoder=encoder,
        planned=lambda n: embedded(n, 0),
        done=lambda n: embedded(0, n),
    )
    score_audit(db, audit.id, plan)
    audits.set_stage(db, audit.id, audits.DONE)


# --- the forms of a file ----------------------------------------------------------------------------------------


def given_rows(file: Path, model: str | None = None) -> Iterator[Given]:
    """Rows of a file in any of its forms, told by its columns.

    Raises:
        ImportFileError: it has none of the forms, or a row that cannot be used.
    """
    columns = columns_of(file)
    if "model_output" in columns:
        return _mcc(file, model)
    return _mic(file, model) if {"Q", "A"} <= columns else _design(file)


def _design(file: Path) -> Iterator[Given]:
    for row in read_rows(file, ("model", "question_id", "paraphrase", "answer"), ("rot", "question", "foundation")):
        c = row.cells
        model, question, paraphrase = (row.text(name) for name in ("model", "question_id", "paraphrase"))
        foundation = _foundation(c["foundation"])
        yield Given(row.where, model, question, c["question"], paraphrase, c["answer"], c["rot"], foundation)


def _mcc(file: Path, model: str | None) -> Iterator[Given]:
    """Moral Consistency Corpus: a file a model, so that the model's name is given apart."""
    for row in read_rows(file, ("question_id", "paraphrased", "model_output"), ("rot", "question", "model")):
        c = row.cells
        who = c["model"] or model or file.stem
        question, paraphrase = row.text("question_id"), row.text("paraphrased")
        yield Given(row.where, who, question, c["question"], paraphrase, c["model_output"], c["rot"], "")


def _mic(file: Path, model: str | None) -> Iterator[Given]:
    """Moral Integrity Corpus: one row an annotator's rule of thumb for a question and a chatbot's answer to it."""
    ids: dict[str, str] = {}
    count: Counter[str] = Counter()
    for row in read_rows(file, ("Q", "A", "rot"), ("moral", "chatbot")):
        c = row.cells
        question = ids.setdefault(row.text("Q"), f"mic-{len(ids) + 1}")
        count[question] += 1
        who = c["chatbot"] or model or MIC_MODEL
        yield Given(row.where, who, question, c["Q"], f"{count[question]}", c["A"], c["rot"], _foundation(c["moral"]))


def _foundation(text: str) -> str:
    """The first foundation named, as `care|fairness`; empty where it is none of the six."""
    first = text.split("|")[0].strip().lower()
    return first if first in FOUNDATIONS else ""
