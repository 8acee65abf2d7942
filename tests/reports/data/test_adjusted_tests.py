"""P-values are adjusted for all tests of their family, in every part of a report; a test is significant only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.metrics.intervals.estimate import Tested
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
