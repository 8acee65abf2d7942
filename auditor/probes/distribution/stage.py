"""Stage of the probe `distribution`: store the survey's shares, ask for opinions in batches, and read them."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_runner import find_unsent_repairs, merge_repeated, repeat_calls, run_calls
from auditor.agents.probe_stage import ProbeStage
from auditor.agents.refusals import is_refusal_in_any_language
from auditor.agents.run_context import RunContext
from auditor.agents.sentence_pairs import sum_letter_logprobs
from auditor.agents.stages import record_stage
from auditor.domain import OPTION_LETTERS, Answer, Call, LogprobMeasure, Message, Outcome
from auditor.models.reasoning import strip_thinking
from auditor.models.structured_reading import parse_structured_answer
from auditor.probes.distribution import opinion_rows
from auditor.probes.distribution.opinion_questions import (
    OpinionAnswer,
    OpinionCounts,
    OpinionQuestion,
    OpinionSubject,
    build_opinion_call,
    counts_schema,
    load_planned_shares,
    plan_subjects,
    point_labels,
    questions_about,
)
from auditor.probes.distribution.opinions import MAX_SUM_ERROR, Opinion, OpinionMode, ScaleOrder, load_english_words
from auditor.probes.distribution.settings import DistributionProbe
from auditor.prompts import fill_placeholders
from auditor.storage.records import save_records
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import format_distributions
from auditor.text_safety import truncate_middle

N_PEOPLE = 100
"""Number that stated counts add up to."""


class ParsedShares(NamedTuple):
    """Shares in the order of the scale, or the problem with the answer, as the end of a sentence."""

    shares: tuple[float, ...] | None
    problem: str = ""
    is_rescaled: bool = False
    mass: float | None = None


def parse_opinion(
    model: str,
    question: OpinionQuestion,
    distributions: SurveyDistributions,
    call: Call | None,
    answer: Answer | None,
    min_mass: float,
) -> Opinion:
    """Parse an answer; without shares if the call failed or the answer cannot be used.

    Args:
        call, answer: None if the model cannot be asked, which makes the opinion `not_measurable`.
        min_mass: with `tokens`, minimum probability of all answers together.
    """
    outcome, parsed = Outcome.NOT_MEASURABLE, ParsedShares(None)
    if call is not None and answer is not None:
        outcome = answer.outcome
        if outcome is Outcome.OK:
            parsed = parse_shares(question, distributions, call, answer.text or "", min_mass)
            if parsed.shares is None:
                outcome = _outcome_of_unusable(question, answer.text or "")
    return Opinion(
        model=model,
        cell=question.subject.cell,
        dimension=question.subject.dimension,
        group=question.subject.group,
        mode=question.mode,
        scale_order=question.scale_order,
        sample=question.sample,
        outcome=outcome,
        shares=parsed.shares,
        n=1 if question.mode is OpinionMode.SAMPLED else None,
        is_rescaled=parsed.is_rescaled,
        mass=parsed.mass,
        key=answer.key if answer is not None else None,
    )


def merge_repaired_opinion(opinion: Opinion, repaired: Opinion) -> Opinion:
    """An unreadable opinion with the shares of the second answer, if these could be read; and the key of its call."""
    if repaired.outcome is not Outcome.OK:
        return replace(opinion, repair_key=repaired.key)
    return replace(repaired, key=opinion.key, repair_key=repaired.key)


def build_repair_call(
    call: Call, question: OpinionQuestion, distributions: SurveyDistributions, text: str, max_chars: int
) -> Call | None:
    """Build the call that shows the model its unreadable answer; None if there is nothing to show.

    Args:
        call, text: the first call, and the text of its answer.
        max_chars: maximum length of what is shown.
    """
    visible_text = strip_thinking(text)
    if not visible_text.strip():
        return None
    problem = parse_shares(question, distributions, call, text, 0.0).problem
    request = fill_placeholders(load_english_words().repair, {"problem": truncate_middle(problem, max_chars)})
    shown_answer = Message("assistant", truncate_middle(visible_text, max_chars))
    return replace(call, messages=(*call.messages, shown_answer, Message("user", request)))


def parse_shares(
    question: OpinionQuestion, distributions: SurveyDistributions, call: Call, text: str, min_mass: float
) -> ParsedShares:
    """Parse the shares that an answer states, or the single answer that it gives."""
    scale = distributions.scale_of(question.subject.cell.topic)
    if question.mode is OpinionMode.TOKENS:
        shown = _parse_letters(call, text, len(scale.points), min_mass)
    elif question.mode is OpinionMode.SAMPLED:
        shown = _parse_single_answer(text, point_labels(scale, question.scale_order), call.request_text)
    else:
        shown = _parse_counts(text, len(scale.points), call.request_text)
    if shown.shares is None or question.scale_order is ScaleOrder.UP:
        return shown
    return shown._replace(shares=shown.shares[::-1])


def _parse_counts(text: str, n_points: int, request: str) -> ParsedShares:
    """Shares from counts out of 100, in the order shown; a sum up to 10% off is divided by itself."""
    counts = parse_structured_answer(counts_schema(n_points), text, request)
    if isinstance(counts, str):
        return ParsedShares(None, counts)
    assert isinstance(counts, OpinionCounts)
    if len(counts.counts) != n_points:
        return ParsedShares(None, f"it has {len(counts.counts)} numbers, not {n_points}")
    total = sum(counts.counts)
    if abs(total - N_PEOPLE) > MAX_SUM_ERROR * N_PEOPLE:
        return ParsedShares(None, f"the numbers add up to {total}, not {N_PEOPLE}")
    return ParsedShares(tuple(count / total for count in counts.counts), is_rescaled=total != N_PEOPLE)


def _parse_single_answer(text: str, labels: Sequence[str], request: str) -> ParsedShares:
    """A share of 1 for the chosen answer, in the order shown."""
    chosen = parse_structured_answer(OpinionAnswer, text, request)
    if isinstance(chosen, str):
        return ParsedShares(None, chosen)
    if str(chosen.answer) not in labels:
        return ParsedShares(None, f"{chosen.answer} is not one of the answers {labels[0]} to {labels[-1]}")
    return ParsedShares(tuple(float(str(chosen.answer) == label) for label in labels))


def _parse_letters(call: Call, text: str, n_points: int, min_mass: float) -> ParsedShares:
    """Shares from the probabilities of the letters as the next token; a letter that is not listed has none."""
    letters = OPTION_LETTERS[:n_points]
    if call.measure is LogprobMeasure.CONTINUATION:
        logprobs: Sequence[float | None] = json.loads(text or "[]")
    else:
        by_letter = sum_letter_logprobs(text or "[]", letters)
        logprobs = [by_letter[letter] for letter in letters]
    probabilities = [0.0 if logprob is None else math.exp(logprob) for logprob in logprobs]
    mass = math.fsum(probabilities)
    if not mass or mass < min_mass:
        return ParsedShares(None, f"all answers together have a probability of {mass:.2g}", mass=mass)
    return ParsedShares(tuple(probability / mass for probability in probabilities), mass=mass)


def _outcome_of_unusable(question: OpinionQuestion, text: str) -> Outcome:
    """The outcome of an answer without shares."""
    if question.mode is OpinionMode.TOKENS:
        return Outcome.NOT_MEASURABLE
    return Outcome.REFUSED if is_refusal_in_any_language(strip_thinking(text)) else Outcome.UNPARSED


SUBJECTS_PER_BATCH = 32
"""Cells and groups in one parallel branch; bounds its memory."""
STAGE = "distribution"


class DistributionPlan(NamedTuple):
    """The shares of people's answers as stored, and whose opinions are asked for."""

    distributions: SurveyDistributions
    subjects: list[OpinionSubject]


def build_distribution_stage() -> ProbeStage:
    """Build the stage of the probe."""
    return ProbeStage(STAGE, store_shares, ask_opinions, SUBJECTS_PER_BATCH)


async def store_shares(context: RunContext) -> int:
    """Store the shares of people's answers, and count whose opinions are asked for."""
    probe = context.config.probes.get(DistributionProbe)
    await record_stage(context, STAGE)
    distributions = await asyncio.to_thread(load_planned_shares, context.config, context.survey)
    shares_json = format_distributions(distributions)
    await asyncio.to_thread(opinion_rows.replace_survey_shares, context.db, context.audit_id, shares_json)
    stored_distributions = SurveyDistributions.model_validate(json.loads(shares_json))
    plan = DistributionPlan(stored_distributions, plan_subjects(probe, stored_distributions, context.cells))
    context.probe_plans[STAGE] = plan
    return len(plan.subjects)


async def ask_opinions(context: RunContext, start: int, stop: int) -> None:
    """Ask every model about the cells and groups of the range, repair unreadable answers, and store the opinions."""
    probe = context.config.probes.get(DistributionProbe)
    plan: DistributionPlan = context.probe_plans[STAGE]
    requests = [
        _Request(
            model.name,
            question,
            build_opinion_call(context.config, context.survey, plan.distributions, model, question),
        )
        for model in context.config.models
        for subject in plan.subjects[start:stop]
        for question in questions_about(subject, probe)
    ]
    new_opinions = await _collect_opinions(context, plan.distributions, requests)
    await asyncio.to_thread(save_records, context.db, context.audit_id, new_opinions)


class _Request(NamedTuple):
    """A question to a model, with its call; without one if the model cannot be asked."""

    model: str
    question: OpinionQuestion
    call: Call | None


async def _collect_opinions(
    context: RunContext, distributions: SurveyDistributions, requests: Sequence[_Request]
) -> list[Opinion]:
    """Ask, and ask once more for unreadable answers; opinions that a stopped run leaves unanswered are missing."""
    answers = await run_calls(context, STAGE, [request.call for request in requests if request.call is not None])
    probe = context.config.probes.get(DistributionProbe)

    def parse(request: _Request, call: Call | None, answer: Answer | None) -> Opinion:
        """Parse the answer to a request, or to its repair."""
        return parse_opinion(request.model, request.question, distributions, call, answer, probe.min_mass)

    collected: list[Opinion] = []
    repairs: dict[int, Call] = {}  # by position of the opinion
    asked: list[_Request] = []
    for request in requests:
        answer = answers.get(request.call.key) if request.call is not None else None
        if request.call is not None and answer is None:
            continue
        opinion = parse(request, request.call, answer)
        if probe.repair and opinion.outcome is Outcome.UNPARSED and request.call is not None and answer is not None:
            max_chars = context.config.probes.review.max_trace_chars
            repair = build_repair_call(request.call, request.question, distributions, answer.text or "", max_chars)
            if repair is not None:
                repairs[len(collected)] = repair
        collected.append(opinion)
        asked.append(request)
    repair_answers = await run_calls(context, STAGE, list(repairs.values()))
    for position, call in repairs.items():
        if call.key in repair_answers:
            repaired = parse(asked[position], call, repair_answers[call.key])
            collected[position] = merge_repaired_opinion(collected[position], repaired)
    unsent_repairs = await find_unsent_repairs(context, repair_answers.values())
    second_answers = await repeat_calls(
        context,
        STAGE,
        [
            (request.call, opinion.outcome)
            for request, opinion in zip(asked, collected, strict=True)
            if request.call is not None
        ],
    )
    final_opinions: list[Opinion] = []
    for position, (request, opinion) in enumerate(zip(asked, collected, strict=True)):
        if position in repairs and opinion.repair_key is None:
            continue
        if request.call is not None and request.call.key in second_answers:
            opinion = merge_repeated(opinion, parse(request, request.call, second_answers[request.call.key]))
        elif opinion.repair_key in unsent_repairs:
            opinion = replace(opinion, outcome=unsent_repairs[opinion.repair_key])
        final_opinions.append(opinion)
    return final_opinions
