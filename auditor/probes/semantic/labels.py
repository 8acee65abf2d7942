"""Labels on pairs of answers: a pair as a rater sees it, and what the judges say of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from auditor.config import AuditConfig
from auditor.domain import Message, Purpose
from auditor.domain.labels import EQUIVALENCE, LabelUnit
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_rows import query_label_units as query_label_units
from auditor.probes.semantic.call_builders import asked_text, build_pair_call
from auditor.probes.semantic.probe import ANSWER_PAIR
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE
from auditor.prompts import load_prompt
from auditor.reports.data.judge_quality.pair_labels import Decisions
from auditor.review.label_item import NO_SUCH_UNIT, LabelItem, LabelItemLoader, stand_in_judge
from auditor.review.side_order import hash_to_fraction
from auditor.storage.database import Database

SUPPORT_QUESTION = "Does the first answer support the second?"
CONTRADICTION_QUESTION = "Do the two answers contradict each other?"
EQUIVALENCE_QUESTION = "Do the two answers mean the same?"
QUESTIONS = {
    CONSISTENCY_PURPOSE.value: SUPPORT_QUESTION,
    CONTRADICTION_PURPOSE.value: CONTRADICTION_QUESTION,
    EQUIVALENCE: EQUIVALENCE_QUESTION,
}
"""What people are asked of a pair of answers, by its purpose."""
SYMMETRIC_PURPOSES = (CONTRADICTION_PURPOSE.value, EQUIVALENCE)
"""Purposes whose question has the same answer for both orders of the two texts."""


def load_label_item(loader: LabelItemLoader, unit: LabelUnit) -> LabelItem:
    """Load a pair of answers; a symmetric question shows half of the pairs in the other order."""
    purpose, model, question_id, left, right = unit.parts
    question = QUESTIONS[purpose]
    texts = [_find_answer(loader, purpose, model, question_id, int(number)) for number in (left, right)]
    moral_question = next(iter(answer_rows.load_questions(loader.db, loader.audit.id, question_id)), None)
    verdicts = answer_rows.load_pair_verdicts(loader.db, loader.audit.id, purpose, [question_id], model=model)
    keys = [v.key for v in verdicts if (v.left, v.right) == (int(left), int(right)) and v.key is not None]
    is_swapped = purpose in SYMMETRIC_PURPOSES and _is_swapped(loader, unit)
    messages = [] if is_swapped else loader.find_messages(sorted(keys))
    if not messages:
        if moral_question is None or None in texts:
            return LabelItem(
                unit, question, missing=NO_SUCH_UNIT if moral_question is None else "An answer has no text."
            )
        first, second = reversed(texts) if is_swapped else texts
        text = asked_text(moral_question.text, moral_question.country, moral_question.language)
        messages = _build_messages(loader.config, purpose, text, first or "", second or "")
    return loader.fill_in(unit, question, messages)


def _build_messages(config: AuditConfig, purpose: str, question: str, first: str, second: str) -> Sequence[Message]:
    """The messages about a pair, as a judge gets them; of its own, if no judge is asked about such pairs."""
    if purpose == EQUIVALENCE:
        return load_prompt("semantic.equivalence").render(question=question, first=first, second=second)
    return build_pair_call(config, stand_in_judge(), Purpose(purpose), question, first, second).messages


def _find_answer(loader: LabelItemLoader, purpose: str, model: str, question_id: str, number: int) -> str | None:
    """Return an answer's text: a sample of the question for consistency, else the answer to a wording."""
    for answer in answer_rows.load_answers(loader.db, loader.audit.id, [question_id], model=model):
        position = (answer.wording, answer.sample)
        asked_position = (0, number) if purpose == CONSISTENCY_PURPOSE.value else (number, answer.sample)
        if position == asked_position:
            return answer.text
    return None


def _is_swapped(loader: LabelItemLoader, unit: LabelUnit) -> bool:
    """Whether this rater sees the right answer first: so for half of the units, by a hash."""
    return hash_to_fraction("label side", loader.audit.name, loader.rater, *unit.parts) < 0.5


def load_pair_decisions(db: Database, audit_id: int) -> Decisions:
    """Load the usable verdicts on pairs of answers: yes or no."""
    decisions: defaultdict[tuple[str, str], dict[LabelUnit, str]] = defaultdict(dict)
    for purpose in (CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE):
        for verdict in answer_rows.load_pair_verdicts(db, audit_id, purpose.value):
            if verdict.holds is not None:
                parts = (purpose.value, verdict.model, verdict.question, str(verdict.left), str(verdict.right))
                unit = LabelUnit(ANSWER_PAIR, parts)
                question = purpose.value
                decisions[verdict.judge, question][unit] = "yes" if verdict.holds else "no"
    return decisions
