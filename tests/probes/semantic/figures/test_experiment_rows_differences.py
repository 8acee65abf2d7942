"""Differences in consistency between models: which pairs are tested, and for how many tests p-values are adjusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.probes.semantic.figures.experiment_rows import NO_EQUAL_SIZE_REASON, build_difference_rows
from auditor.probes.semantic.figures.schema import ScoreTable
from auditor.probes.semantic.records import MoralQuestion, QuestionScore, SemanticScoringSettings
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import INCOMPARABLE_REASON
from tests.support.known import known
from tests.support.request_reports import refuse_temperature

MODELS = ("alder", "birch", "cedar")


@pytest.fixture
def table() -> ScoreTable:
    """Scores of three models on nine questions."""
    questions = [MoralQuestion(str(i), "Is it right?") for i in range(9)]
    settings = SemanticScoringSettings("file", "encoder", "r", "sage", 10.0, 0.5, "answer", 3, "e")
    rng = np.random.default_rng(0)
    scores = [
        QuestionScore(model, question.id, "answer", "sage", float(rng.uniform(0.5, 1)), 3)
        for model in MODELS
        for question in questions
    ]
    return ScoreTable(questions, scores, settings)


def test_pairs_with_different_settings_are_listed_without_a_test(table: ScoreTable, report: Report) -> None:
    sampling = refuse_temperature(report, "birch", "moral").sampling
    by_pair = {(row.first, row.second): row for row in build_difference_rows(MODELS, table, sampling)}
    assert len(by_pair) == 3
    for pair in (("alder", "birch"), ("birch", "cedar")):
        assert (by_pair[pair].difference.reason, by_pair[pair].difference.p_value) == (INCOMPARABLE_REASON, None)
    # The only test needs no correction for further ones.
    [only_pair] = build_difference_rows(["alder", "cedar"], table, sampling)
    assert only_pair.difference.p_value == known(by_pair["alder", "cedar"].difference.p_value)


def test_a_pair_without_an_interval_has_no_p_value_and_is_no_test(table: ScoreTable, report: Report) -> None:
    [single] = build_difference_rows(["alder", "cedar"], table, report.sampling)
    same, *others = build_difference_rows(["alder", "alder", "cedar"], table, report.sampling)
    assert (same.difference.value, same.difference.ci_low, same.difference.p_value) == (0.0, None, None)
    assert [row.difference.adjusted_p_value for row in others] == pytest.approx(
        [min(1.0, 2 * known(single.difference.p_value))] * 2
    )


def test_scores_of_unequally_many_usable_answers_are_not_compared(report: Report) -> None:
    """With alpha = 10, two unrelated answers have a higher score than five: a model that refuses is no steadier one."""
    questions = [MoralQuestion(str(i), "Is it right?") for i in range(9)]
    settings = SemanticScoringSettings("file", "encoder", "r", "sage", 10.0, 0.5, "answer", 5, "e")
    full = [QuestionScore("alder", question.id, "answer", "sage", 0.15, 5) for question in questions]
    refusing = [
        QuestionScore("birch", question.id, "answer", "sage", 0.25 if i < 3 else 0.15 + i / 1000, 2 if i < 3 else 5)
        for i, question in enumerate(questions)
    ]
    [row] = build_difference_rows(
        ["alder", "birch"], ScoreTable(questions, [*full, *refusing], settings), report.sampling
    )
    assert row.difference.n == 6
    assert row.difference.value == pytest.approx(0.0055)
    fewer = [replace(score, n=2) for score in refusing]
    [row] = build_difference_rows(["alder", "birch"], ScoreTable(questions, [*full, *fewer], settings), report.sampling)
    assert (row.difference.value, row.difference.reason) == (None, NO_EQUAL_SIZE_REASON)
