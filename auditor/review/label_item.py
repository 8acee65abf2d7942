"""A unit of the labelling sample as a rater sees it: the request that a judge gets about it, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor.config import AuditConfig, ModelSection, SurveySection, load_stored_config
from auditor.domain import Cell, Message, Outcome, Purpose, Relation, Trace
from auditor.domain.labels import LabelKind, LabelUnit
from auditor.domain.review_aspects import aspect_questions
from auditor.review.side_order import hash_to_fraction
from auditor.storage import audits, comparisons, results, semantic_results, transcripts
from auditor.storage.audits import Audit
from auditor.storage.database import Database

if TYPE_CHECKING:
    from auditor.domain import Survey

NO_SUCH_UNIT = "It no longer exists, since the audit was run again."
TRACE_QUESTION = "Can the reasoning stand as a whole?"
TASK_TRACE_QUESTION = "Can reasoning and answer stand?"
SUPPORT_QUESTION = "Does the first answer support the second?"
CONTRADICTION_QUESTION = "Do the two answers contradict each other?"
COMPARISON_QUESTION = "Which of the two answers the question?"
SYMMETRIC_PURPOSES = (Purpose.CONTRADICTION,)
"""Purposes whose question has the same answer for both orders of the two texts."""


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A unit as a rater sees it.

    Attributes:
        question: what the rater answers, in one line.
        instructions: the judge's system message.
        material: the judge's user message, with the text to judge.
        aspects: question by name of each aspect that the judge is asked about.
        missing: why there is nothing to label; empty if there is.
    """

    unit: LabelUnit
    question: str
    instructions: str = ""
    material: str = ""
    aspects: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    @property
    def text_hash(self) -> str:
        """SHA-256 of the text that the rater reads, in hexadecimal digits."""
        text = f"{self.instructions}\n\n{self.material}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class LabelItemLoader:
    """Loads the units of an audit's samples as one rater sees them."""

    def __init__(self, db: Database, audit: Audit, rater: str) -> None:
        self._db, self._audit, self._rater = db, audit, rater
        self._survey: Survey = audits.load_audit_survey(db, audit)
        self._is_task_audit = self._survey.task is not None
        self._config = load_stored_config(audit.config) or _build_import_config(db, audit)

    def load(self, unit: LabelUnit) -> LabelItem:
        """Load a unit; its `missing` says why if it cannot be labelled."""
        builders: dict[LabelKind, Callable[[LabelUnit], LabelItem]] = {
            LabelKind.TRACE: self._load_trace,
            LabelKind.ANSWER_PAIR: self._load_answer_pair,
            LabelKind.COMPARISON: self._load_comparison,
        }
        return builders[unit.kind](unit)

    # --- traces

    def _load_trace(self, unit: LabelUnit) -> LabelItem:
        """Load a trace as its judges read it: their recorded request, or the one that they would get."""
        model, country, topic, sample = unit.parts
        question = TASK_TRACE_QUESTION if self._is_task_audit else TRACE_QUESTION
        cell = Cell(country, topic)
        stored_traces = results.load_traces(self._db, self._audit.id, [cell], model=model)
        trace = next((stored for stored in stored_traces if stored.sample == int(sample)), None)
        if trace is None:
            return LabelItem(unit, question, missing=NO_SUCH_UNIT)
        if trace.outcome is not Outcome.OK or not trace.text:
            return LabelItem(unit, question, missing=f"It has no text to judge (outcome: {trace.outcome}).")
        verdicts = [
            verdict
            for verdict in results.load_verdicts(self._db, self._audit.id, [cell], model=model)
            if verdict.sample == trace.sample and verdict.key is not None
        ]
        verdicts.sort(key=lambda verdict: (self._has_custom_prompt(verdict.judge), verdict.judge))
        messages = self._find_messages([verdict.key or "" for verdict in verdicts]) or self._build_review(trace)
        return self._fill_in(unit, question, messages)

    def _has_custom_prompt(self, judge_name: str) -> bool:
        """Whether a judge has a review prompt or a system text of its own, which other judges do not see."""
        judge = self._config.models_by_name.get(judge_name)
        return judge is not None and (judge.review_prompt is not None or judge.system is not None)

    def _build_review(self, trace: Trace) -> Sequence[Message]:
        """Build the request about a trace on which no judge was asked."""
        from auditor.agents.call_builders import blind_trace, build_review_call  # loads word lists

        reader = _reader()
        text = blind_trace(self._config, self._survey, trace)
        return build_review_call(self._config, self._survey, reader, trace, text).messages

    # --- pairs of answers

    def _load_answer_pair(self, unit: LabelUnit) -> LabelItem:
        """Load a pair of answers; a symmetric question shows half of the pairs in the other order."""
        purpose_name, model, question_id, left, right = unit.parts
        purpose = Purpose(purpose_name)
        question = SUPPORT_QUESTION if purpose is Purpose.CONSISTENCY else CONTRADICTION_QUESTION
        texts = [self._find_answer(purpose, model, question_id, int(number)) for number in (left, right)]
        moral_question = next(iter(semantic_results.load_questions(self._db, self._audit.id, question_id)), None)
        verdicts = semantic_results.load_pair_verdicts(
            self._db, self._audit.id, purpose.value, [question_id], model=model
        )
        keys = [v.key for v in verdicts if (v.left, v.right) == (int(left), int(right)) and v.key is not None]
        is_swapped = purpose in SYMMETRIC_PURPOSES and self._is_swapped(unit)
        messages = [] if is_swapped else self._find_messages(sorted(keys))
        if not messages:
            if moral_question is None or None in texts:
                return LabelItem(
                    unit, question, missing=NO_SUCH_UNIT if moral_question is None else "An answer has no text."
                )
            first, second = reversed(texts) if is_swapped else texts
            from auditor.agents.semantic.call_builders import build_pair_call

            call = build_pair_call(self._config, _reader(), purpose, moral_question.text, first or "", second or "")
            messages = call.messages
        return self._fill_in(unit, question, messages)

    def _find_answer(self, purpose: Purpose, model: str, question_id: str, number: int) -> str | None:
        """Return an answer's text: a sample of the question for consistency, a wording for contradiction."""
        for answer in semantic_results.load_answers(self._db, self._audit.id, [question_id], model=model):
            position = (answer.wording, answer.sample)
            asked_position = (0, number) if purpose is Purpose.CONSISTENCY else (number, answer.sample)
            if position == asked_position:
                return answer.text
        return None

    def _is_swapped(self, unit: LabelUnit) -> bool:
        """Whether this rater sees the right answer first: so for half of the units, by a hash."""
        return hash_to_fraction("label side", self._audit.name, self._rater, *unit.parts) < 0.5

    # --- comparisons

    def _load_comparison(self, unit: LabelUnit) -> LabelItem:
        """Load a comparison of two items, with the criterion's question in its standard form."""
        context, item_a, item_b = unit.parts
        item_set = next(iter(comparisons.load_item_sets(self._db, self._audit.id, context)), None)
        ids = [item.id for item in item_set.items] if item_set is not None else []
        if item_set is None or not {item_a, item_b} <= set(ids):
            return LabelItem(unit, COMPARISON_QUESTION, missing=NO_SUCH_UNIT)
        from auditor.agents.logic.questions import render_question

        messages = render_question(item_set, ids.index(item_a), ids.index(item_b), Relation.STANDARD)
        return self._fill_in(unit, COMPARISON_QUESTION, messages)

    # --- requests

    def _find_messages(self, keys: Sequence[str]) -> Sequence[Message]:
        """Return the recorded messages of the first call that has any; empty if none has."""
        recorded = transcripts.load_transcripts(self._db, keys)
        return next((recorded[key].messages for key in keys if key in recorded and recorded[key].messages), ())

    def _fill_in(self, unit: LabelUnit, question: str, messages: Sequence[Message]) -> LabelItem:
        """Build the item from a judge's messages, with the aspects that they ask for."""
        instructions = "\n\n".join(message.content for message in messages if message.role == "system")
        material = "\n\n".join(message.content for message in messages if message.role == "user")
        aspects = {
            name: asked.question
            for name, asked in aspect_questions(for_task=self._is_task_audit).items()
            if unit.kind is LabelKind.TRACE and f'"{asked.key}"' in instructions
        }
        return LabelItem(unit, question, instructions, material, aspects)


def _reader() -> ModelSection:
    """A judge with no prompt of its own, in whose place the rater stands."""
    return ModelSection(name="rater", model="person/rater")


def _build_import_config(db: Database, audit: Audit) -> AuditConfig:
    """Configuration with the defaults and an imported audit's models, whose names are masked in the texts."""
    names = sorted({model for model, *_ in results.load_mean_scores(db, audit.id)}) or ["unknown"]
    models = [ModelSection.model_construct(name=name, model=f"imported/{'-'.join(name.split())}") for name in names]
    return AuditConfig(name="imported", survey=SurveySection(source="imported"), models=models, judges=[])
