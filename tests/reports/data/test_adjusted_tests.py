"""P-values of rows are adjusted for all rows with a test, and a row is significant only after that."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.estimate import Estimate
from auditor.metrics.paired_difference import paired_difference
from auditor.reports.data.adjusted_tests import adjust_rows, is_significant
from auditor.reports.data.semantic.experiment_rows import RuleFollowingRow
from tests.reports.sections.experiments.test_consistency import make_mean


def make_row(model: str, p_value: float | None, change: Estimate | None = None) -> RuleFollowingRow:
    return RuleFollowingRow(
        model=model,
        before=make_mean(0.5),
        after=make_mean(0.5),
        change=change or Estimate(0.1, 9, 0.0, 0.2),
        p_value=p_value,
    )


def test_rows_without_a_test_are_not_counted() -> None:
    rows = adjust_rows([make_row("a", 0.02), make_row("b", None), make_row("c", 0.5), make_row("d", 0.01)])
    assert [row.model for row in rows] == ["a", "b", "c", "d"]
    assert [row.p_value for row in rows] == [0.02, None, 0.5, 0.01]
    assert [row.adjusted_p_value for row in rows] == [pytest.approx(0.04), None, 0.5, pytest.approx(0.03)]
    assert [is_significant(row) for row in rows] == [True, False, False, True]
    assert adjust_rows([]) == []


def test_equal_models_are_rarely_significant_and_a_planted_one_is() -> None:
    rng = np.random.default_rng(1)
    n_audits, n_models, questions = 20, 20, {"question": np.arange(30)}

    def simulate(planted: float) -> list[RuleFollowingRow]:
        """Models of which the first becomes more consistent."""
        differences = [
            paired_difference(np.zeros(30), rng.normal(planted * (i == 0), 0.1, 30), questions, bounds=(-2.0, 2.0))
            for i in range(n_models)
        ]
        return adjust_rows([make_row(f"m{i}", d.p_value, d) for i, d in enumerate(differences)])

    audits = [simulate(0.0) for _ in range(n_audits)]
    expected = stats.binom.ppf(0.99, n_audits, 0.05)
    assert sum(any(map(is_significant, rows)) for rows in audits) <= expected
    assert sum(any((row.change.ci_low or 0.0) > 0 for row in rows) for rows in audits) > expected
    assert [row.model for row in simulate(0.2) if is_significant(row)] == ["m0"]
