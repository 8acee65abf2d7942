"""Answers in several designs give the audit's report figures of their own, and leave all others as they are."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, Outcome, Survey
from auditor.domain.audit_records import DesignAnswer, PlannedRun
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.data.robustness import average_samples
from auditor.reports.document import Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.report import build_report_document
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import save_experiment
from tests.reports.conftest import survey_of
from tests.support.synthetic_audit import populate

SHIFTS = {"1": 0.0, "2": 0.1, "3": 0.3}
"""How far each wording moves the scores of a perfect model."""


def list_records(survey: Survey, model: str) -> list[DesignAnswer]:
    return [
        DesignAnswer(run, model, cell, 0, Outcome.OK, score + shift - (shift if score > 0.5 else 0) * 2)
        for run, shift in enumerate(SHIFTS.values())
        for cell, score in survey.scores.items()
    ]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    """The report of an audit before and after it is asked in three wordings."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('designs')}/a.db") as db:
        audit = populate(db)
        before = build_report(db, audit.name)
        survey = audits.load_audit_survey(db, audit)
        runs = [
            PlannedRun(i, {"wording": name, "role": "none"}, tuple(survey.scores), 1) for i, name in enumerate(SHIFTS)
        ]
        save_experiment(db, audit.id, runs)
        save_experiment(db, audit.id, list_records(survey, before.alignment[0].model))
        return before, build_report(db, audit.name)


def test_figures_over_designs_have_a_key_of_their_own(reports: tuple[Report, Report]) -> None:
    before, after = reports
    assert before.designs is None
    assert after.designs is not None
    assert (after.designs.runs, after.designs.choices) == (3, {"wording": ["1", "2", "3"]})
    [row] = after.designs.averages
    assert row.mae.value == pytest.approx(sum(SHIFTS.values()) / 3)
    assert row.lowest_mae == pytest.approx(0)
    assert row.highest_mae == pytest.approx(0.3)
    assert "wording" not in row.mae.resampled  # three are too few to be a sample of wordings
    assert after.alignment == before.alignment


def test_page_one_has_one_line_on_choices_that_are_in_no_interval(reports: tuple[Report, Report]) -> None:
    lines = [[line for line in list_cautions(report) if "choices of the design" in line] for report in reports]
    assert list(map(len, lines)) == [1, 1]
    model = reports[1].alignment[0].model
    assert lines[1] == [
        f"Intervals do not include choices of the design (wording). In 3 designs the MAE is: {model} 0.00 to 0.30."
    ]


def test_the_report_has_a_table_of_figures_over_designs(reports: tuple[Report, Report]) -> None:
    tables = [
        [block for block in iterate_blocks(build_report_document(report)) if isinstance(block, Table)]
        for report in reports
    ]
    assert ["design-averages" in {table.id for table in group} for group in tables] == [False, True]


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
