"""Answers in several designs give the report figures of their own, and leave all others as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auditor.domain import Cell, Outcome
from auditor.domain.audit_records import DesignAnswer
from auditor.reports.data.report_schema import Report
from auditor.reports.data.robustness import average_samples
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.report import build_report_document
from tests.reports.conftest import survey_of
from tests.reports.sections.node_text import tables_of


def test_figures_over_designs_have_a_key_and_a_table_and_page_one_has_one_line_on_them(
    whole_report: Callable[[str], Report],
) -> None:
    report, without = (whole_report(kind) for kind in ("designs", "survey"))
    assert (report.designs is not None, without.designs) == (True, None)
    assert (report.designs.runs, report.designs.choices) == (3, {"wording": ["1", "2", "3"]})  # type: ignore[union-attr]
    [row] = report.designs.averages  # type: ignore[union-attr]
    assert [row.mae.value, row.lowest_mae, row.highest_mae] == pytest.approx([0.4 / 3, 0, 0.3])
    assert "wording" not in row.mae.resampled  # three are too few to be a sample of wordings
    lines = [[line for line in list_cautions(r) if "choices of the design" in line] for r in (report, without)]
    assert list(map(len, lines)) == [1, 1]
    assert lines[0] == [
        f"Intervals do not include choices of the design (wording). In 3 designs the MAE is: {row.model} 0.00 to 0.30."
    ]
    assert "design-averages" in tables_of(build_report_document(report))


def test_samples_are_averaged_and_a_cell_without_a_usable_answer_keeps_its_outcome() -> None:
    asked, refused = Cell("SE", "a"), Cell("SE", "b")
    answers = [
        DesignAnswer(0, "oak", asked, 0, Outcome.OK, 0.2),
        DesignAnswer(0, "oak", asked, 1, Outcome.OK, 0.4),
        DesignAnswer(0, "oak", asked, 2, Outcome.REFUSED),
        DesignAnswer(1, "oak", refused, 0, Outcome.REFUSED),
        DesignAnswer(1, "oak", Cell("DE", "a"), 0, Outcome.OK, 0.9),
    ]
    survey = survey_of({asked: 0.1, refused: -0.1})
    assert [(row.run, row.score, row.reference, row.outcome) for row in average_samples(answers, survey)] == [
        (0, pytest.approx(0.3), 0.1, "ok"),
        (1, None, -0.1, "refused"),
    ]
