"""Experiment on questions with known answers: whether the choices are correct, and how consistent the reasons are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.errors import UsageError
from auditor.probes.semantic.answer_parsing import parse_choice
from auditor.probes.semantic.call_builders import build_choice_call, semantic_probe
from auditor.probes.semantic.group_scores import AnswerWithRule, GroupScores, score_groups
from auditor.probes.semantic.paraphrases import add_paraphrases
from auditor.probes.semantic.records import MoralQuestion, MoralWording
from auditor.probes.semantic.settings import SemanticProbe

Floats = NDArray[np.float64]


class KnownAnswerQuestion(NamedTuple):
    """A question with a known answer.

    Attributes:
        text: the question itself.
        correct_choice: number of the correct choice, from 1.
        paraphrases: other wordings.
    """

    id: str
    text: str
    choices: tuple[str, ...]
    correct_choice: int
    paraphrases: tuple[str, ...] = ()

    @property
    def asked_texts(self) -> tuple[str, ...]:
        """The paraphrases, as in an audit; with fewer than two of them, also the question itself."""
        return self.paraphrases if len(self.paraphrases) >= 2 else (self.text, *self.paraphrases)


def select_unparaphrased(probe: SemanticProbe, questions: Sequence[KnownAnswerQuestion]) -> list[MoralQuestion]:
    """The questions that the audit's paraphraser is to write wordings of: those without a paraphrase.

    Raises:
        UsageError: there is such a question, but the audit has no paraphraser.
    """
    unparaphrased = [MoralQuestion(question.id, question.text) for question in questions if not question.paraphrases]
    if unparaphrased and (probe.paraphraser is None or not probe.paraphrases):
        raise UsageError(
            f"question '{unparaphrased[0].id}' has no paraphrase, and the audit has no model that writes one.",
            "Add a row for each paraphrase, or name a model as 'paraphraser' in [probes.semantic] of a new audit; for "
            "`auditor replicate`, of the file of --models.",
        )
    return unparaphrased


async def paraphrase_known_answers(
    context: RunContext, questions: Sequence[KnownAnswerQuestion]
) -> list[KnownAnswerQuestion]:
    """Have the audit's paraphraser write wordings of the questions without any.

    Nothing of them is stored with the audit's own questions; the paraphraser's answers are recorded.

    Raises:
        UsageError: see `select_unparaphrased`.
    """
    probe = semantic_probe(context.config)
    unparaphrased = select_unparaphrased(probe, questions)
    if not unparaphrased:
        return list(questions)
    wordings = {question.id: [MoralWording(question.id, 0, 0, question.text, "question")] for question in unparaphrased}
    await add_paraphrases(context, probe, unparaphrased, wordings)
    context.raise_if_stopped()
    texts = {
        id_: tuple(wording.text for wording in candidates if wording.number) for id_, candidates in wordings.items()
    }
    return [question._replace(paraphrases=texts.get(question.id, question.paraphrases)) for question in questions]


async def accuracy_and_consistency(
    context: RunContext, questions: Sequence[KnownAnswerQuestion], *, scores_choices: bool = False
) -> dict[str, tuple[Floats, GroupScores]]:
    """By model: the share of correct answers, shape (questions,), and the consistency of the reasons.

    Args:
        scores_choices: whether the texts of the chosen answers are compared instead of the reasons.
    """
    measures_by_model = {}
    for model in context.config.models:
        calls = [
            [build_choice_call(context.config, model, text, question.choices) for text in question.asked_texts]
            for question in questions
        ]
        answers = await run_audit_calls(context, "answer", [call for group in calls for call in group])
        context.raise_if_stopped()
        parsed = [
            [parse_choice(answers[call.key], len(question.choices), call.request_text) for call in group]
            for question, group in zip(questions, calls, strict=True)
        ]
        is_correct = [
            [choice == question.correct_choice for _, choice, _ in group if choice is not None]
            for question, group in zip(questions, parsed, strict=True)
        ]
        accuracy = np.array([np.mean(group) if group else np.nan for group in is_correct], dtype=float)
        texts = [
            [
                AnswerWithRule(outcome, question.choices[choice - 1] if scores_choices and choice else reason)
                for outcome, choice, reason in group
            ]
            for question, group in zip(questions, parsed, strict=True)
        ]
        scores = await asyncio.to_thread(score_groups, context, texts, answers_only=True)
        measures_by_model[model.name] = accuracy, scores
    return measures_by_model
