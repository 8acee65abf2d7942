"""Planned calls of the probe `logic`: comparisons of pairs of items."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from auditor.agents.run_context import OfflineClient, RunContext
from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import Cell, Survey
from auditor.probes.logic.comparisons import LOGIC_PURPOSE
from auditor.probes.logic.item_sets import build_item_sets
from auditor.probes.logic.question_forms import asks_for_reasoning, find_template, list_templates
from auditor.probes.logic.questions import build_comparison_call, plan_pairs, questions_about
from auditor.probes.logic.settings import LogicProbe
from auditor.reports.data.cost.forecast import ForecastRange


def plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the pairwise comparisons of items by each comparing model, apart by the form of the answer.

    All models are asked the same questions.
    """
    probe = config.probes.get(LogicProbe)
    item_sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient()), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(item_sets, probe, config.seed)
    questions = [question for pair in pairs for question in questions_about(pair, probe)]
    for judge, template in itertools.product(config.models_by_name.values(), list_templates(probe)):
        with_template = [question for question in questions if find_template(probe, question.sample) == template]
        if not with_template:
            continue
        examples = [
            build_comparison_call(config, probe, judge, item_sets[question.set_index], question)
            for question in with_template[:: max(1, len(with_template) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        ]
        words = probe.max_words if asks_for_reasoning(probe, with_template[0].sample) else 0
        yield PlannedCalls(judge, LOGIC_PURPOSE, ForecastRange.from_bounds(len(with_template)), examples, words)
