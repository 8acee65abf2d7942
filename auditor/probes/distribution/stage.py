"""Stage of the probe `distribution`: store the survey's shares, then ask for opinions in batches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple

from auditor.agents.call_runner import merge_repeated, repeat_calls, run_calls
from auditor.agents.probe_stage import ProbeStage
from auditor.agents.run_context import RunContext
from auditor.agents.stages import record_stage
from auditor.domain import Answer, Call, Outcome
from auditor.probes.distribution import opinion_rows
from auditor.probes.distribution.opinion_answers import build_repair_call, merge_repaired_opinion, parse_opinion
from auditor.probes.distribution.opinion_questions import (
    OpinionQuestion,
    OpinionSubject,
    build_opinion_call,
    load_planned_shares,
    plan_subjects,
    questions_about,
)
from auditor.probes.distribution.opinions import Opinion
from auditor.probes.distribution.settings import DistributionProbe
from auditor.storage.records import save_records
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import format_distributions

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
    second_answers = await repeat_calls(
        context,
        STAGE,
        [
            (request.call, opinion.outcome)
            for request, opinion in zip(asked, collected, strict=True)
            if request.call is not None
        ],
    )
    return [
        merge_repeated(opinion, parse(request, request.call, second_answers[request.call.key]))
        if request.call is not None and request.call.key in second_answers
        else opinion
        for request, opinion in zip(asked, collected, strict=True)
    ]
