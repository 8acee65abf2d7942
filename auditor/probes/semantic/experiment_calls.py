"""Planned calls of the experiments on consistency: choices, temperatures, and following a rule of thumb."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.domain import Survey
from auditor.probes.semantic.call_builders import build_choice_call, semantic_probe
from auditor.probes.semantic.known_answers import KnownAnswerQuestion, select_unparaphrased
from auditor.probes.semantic.planned_calls import plan_answer_calls, plan_paraphrase_calls, plan_rule_calls
from auditor.probes.semantic.questions import load_planned_questions
from auditor.probes.semantic.records import MORAL_PURPOSE, MoralQuestion
from auditor.reports.data.cost.forecast import ForecastRange


def plan_choice_calls(config: AuditConfig, questions: Sequence[KnownAnswerQuestion]) -> Iterator[PlannedCalls]:
    """Yield the calls of the experiment `accuracy`: paraphrases of questions without any, and choices.

    Raises:
        UsageError: a question has no paraphrase, and the audit has no model that writes one.
    """
    probe = semantic_probe(config)
    unparaphrased = select_unparaphrased(probe, questions)
    yield from plan_paraphrase_calls(config, probe, unparaphrased)
    n_given = sum(len(question.asked_texts) for question in questions if question.paraphrases)
    n_written = len(unparaphrased) * probe.paraphrases
    choices = ForecastRange.from_bounds(n_given + len(unparaphrased), n_given + n_written)
    for model in config.models:
        examples = [build_choice_call(config, model, item.text, item.choices) for item in sample_evenly(questions)]
        yield PlannedCalls(model, MORAL_PURPOSE, choices, examples, probe.max_words)


def plan_temperature_calls(
    config: AuditConfig, survey: Survey, n_temperatures: int, *, is_asked: bool
) -> Iterator[PlannedCalls]:
    """Yield the calls of the experiment `temperature`: at each, answers to one wording and to all.

    Args:
        is_asked: whether the audit asks its own questions, so that their paraphrases are planned with them.

    Raises:
        ConfigError, ImportFileError: see `load_planned_questions`.
    """
    probe = semantic_probe(config)
    questions = load_planned_questions(probe, survey)
    if not is_asked:
        yield from plan_paraphrase_calls(config, probe, questions)
    yield from _plan_answers_and_rules(config, questions, 2 * n_temperatures)


def plan_rule_following_calls(
    config: AuditConfig, survey: Survey, question_ids: Collection[str], *, is_asked: bool
) -> Iterator[PlannedCalls]:
    """Yield the calls of the experiment `rules`: answers with a rule, and without it unless the audit asks for them.

    Args:
        question_ids: questions with a rule to follow.
        is_asked: whether the audit asks its own questions, so that the answers without a rule are its own.

    Raises:
        ConfigError, ImportFileError: see `load_planned_questions`.
    """
    probe = semantic_probe(config)
    questions = load_planned_questions(probe, survey)
    if not is_asked:
        yield from plan_paraphrase_calls(config, probe, questions)
    with_rule = [question for question in questions if question.id in question_ids]
    yield from _plan_answers_and_rules(config, with_rule, 1 if is_asked else 2)


def _plan_answers_and_rules(
    config: AuditConfig, questions: Sequence[MoralQuestion], n_rounds: int
) -> Iterator[PlannedCalls]:
    """Yield the calls for answers to all wordings in each round, and for the rules of thumb behind them."""
    probe = semantic_probe(config)
    sampled_questions, n_answers = sample_evenly(questions), len(questions) * probe.paraphrases * n_rounds
    yield from plan_answer_calls(config, probe, sampled_questions, n_answers)
    if probe.measured != "answer" and n_answers:
        yield from plan_rule_calls(config, probe, sampled_questions, n_answers)
