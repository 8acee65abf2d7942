"""Calls and runs of the experiments on consistency, and scores of the answers that they collect."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.agents.vector_cache import VectorCache
from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.domain import Call, Outcome, Survey
from auditor.errors import UsageError
from auditor.experiments.stored_audit import Requirement
from auditor.metrics.answers.semantic import SizedScores, cosine_similarities
from auditor.models.text_similarity import consistency_measures
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answers import parse_answer, parse_choice, parse_rule
from auditor.probes.semantic.call_builders import (
    asked_text,
    build_answer_call,
    build_choice_call,
    build_rule_call,
    semantic_probe,
)
from auditor.probes.semantic.encoder import TextGrid, score_measures, score_similarities, stack_text_kinds
from auditor.probes.semantic.paraphrases import add_paraphrases, generate_paraphrases
from auditor.probes.semantic.planned_calls import plan_answer_calls, plan_paraphrase_calls, plan_rule_calls
from auditor.probes.semantic.questions import load_planned_questions, save_questions
from auditor.probes.semantic.records import MORAL_PURPOSE, MoralQuestion, MoralWording
from auditor.probes.semantic.settings import SemanticProbe
from auditor.probes.semantic.stage import scoring_settings
from auditor.reports.data.cost import ForecastRange


class GroupScores(NamedTuple):
    """Scores of groups of answers, with the number of usable texts of each group.

    Attributes:
        main: by the measure that the audit reports as its score.
        by_measure: by every measure, `main` included; keys are the text and the metric of `QuestionScore`.
        outcomes: number of answers (`answer`) and rules of thumb (`rot`) with each outcome; empty where none was
            requested.
    """

    main: SizedScores
    by_measure: dict[tuple[str, str], SizedScores]
    outcomes: dict[str, Counter[Outcome]]


class AnswerWithRule(NamedTuple):
    """An answer and its rule of thumb; only the outcome `ok` has a text.

    `rule_outcome` is None if no rule was requested.
    """

    outcome: Outcome
    answer: str | None
    rule_outcome: Outcome | None = None
    rule: str | None = None


def score_groups(
    context: RunContext, groups: Sequence[Sequence[AnswerWithRule]], *, answers_only: bool = False
) -> GroupScores:
    """Score the consistency of each group of answers by every measure of the audit.

    Args:
        answers_only: whether rules of thumb are left out, even if the audit has them.
    """
    probe, encoder = semantic_probe(context.config), context.encoder_loaders["semantic"]()
    settings = scoring_settings(context.config, probe)
    if answers_only:
        settings = replace(settings, measured="answer")
    group_size = max(map(len, groups), default=0)
    answers: TextGrid = [_pad([member.answer for member in group], group_size) for group in groups]
    rules: TextGrid = [_pad([member.rule for member in group], group_size) for group in groups]
    vectors_by_text = VectorCache(context.db, encoder).embed(
        text for texts in (*answers, *rules) for text in texts if text is not None
    )
    scores: dict[tuple[str, str], Floats] = {}
    sizes: dict[str, Floats] = {}
    texts_by_kind: dict[str, TextGrid] = {}
    for kind, vectors in stack_text_kinds(answers, rules, vectors_by_text, settings, group_size).items():
        by_metric = score_similarities(cosine_similarities(vectors), kind, settings)
        scores |= {(kind, metric): values for metric, values in by_metric.items()}
        sizes[kind] = np.isfinite(vectors).all(axis=2).sum(axis=1).astype(float)
        texts_by_kind |= {name: texts for name, texts in (("answer", answers), ("rot", rules)) if name == kind}
    measures = consistency_measures(probe.rivals, encoder, probe.bertscore_model)
    scores |= {key: np.array(values) for key, values in score_measures(texts_by_kind, measures).items()}
    members = [member for group in groups for member in group]
    counts = {
        "answer": Counter(member.outcome for member in members),
        "rot": Counter(member.rule_outcome for member in members if member.rule_outcome is not None),
    }
    by_measure = {(text, metric): SizedScores(values, sizes[text]) for (text, metric), values in scores.items()}
    return GroupScores(
        by_measure[settings.measured, settings.variant],
        by_measure,
        {text: by_outcome for text, by_outcome in counts.items() if by_outcome},
    )


def _pad(texts: list[str | None], size: int) -> list[str | None]:
    """The texts, with None appended up to a number of them."""
    return texts + [None] * (size - len(texts))


Floats = NDArray[np.float64]

SEMANTIC_PROBE = Requirement(
    lambda _db, _audit, config: config.probes.find(SemanticProbe),
    "has asked no moral questions",
    "Name one with `semantic = {}` under [probes].",
)


class AnswerRequest(NamedTuple):
    """Parameters of one answer to collect; see `build_answer_call`.

    Attributes:
        model: name of the model.
        text: text of the wording to ask.
    """

    model: str
    text: str
    sample: int = 0
    temperature: float | None = None
    rule: str | None = None


async def load_asked_questions(context: RunContext) -> tuple[list[MoralQuestion], dict[str, list[str]]]:
    """Load the audit's questions, and the texts of their paraphrases by question id, all as the prompts show them.

    Of an audit that has not asked any yet, the questions are stored, and missing paraphrases written.
    """
    questions = await asyncio.to_thread(answer_rows.load_questions, context.db, context.audit_id)
    if not questions:
        probe = semantic_probe(context.config)
        questions = await asyncio.to_thread(save_questions, context.db, context.audit_id, probe, context.survey)
        if probe.paraphraser is not None:
            await generate_paraphrases(context, probe, questions)
            context.raise_if_stopped()
    wordings_by_question = await asyncio.to_thread(answer_rows.load_wordings, context.db, context.audit_id)
    texts_by_question = {
        question.id: [
            asked_text(wording.text, question.country, wording.language)
            for wording in sorted(wordings_by_question.get(question.id, []), key=lambda wording: wording.number or 0)
            if wording.number
        ]
        for question in questions
    }
    asked = [
        replace(question, text=asked_text(question.text, question.country, question.language)) for question in questions
    ]
    return asked, texts_by_question


async def elicit_answers(context: RunContext, requests: Sequence[AnswerRequest]) -> list[AnswerWithRule]:
    """Collect answers and, if the probe scores them, their rules of thumb; in the order of the requests.

    Raises:
        AuditorError: the run was stopped.
    """
    config, probe = context.config, semantic_probe(context.config)
    calls = [
        build_answer_call(
            config,
            config.model(request.model),
            request.text,
            sample=request.sample,
            temperature=request.temperature,
            rule=request.rule,
        )
        for request in requests
    ]
    answers = await run_audit_calls(context, "answer", calls)
    context.raise_if_stopped()
    parsed_answers = [parse_answer(answers[call.key], probe.mode) for call in calls]
    rule_calls: dict[int, Call] = {
        index: build_rule_call(config, config.model(probe.rot_model or request.model), request.text, text)
        for index, (request, (_, text)) in enumerate(zip(requests, parsed_answers, strict=True))
        if probe.measured != "answer" and text is not None
    }
    rule_answers = await run_audit_calls(context, "rule", list(rule_calls.values()))
    context.raise_if_stopped()
    parsed_rules = {
        index: parse_rule(rule_answers[call.key], probe.mode, call.messages[0].content)
        for index, call in rule_calls.items()
    }
    return [AnswerWithRule(*answer, *parsed_rules.get(index, ())) for index, answer in enumerate(parsed_answers)]


async def scores_by_temperature(
    context: RunContext, temperatures: Sequence[float]
) -> dict[tuple[str, float, bool], GroupScores]:
    """Scores by (model, temperature, reworded), arrays over the audit's questions in order.

    `reworded` is True for one answer to each paraphrase, False for as many samples of the original question.
    """
    questions, wordings = await load_asked_questions(context)
    scores = {}
    for model in context.config.models:
        for temperature in temperatures:
            for reworded in (False, True):
                requests = [
                    [
                        AnswerRequest(
                            model.name, text if reworded else question.text, 0 if reworded else sample, temperature
                        )
                        for sample, text in enumerate(wordings[question.id])
                    ]
                    for question in questions
                ]
                scores[model.name, temperature, reworded] = await _elicit_and_score(context, requests)
    return scores


async def scores_by_rule(
    context: RunContext, rules: Mapping[str, str] | None = None
) -> dict[tuple[str, bool], GroupScores]:
    """Scores by (model, followed), arrays over the audit's questions in order.

    `followed` is True if the model was given a rule of thumb to follow. Questions without a rule have no score.

    Args:
        rules: rules by question id; by default, each model follows its own first rule of thumb on the question.
    """
    questions, wordings = await load_asked_questions(context)
    rule_by_key: dict[tuple[str, str], str] = {
        (model.name, question): rule for model in context.config.models for question, rule in (rules or {}).items()
    }
    if rules is None:
        for answer in await asyncio.to_thread(answer_rows.load_answers, context.db, context.audit_id):
            if answer.wording and answer.rot is not None:
                rule_by_key.setdefault((answer.model, answer.question), answer.rot)
    scores = {}
    for model in context.config.models:
        for followed in (False, True):
            requests = [
                [
                    AnswerRequest(model.name, text, rule=rule_by_key[model.name, question.id] if followed else None)
                    for text in wordings[question.id]
                    if (model.name, question.id) in rule_by_key
                ]
                for question in questions
            ]
            scores[model.name, followed] = await _elicit_and_score(context, requests)
    return scores


async def _elicit_and_score(context: RunContext, requests: Sequence[Sequence[AnswerRequest]]) -> GroupScores:
    """Collect the answers of each group of requests, and score their consistency: one score per group and measure."""
    answers = await elicit_answers(context, [request for group in requests for request in group])
    group_ends = np.cumsum([len(group) for group in requests])
    groups = [answers[end - len(group) : end] for group, end in zip(requests, group_ends, strict=True)]
    return await asyncio.to_thread(score_groups, context, groups)


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
