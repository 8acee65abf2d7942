"""Planned calls of the probe `distribution`: opinions on the survey's own scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import Cell, Survey
from auditor.probes.distribution.opinion_questions import (
    build_opinion_call,
    load_planned_shares,
    plan_subjects,
    questions_about,
)
from auditor.probes.distribution.opinions import OPINION_PURPOSE, OpinionMode
from auditor.probes.distribution.settings import DistributionProbe
from auditor.reports.data.cost.forecast import ForecastRange


def plan_distribution_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the questions to each model; repairs of unreadable answers are not counted.

    A model without log-probabilities is not asked for them.
    """
    probe = config.probes.get(DistributionProbe)
    distributions = load_planned_shares(config, survey)
    subjects = plan_subjects(probe, distributions, cells)
    questions = list(questions_about(subjects[0], probe))
    n_modes = {mode: sum(question.mode is mode for question in questions) for mode in OpinionMode}
    sampled_subjects = subjects[:: max(1, len(subjects) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for model in config.models:
        # One example of each mode and order; samples of a question differ by their seed only.
        calls_by_mode = {
            question.mode: [
                call
                for subject in sampled_subjects
                if (call := build_opinion_call(
                    config, survey, distributions, model, question._replace(subject=subject)
                )) is not None
            ]
            for question in questions
            if question.sample == 0
        }  # fmt: skip
        n_calls = len(subjects) * sum(n for mode, n in n_modes.items() if calls_by_mode.get(mode))
        examples = [call for calls in calls_by_mode.values() for call in calls]
        yield PlannedCalls(model, OPINION_PURPOSE, ForecastRange.from_bounds(n_calls), examples, 0)
