"""Sentences about votes cover only the conflicts that judges vote on, and name the voting rule of the audit."""

from __future__ import annotations

from typing import Literal

import pytest

from auditor.reports.conflicts import wording as conflict_wording
from auditor.reports.data.estimate_conversion import estimate_share
from auditor.reports.data.report_schema import ConflictKindRow, Report, VotingReport

Rule = Literal["majority", "weighted", "dawid_skene"]


def report_with_conflicts(report: Report, rule: Rule, scored: int = 6) -> Report:
    """The report with `scored` conflicts between models, four settled by the judges, and 14 without judges."""
    none = dict.fromkeys(report.conflicts.states, 0)
    settled = {"majority": 4, "open": 2} if scored else {}
    kinds = [
        ConflictKindRow(kind="binary", total=scored, states={**none, **settled}),
        ConflictKindRow(kind="methods", total=13, states={**none, "open": 13}),
        ConflictKindRow(kind="logic", total=1, states={**none, "person": 1}),
    ]
    voting = VotingReport(rule=rule, weights={"a": 1.0}, by_majority=3, by_weight=4, same_side=3, other_side=0)
    changes = {
        "kinds": kinds,
        "total": scored + 14,
        "states": {**none, "open": 15, "majority": 4, "person": 1},
        "settled": estimate_share(4 if scored else 0, scored),
        "voting": voting,
    }
    return report.model_copy(update={"conflicts": report.conflicts.model_copy(update=changes)})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("majority", "by a majority of the assigned seats."),
        ("weighted", "by more than half of the assigned weight."),
        ("dawid_skene", "by Dawid and Skene’s model of the judges."),
    ],
)
def test_conflicts_between_models_are_counted_separately_and_the_voting_rule_is_named(
    report: Report, rule: Rule, words: str
) -> None:
    sentences = conflict_wording.describe_conflicts(report_with_conflicts(report, rule))
    assert "There are 6: 2 open, 4 settled by the judges." in sentences
    assert "The judges settle 67%" in sentences
    assert words in sentences
    assert sum(w in sentences for w in conflict_wording.VOTING_RULE_LABELS.values()) == 1
    assert "Beside these are 13 between one model’s two methods and 1 of judges’ verdicts on pairs" in sentences


@pytest.mark.parametrize("rule", ["weighted", "dawid_skene"])
def test_voting_shares_are_of_the_conflicts_that_judges_vote_on(report: Report, rule: Rule) -> None:
    sentences = conflict_wording.describe_voting(report_with_conflicts(report, rule))
    assert "4 of 6" in sentences
    assert "of 20" not in sentences


def test_without_conflicts_between_models_no_voting_is_described(report: Report) -> None:
    nothing = report_with_conflicts(report, "weighted", scored=0)
    assert "There is none. Beside these are 13" in conflict_wording.describe_conflicts(nothing)
    assert conflict_wording.describe_voting(nothing) == ""
