"""Counts of the answers that an experiment asked for, by what became of them."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.domain import Outcome
from auditor.probes.semantic.figures.experiment_rows import AnswerCountRow


def count_losses(counts: Mapping[str, int]) -> dict[str, int]:
    """Lost items by outcome, in the order of the outcomes; usable ones, and outcomes without any, are left out."""
    return {
        outcome.value: counts[outcome.value]
        for outcome in Outcome
        if outcome is not Outcome.OK and counts.get(outcome.value)
    }


def build_count_rows(outcomes_by_setting: Mapping[str, Mapping[str, Mapping[Outcome, int]]]) -> list[AnswerCountRow]:
    """Build one row for each setting and kind of text.

    Args:
        outcomes_by_setting: number of texts with each outcome, by setting and kind of text.
    """
    return [
        AnswerCountRow(
            setting=setting,
            text=text,
            planned=sum(outcomes.values()),
            ok=outcomes.get(Outcome.OK, 0),
            losses=count_losses({outcome.value: n for outcome, n in outcomes.items()}),
        )
        for setting, outcomes_by_text in outcomes_by_setting.items()
        for text, outcomes in outcomes_by_text.items()
    ]
