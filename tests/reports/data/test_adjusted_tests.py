"""P-values are adjusted for all tests of their family, in every part of a report; a test is significant only then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.paired import paired_difference
from auditor.probes.semantic.figures.experiment_rows import RuleFollowingRow
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_schema import Report
from tests.probes.semantic.experiments.test_sections_section_consistency import make_mean
from tests.support.families_of_tests import check_families


def make_row(model: str, p_value: float | None, change: Tested | None = None) -> RuleFollowingRow:
    return RuleFollowingRow(
        model=model,
        before=make_mean(0.5),
        after=make_mean(0.5),
        change=change or Tested(0.1, 9, 0.0, 0.2, p_value=p_value),
    )


def test_rows_without_a_test_are_not_counted() -> None:
    rows = adjust_rows(
        [make_row("a", 0.02), make_row("b", None), make_row("c", 0.5), make_row("d", 0.01)], "change", "f"
    )
    assert [row.model for row in rows] == ["a", "b", "c", "d"]
    assert [row.change.p_value for row in rows] == [0.02, None, 0.5, 0.01]
    assert [row.change.adjusted_p_value for row in rows] == [pytest.approx(0.04), None, 0.5, pytest.approx(0.03)]
    assert [row.change.is_significant for row in rows] == [True, False, False, True]
    assert adjust_rows([], "change", "f") == []


def test_equal_models_are_rarely_significant_and_a_planted_one_is() -> None:
    rng = np.random.default_rng(1)
    n_audits, n_models, questions = 20, 20, {"question": np.arange(30)}

    def simulate(planted: float) -> list[RuleFollowingRow]:
        """Models of which the first becomes more consistent."""
        differences = [
            paired_difference(np.zeros(30), rng.normal(planted * (i == 0), 0.1, 30), questions, bounds=(-2.0, 2.0))
            for i in range(n_models)
        ]
        return adjust_rows([make_row(f"m{i}", d.p_value, d) for i, d in enumerate(differences)], "change", "f")

    audits = [simulate(0.0) for _ in range(n_audits)]
    expected = stats.binom.ppf(0.99, n_audits, 0.05)
    assert sum(any(row.change.is_significant for row in rows) for rows in audits) <= expected
    assert sum(any((row.change.ci_low or 0.0) > 0 for row in rows) for rows in audits) > expected
    assert [row.model for row in simulate(0.2) if row.change.is_significant] == ["m0"]


@pytest.mark.parametrize("name", ["demo", "embedded", "synthetic"])
def test_holm_of_all_raw_p_values_of_a_family_gives_the_adjusted_ones(name: str, report: Report) -> None:
    stored = Path(__file__).parents[2] / "e2e" / "golden" / "reports" / f"{name}.json"
    text = report.model_dump_json() if name == "synthetic" else stored.read_text(encoding="utf-8")
    document = json.loads(text)
    # Findings repeat tests of countries and topics, which are counted there.
    findings = [row["mae_ratio"] for row in document.pop("cultural_findings")["rows"] if row["mae_ratio"]]
    places = [row["mae_ratio"] for row in (*document["countries"], *document["topics"])]
    assert all(finding in places for finding in findings)
    # Stored reports have no `order`, which is among the biases. The likeliest wave and tolerance is one test (Westfall
    # and Young), and models are counted by Bonferroni.
    not_checked = () if name == "synthetic" else ("biases of judges", "recall of published figures")
    assert len(check_families(document, not_checked)) >= 4
