"""Whether a model may replace one of the people who answered the items of a task."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from auditor.domain import AnswerKind, Cell
from auditor.metrics.annotator_test import alternative_annotator_test
from auditor.reports.data.judge_quality.people import EPSILON_BY_RATER_KIND
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.task.build import TaskAnswerSet
from auditor.reports.data.task.schema import RaterReport, RaterTestRow
from auditor.tasks import most_common_answer


def build_rater_report(answers: TaskAnswerSet, all_answers: Mapping[tuple[str, Cell, int], str]) -> RaterReport | None:
    """Test each model against the people who answered; None without people.

    Scores are compared by their distance, other answers by equality, as the authors of the test do (Calderon, Reichart
    & Dror, ACL 2025). A model's answer to an item is its most frequent one, or its mean score.

    Args:
        answers: the models' answers.
        all_answers: usable answers by model or person, item and sample.
    """
    people = answers.task.people
    if not people:
        return None
    is_score = answers.task.kind is AnswerKind.SCORE
    codes: dict[str, float] = {}

    def encode(sample_answers: list[str]) -> float:
        if not sample_answers:
            return np.nan
        if is_score:
            return fmean(map(float, sample_answers))
        answer = most_common_answer(sample_answers)
        return np.nan if answer is None else codes.setdefault(answer, float(len(codes)))

    by_author: dict[tuple[str, Cell], list[str]] = {}
    for (author, cell, _), answer in sorted(all_answers.items()):
        by_author.setdefault((author, cell), []).append(answer)
    cells = [item.cell for item in answers.task.items.values()]

    def encode_all(author: str) -> FloatArray:
        return np.array([encode(by_author.get((author, cell), [])) for cell in cells])

    labels = np.array([encode_all(name) for name in people])
    tests = []
    for model in answers.models:
        model_labels = encode_all(model)
        for epsilon in EPSILON_BY_RATER_KIND.values():
            test = alternative_annotator_test(
                labels, model_labels, epsilon=epsilon, scoring="neg_rmse" if is_score else "accuracy"
            )
            tests.append(
                RaterTestRow(
                    model=model,
                    epsilon=epsilon,
                    passed=test.passed,
                    winning_rate=test.winning_rate,
                    advantage_probability=test.advantage_probability,
                    items=test.n,
                    reason=test.reason,
                )
            )
    n_by_item = (~np.isnan(labels)).sum(axis=0)
    return RaterReport(
        people=list(people), answers=int(n_by_item.sum()), items=int((n_by_item >= 2).sum()), tests=tests
    )
