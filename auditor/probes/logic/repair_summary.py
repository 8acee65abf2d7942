"""Effect of REPAIR on each judge's answers: how many it reverses, and how consistent they are before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.repair_effect import measure_repair_effect
from auditor.probes.logic.repair import RepairedAnswers
from auditor.probes.logic.repair_stages import RepairStage, StageSummary


class RepairSummary(NamedTuple):
    """Effect of the repair on one judge's answers.

    Each pair of numbers is a share in [0, 1] before and after the repair, None where it cannot be measured.

    Attributes:
        sets: number of item sets.
        questions: number of answers to the standard question.
        flipped: number of those that the ranking reverses.
        transitivity, commutativity: see `StageSummary`; without the negated form.
        people: share of answers that agree with people, pooled over the questions that people, the judge and the
            ranking all decide (no ties).
    """

    judge: str
    sets: int
    questions: int
    flipped: int
    transitivity: tuple[float | None, float | None]
    commutativity: tuple[float | None, float | None]
    people: tuple[float | None, float | None]


def summarize_repairs(repaired: Sequence[RepairedAnswers], stages: Sequence[StageSummary]) -> list[RepairSummary]:
    """Summarize the effect of the repair on each judge's answers.

    Args:
        repaired: of any judges.
        stages: of the same judges, as `auditor.probes.logic.repair_stages.summarize_stages` measures them.
    """
    return [
        _summarize_judge(judge, [entry for entry in repaired if entry.raw.judge == judge], stages)
        for judge in dict.fromkeys(entry.raw.judge for entry in repaired)
    ]


def _summarize_judge(judge: str, repaired: Sequence[RepairedAnswers], stages: Sequence[StageSummary]) -> RepairSummary:
    """Summarize one judge; see `summarize_repairs`."""
    of_stage = {stage.stage: stage for stage in stages if stage.judge == judge and not stage.negated}
    repaired_stage: RepairStage = "perturbed" if "perturbed" in of_stage else "raw"
    before, after = of_stage[repaired_stage], of_stage["repaired"]
    answers = [entry.original.metric_input for entry in repaired]
    effect = measure_repair_effect(answers, [entry.repair.preferences for entry in repaired])
    return RepairSummary(
        judge=judge,
        sets=len(repaired),
        questions=sum(int((~np.isnan(entry.original.preferences)).sum()) for entry in repaired),
        flipped=sum(len(entry.repair.flipped) for entry in repaired),
        transitivity=(before.transitivity.value, after.transitivity.value),
        commutativity=(before.commutativity.value, after.commutativity.value),
        people=(effect.before.value, effect.after.value),
    )
