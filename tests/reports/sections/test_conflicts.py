"""Sentences about votes cover only the conflicts that judges vote on, and name the voting rule of the audit."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate, proportion
from auditor.metrics.people.conflict import auto_threshold, find_conflicts, is_within_noise, third_quartile
from auditor.reports.data.conflicts import ConflictKindRow, VotingReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Disclosure, Name, Paragraph, Quote, Section
from auditor.reports.sections.conflicts import (
    MAX_SHOWN_CONFLICTS,
    VOTING_RULE_LABELS,
    build_conflicts_section,
    describe_conflict,
    describe_conflicts,
    describe_voting,
)
from auditor.storage.database import Database
from tests.reports.hostile_report import hostile_report
from tests.reports.sections.node_text import assert_consistent, text_of
from tests.support.known import known
from tests.support.report_changes import change

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
        "kinds": kinds, "total": scored + 14, "states": {**none, "open": 15, "majority": 4, "person": 1},
        "settled": proportion(4 if scored else 0, scored), "voting": voting,
    }  # fmt: skip
    return change(report, **{f"conflicts__{name}": value for name, value in changes.items()})


@pytest.mark.parametrize("threshold", [0.38, "auto"])
def test_conflicts_of_equal_models_may_all_be_chance_though_most_exceed_the_noise(
    report: Report, threshold: float | Literal["auto"]
) -> None:
    rng = np.random.default_rng(3)
    samples = rng.uniform(-0.5, 0.5, (200, 1)) + 0.25 * rng.normal(size=(4, 200, 5))
    means, variances = samples.mean(axis=2), samples.var(axis=2, ddof=1)
    quartile = third_quartile([first - second for first, second in combinations(means, 2)])
    smallest = auto_threshold(quartile.value) if threshold == "auto" else threshold
    is_within = [
        is_within_noise(means[i, cell] - means[j, cell], (variances[i, cell], variances[j, cell]), (5, 5))
        for cell in range(200)
        for i, j, _ in find_conflicts(means[:, cell], smallest)
    ]
    n_within = is_within.count(True)
    share = proportion(n_within, len(is_within))
    noise = {"conflicts__within_noise": share, "conflicts__third_quartile": quartile}
    sentences = " ".join(describe_conflicts(change(report_with_conflicts(report, "majority"), **noise)))
    assert f"In {n_within} of {len(is_within)} conflicts with known sampling noise" in sentences
    assert (
        "By chance alone, up to about 60 of all 1\u202f200 differences would exceed it: the others may all be chance."
        in sentences
    )
    real = proportion(30, 300)
    sentences = " ".join(describe_conflicts(change(report, **(noise | {"conflicts__within_noise": real}))))
    assert "about 60 of all 1\u202f200 differences would exceed it. " in sentences


def test_chance_is_not_counted_where_the_noise_of_some_conflicts_is_unknown(report: Report) -> None:
    """It was counted over all differences, of which only those with known noise can exceed it."""
    report = report_with_conflicts(report, "majority")
    noise = {"conflicts__within_noise": proportion(1, 2), "conflicts__third_quartile": third_quartile([np.ones(1000)])}
    assert "By chance alone" not in " ".join(describe_conflicts(change(report, **noise)))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("majority", "by a majority of the assigned judges."),
        ("weighted", "by more than half of the assigned weight."),
        ("dawid_skene", "by Dawid and Skene’s model of the judges."),
    ],
)
def test_conflicts_between_models_are_counted_separately_and_the_voting_rule_is_named(
    report: Report, rule: Rule, words: str
) -> None:
    sentences = " ".join(describe_conflicts(report_with_conflicts(report, rule)))
    assert "There are 6 conflicts between models: 2 open, 4 settled by judges." in sentences
    assert "The judges alone settle 67% (95% CI " in sentences
    assert words in sentences
    assert sum(w in sentences for w in VOTING_RULE_LABELS.values()) == 1
    assert "Further conflicts are 13 between two methods of one model and 1 of judges’ verdicts on pairs" in sentences


def test_without_conflicts_between_models_no_voting_is_described(report: Report) -> None:
    nothing = report_with_conflicts(report, "weighted", scored=0)
    sentences = " ".join(describe_conflicts(nothing))
    assert sentences.startswith("There is no conflict between models.")
    assert "Further conflicts are 13" in sentences
    assert describe_voting(nothing.conflicts) == ""


@pytest.mark.parametrize(
    ("threshold", "quartile", "words"),
    [
        ("auto", Estimate(0.6, 90, 0.5, 0.7), "a threshold: the third quartile of this audit’s differences (0.60, 95%"),
        ("auto", Estimate(0.0, 90, 0.0, 0.0), "a threshold, here 2, since at least three in four"),
        (0.5, Estimate(0.6, 90, 0.5, 0.7), "a threshold, here 0.5. The third quartile of this audit’s differences is"),
        (0.5, Estimate(None, 0, reason="one model"), "a threshold, here 0.5."),
        (None, Estimate(None, 0, reason="one model"), "differ by at least a threshold."),
    ],
)
def test_the_threshold_is_named_with_the_quartile_that_it_is_taken_from(
    report: Report, threshold: float | Literal["auto"] | None, quartile: Estimate, words: str
) -> None:
    changed = change(report, conflicts__threshold=threshold, conflicts__third_quartile=quartile)
    assert words in " ".join(describe_conflicts(changed))


def build_section(report: Report) -> Section:
    section = known(build_conflicts_section(report))
    assert_consistent(section)
    return section


def disclosures_of(section: Section) -> list[Disclosure]:
    """The listed conflicts of the section."""
    [largest] = [block for block in section.blocks if isinstance(block, Section)]
    return [block for block in largest.blocks if isinstance(block, Disclosure)]


def test_a_conflict_is_described_by_its_votes_and_by_who_settled_it(report: Report) -> None:
    row = change(
        report.conflicts.largest[0], survey=0.25, difference=-1.1, seats=3, winner=None, state="open", decision=None,
        within_noise=True, left__model="a", left__votes=2, right__model="b", right__votes=1,
    )  # fmt: skip
    assert text_of(describe_conflict(row)) == (
        "People’s score is +0.25. The models’ scores differ by 1.10. Of 3 assigned judges, 2 voted for a and 1 for b. "
        "The difference is within the sampling noise. Status: open."
    )
    settled = change(row, state="majority", winner="a", within_noise=False, survey=None)
    assert text_of(describe_conflict(settled)).startswith("People there were not asked.")
    assert text_of(describe_conflict(settled)).endswith("1 for b. Status: settled by judges, for a.")
    decided = change(row, decision="neither", raters=["ann", "bob"], seats=0)
    assert text_of(describe_conflict(decided)).endswith("No judge voted. ann, bob decided: neither is right.")
    item = change(row, country="", truth="B")
    assert text_of(describe_conflict(item)).startswith("The correct answer is “B”.")


@pytest.mark.parametrize("n_others", [0, 2])
def test_only_the_largest_conflicts_are_printed_and_the_others_counted(report: Report, n_others: int) -> None:
    changed = change(report, conflicts__total=MAX_SHOWN_CONFLICTS + n_others)
    section = build_section(changed)
    assert len(disclosures_of(section)) == MAX_SHOWN_CONFLICTS < len(report.conflicts.largest)
    titles = ["All conflicts, largest first", f"The {MAX_SHOWN_CONFLICTS} largest conflicts"]
    [largest] = [block for block in section.blocks if isinstance(block, Section)]
    assert largest.title == titles[n_others > 0]
    assert ("The 2 others are in the table conflict" in text_of(section)) is (n_others > 0)


def test_reasoning_is_quoted_unless_none_is_stored(db: Database) -> None:
    report = hostile_report(db)
    [row] = report.conflicts.largest
    silent = change(report, conflicts__largest__0__right__reasoning=None)
    [conflict] = disclosures_of(build_section(silent))
    quotes = [(block.text, block.note) for block in conflict.blocks if isinstance(block, Quote)]
    assert quotes == [(row.left.reasoning, ""), ("", "No reasoning is stored.")]
    assert [tag.text for tag in conflict.tags] == ["gradient", "decided by people"]
    assert Paragraph(["Note: ", Name(row.notes[0])], role="note") in conflict.blocks
