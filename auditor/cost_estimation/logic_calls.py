"""Planned calls of the probe `logic`: comparisons of pairs of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.agents.logic.item_sets import build_item_sets
from auditor.agents.logic.questions import build_comparison_call, plan_pairs, questions_about
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import Cell, Purpose, Survey
from auditor.reports.data.cost.forecast import ForecastRange


def plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the pairwise comparisons of items by each comparing model; all models are asked the same questions."""
    probe = config.probes.logic
    assert probe is not None
    item_sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient()), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(item_sets, probe, config.seed)
    questions = [question for pair in pairs for question in questions_about(pair, probe)]
    sampled_questions = questions[:: max(1, len(questions) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for judge in config.models_by_name.values():
        examples = [
            build_comparison_call(config, probe, judge, item_sets[question.set_index], question)
            for question in sampled_questions
        ]
        words = probe.max_words if probe.cot else 0
        yield PlannedCalls(judge, Purpose.LOGIC, ForecastRange.from_bounds(len(questions)), examples, words)
