"""Pairs of answers: judges' verdicts on them, and labels as a rater sees them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Message, Purpose
from auditor.domain.labels import EQUIVALENCE, LabelUnit
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_rows import query_label_units as query_label_units
from auditor.probes.semantic.answers import parse_pair_verdict, repeat_audit_calls
from auditor.probes.semantic.call_builders import asked_text, build_pair_call, is_paper_form
from auditor.probes.semantic.probe import ANSWER_PAIR
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    CONTRADICTION_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    PairVerdict,
    QuestionScore,
)
from auditor.probes.semantic.settings import ConsistencySection, SemanticProbe
from auditor.prompts import load_prompt
from auditor.reports.data.judge_quality.build import Decisions
from auditor.review.item import hash_to_fraction
from auditor.review.label_sampling import NO_SUCH_UNIT, LabelItem, LabelItemLoader, stand_in_judge
from auditor.storage.database import Database
from auditor.storage.exclusions import load_excluded
from auditor.storage.probe_results import list_answering_models
from auditor.storage.records import delete_unplanned, load_records, save_records

AnswerPair = tuple[MoralAnswerRecord, MoralAnswerRecord, int, int]
"""Two answers of a model to one question, and the numbers under which the pair is stored."""


async def judge_consistency(
    context: RunContext, section: ConsistencySection, questions: Sequence[MoralQuestion]
) -> None:
    """Ask the judge whether the first of two sampled answers of a model supports the second, and store the verdicts.

    An answer that was excluded since is still one of its pairs, so that no other pairs take their place.
    """
    ids = [question.id for question in questions]
    answers = await asyncio.to_thread(answer_rows.load_answers_as_given, context.db, context.audit_id, ids)
    groups: dict[tuple[str, str], list[MoralAnswerRecord]] = {}
    for answer, original in answers:
        if answer.wording == 0 and original.text is not None and answer.model != section.judge:
            groups.setdefault((answer.model, answer.question), []).append(answer)
    pairs = [
        (first, second, first.sample, second.sample)
        for group in groups.values()
        for first, second in answer_pairs(sorted(group, key=lambda sampled: sampled.sample), section.pairs)
    ]
    await judge_pairs(context, CONSISTENCY_PURPOSE, section.judge, questions, pairs)


def answer_pairs(
    answers: Sequence[MoralAnswerRecord], pairing: str
) -> Iterable[tuple[MoralAnswerRecord, MoralAnswerRecord]]:
    """Pairs of the first answer with every other one (pairing `first`), or all pairs (`all`)."""
    return (
        combinations(answers, 2) if pairing == "all" else ((answers[0], later_answer) for later_answer in answers[1:])
    )


def find_least_consistent_pairs(context: RunContext, probe: SemanticProbe) -> list[AnswerPair]:
    """The two least similar answers to each of a model's least consistent questions, `probe.worst` of them at most.

    The answers of the judge of contradictions are left out; empty if there is no such judge. A pair that was judged
    before an answer was excluded is still one of them.
    """
    if probe.contradiction is None:
        return []
    facts = answer_rows.load_facts(context.db, context.audit_id)
    assert facts is not None
    scores = load_records(context.db, context.audit_id, QuestionScore)
    keys: list[tuple[str, str, int, int]] = [
        (verdict.model, verdict.question, verdict.left, verdict.right)
        for verdict in load_excluded(context.db, context.audit_id, PairVerdict)
        if verdict.purpose == CONTRADICTION_PURPOSE.value
    ]
    n_excluded = Counter(model for model, *_ in keys)
    keys += [
        (model, score.question, score.left, score.right)
        for model in list_answering_models(context.db, context.audit_id, ["semantic"])
        if model != probe.contradiction
        for score in answer_rows.select_least_consistent(scores, facts, model, max(probe.worst - n_excluded[model], 0))
        if score.left is not None and score.right is not None
    ]
    answers = {
        (answer.model, answer.question, answer.wording): answer
        for answer in answer_rows.load_answers(context.db, context.audit_id, {question for _, question, *_ in keys})
        if answer.wording
    }
    return [
        (answers[model, question, left], answers[model, question, right], left, right)
        for model, question, left, right in keys
        if {(model, question, left), (model, question, right)} <= answers.keys()
    ]


async def judge_pairs(
    context: RunContext,
    purpose: Purpose,
    judge_name: str,
    questions: Sequence[MoralQuestion],
    pairs: Sequence[AnswerPair],
) -> None:
    """Ask the judge about pairs of answers, and store the verdicts in place of those on other pairs.

    Answers that came since change which pairs there are, and verdicts on others would count beside them.

    Args:
        purpose: `CONSISTENCY_PURPOSE` or `CONTRADICTION_PURPOSE`.
        questions: the questions asked about; pairs of answers to others are skipped.
        pairs: of one without a text, which is excluded, nothing is asked.
    """
    judge = context.config.model(judge_name)
    texts = {question.id: asked_text(question.text, question.country, question.language) for question in questions}
    planned = [(judge_name, purpose.value, first.model, first.question, *numbers) for first, _, *numbers in pairs]
    await asyncio.to_thread(
        delete_unplanned,
        *(context.db, context.audit_id, PairVerdict, planned),
        judge=list(context.config.models_by_name),
        purpose=[purpose.value],
        model=[model.name for model in context.config.models],
        question=texts,
    )
    # pair[0] and pair[1] are the two answers.
    requests: list[tuple[Call, AnswerPair]] = [
        (
            build_pair_call(context.config, judge, purpose, texts[pair[0].question], pair[0].text, pair[1].text),
            pair,
        )
        for pair in pairs
        if pair[0].question in texts and pair[0].text is not None and pair[1].text is not None
    ]
    answers = await run_audit_calls(context, purpose.value, [call for call, _ in requests])
    is_paper = is_paper_form(context.config, purpose)
    asked = [request for request in requests if request[0].key in answers]

    def read(position: int, answer: Answer) -> PairVerdict:
        """Parse an answer to the call at a position of `asked`."""
        call, (first, _, left, right) = asked[position]
        outcome, holds, reason = parse_pair_verdict(answer, purpose, is_paper_form=is_paper, request=call.request_text)
        key = (judge_name, purpose.value, first.model, first.question, left, right)
        return PairVerdict(*key, outcome, holds, reason, answer.key)

    first_verdicts = [(call, read(position, answers[call.key])) for position, (call, _) in enumerate(asked)]
    verdicts = await repeat_audit_calls(context, purpose.value, first_verdicts, read)
    await asyncio.to_thread(save_records, context.db, context.audit_id, verdicts)


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
    is_swapped = purpose in SYMMETRIC_PURPOSES and (
        hash_to_fraction("label side", loader.audit.name, loader.rater, *unit.parts) < 0.5
    )
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
