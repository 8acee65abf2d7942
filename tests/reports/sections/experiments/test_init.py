"""What the documents of experiments share: findings claim only what intervals show, and plots stay readable."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.sections.experiments import (
    MAX_PLOTTED_ROWS,
    build_experiment_document,
    count_finding,
    plot_estimates,
)
from tests.reports.sections.node_text import text_of

ESTIMATE = Estimate(0.2, 9, 0.1, 0.3)
UNKNOWN = Estimate(None, 0, reason="nothing was measured")


@pytest.mark.parametrize(
    ("names", "n_total", "finding"),
    [
        (["a"], 3, "1 of 3 judges is shown to prefer a side: a."),
        (["a", "b"], 3, "2 of 3 judges are shown to prefer a side: a, b."),
        ([], 1, "No judge is shown to prefer a side (1 judge measured)."),
        ([], 0, ""),
    ],
)
def test_a_count_names_those_with_the_property(names: list[str], n_total: int, finding: str) -> None:
    assert text_of(count_finding(names, n_total, "judge", "prefer a side")) == finding


def test_findings_are_joined_and_a_document_without_any_says_so() -> None:
    document = build_experiment_document("x", "drift", ["A.", [], ["B", "."]], [], "Nothing.")
    assert (document.title, text_of(document.opening)) == ("x: drift", "A. B.lead")
    assert "Nothing." in text_of(build_experiment_document("x", "drift", [[]], [], "Nothing.").opening)


def test_only_known_values_are_plotted_and_not_too_many() -> None:
    [figure] = plot_estimates("plot", "Shift", [("a", ESTIMATE), ("b", UNKNOWN)], "Difference", table_id="t")
    assert figure.description == "a 0.20 (0.10 to 0.30)"
    assert not plot_estimates("plot", "Shift", [("b", UNKNOWN)], "Difference", table_id="t")
    rows = [(str(i), ESTIMATE) for i in range(MAX_PLOTTED_ROWS + 1)]
    assert not plot_estimates("plot", "Shift", rows, "Difference", table_id="t")
