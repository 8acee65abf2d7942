"""The section on the panel: every estimate of the judges is in a table, and sentences have their figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.domain import Outcome, Verdict
from auditor.metrics.intervals.estimate import Estimate, TestedShare
from auditor.metrics.judges.accuracy import JudgeDifference, missing_difference
from auditor.reports.data.build import build_report
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, List, Paragraph, Section, Table
from auditor.reports.sections.panel import build_panel_section, build_panel_tables, describe_kappa, list_aspects
from auditor.storage import results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, text_of
from tests.support.synthetic_audit import populate

ESTIMATE = TestedShare(value=0.5, n=40, ci_low=0.4, ci_high=0.6)
DIFFERENCE = JudgeDifference(0.2, 40, 0.1, 0.3, resampled=("country", "topic"), p_value=0.01, adjusted_p_value=0.02)


@pytest.fixture
def tested_report(report: Report) -> Report:
    """The report with one row of each test of the judges."""
    judge = report.panel.judges[0].judge
    rows = {
        "guesses": [BlindingCheckRow(judge=judge, what="country", hits=ESTIMATE, chance=0.25)],
        "rewriting": [
            RestatementShiftRow(judge=judge, valid=ESTIMATE, restated=ESTIMATE, shift=ESTIMATE, changed=ESTIMATE)
        ],
        "faults": [
            FaultDetectionRow(judge=judge, fault="norm", detected=ESTIMATE, false_alarms=ESTIMATE, difference=ESTIMATE)
        ],
        "positions": [PositionBiasRow(judge=judge, first=ESTIMATE, stable=ESTIMATE)],
        "own_traces": [SelfReviewRow(judge=judge, valid=ESTIMATE, preference=DIFFERENCE)],
    }
    truth = replace(DIFFERENCE, evidence="truth", label_error_ci_low=0.05, label_error_ci_high=0.3)
    biases = {"padding": replace(DIFFERENCE, evidence="experiment"), "verbosity_against_truth": truth}
    judges = [row.model_copy(update=biases) for row in report.panel.judges]
    return report.model_copy(update={"panel": report.panel.model_copy(update={**rows, "judges": judges})})


def find_estimates(value: object) -> list[Estimate]:
    """All estimates within lists of the report's models."""
    if isinstance(value, Estimate):
        return [value]
    if isinstance(value, list):
        return [estimate for item in value for estimate in find_estimates(item)]
    fields = getattr(type(value), "model_fields", {})
    return [estimate for name in fields for estimate in find_estimates(getattr(value, name))]


def test_every_estimate_of_the_panel_is_in_a_table(tested_report: Report) -> None:
    tables = build_panel_tables(tested_report.panel)
    assert len({table.id for table in tables}) == len(tables) == 13
    cells = [cell for table in tables for row in cells_of(table) for cell in row]
    assert all(len(row) == len(table.columns) for table in tables for row in cells_of(table))
    reference = tested_report.panel.votes[0].differs
    [voting_rules] = [table for table in tables if table.id == "voting-rules"]
    assert [row[0] for row in cells_of(voting_rules) if row[-1] is None] == ["majority"]
    estimates = [estimate for estimate in find_estimates(tested_report.panel) if estimate is not reference]
    assert len(estimates) > 20
    assert all(estimate in cells for estimate in estimates)


def test_the_section_has_peer_agreement_the_certificate_and_the_tables(tested_report: Report) -> None:
    report = tested_report
    section = build_panel_section(report)
    assert section is not None
    assert_consistent(section)
    figure = next(block for block in section.blocks if isinstance(block, Figure))
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert figure.table_id == table.id
    assert [column.title for column in table.columns][4:] == list(list_aspects(report).values())
    certificate, judges = (block for block in section.blocks if isinstance(block, Section))
    sentences, suggestion = certificate.blocks
    assert "auditor review population --sample" in text_of(suggestion)
    assert isinstance(sentences, List)
    assert [text_of(item) for item in sentences.items] == [text.replace("`", "") for text in report.panel.certificate]
    assert judges.blocks[0] == Paragraph(describe_kappa(report.panel))


@pytest.mark.parametrize(
    ("kappa", "words"),
    [
        (
            Estimate(0.26, 50, 0.1, 0.4),
            "Fleiss’ kappa = 0.26, 95% CI 0.10 to 0.40, 50 traces, with ",
        ),
        (
            Estimate(0.26, 50, reason="too few traces"),
            "Fleiss’ kappa = 0.26, 50 traces, no 95% CI: too few traces, with ",
        ),
        (Estimate(None, 0, reason="one judge"), "is not available: one judge."),
    ],
)
def test_kappa_has_its_interval_or_the_reason_why_there_is_none(report: Report, kappa: Estimate, words: str) -> None:
    assert words in describe_kappa(report.panel.model_copy(update={"fleiss_kappa": kappa}))


def test_a_panel_without_verdicts_has_a_section_and_one_without_judges_has_none(report: Report, db: Database) -> None:
    audit = populate(db, name="silent")
    failed = [
        Verdict(verdict.judge, verdict.model, verdict.cell, verdict.sample, Outcome.TIMEOUT)
        for verdict in results.load_verdicts(db, audit.id)
    ]
    save_records(db, audit.id, failed)
    assert build_panel_section(build_report(db, "silent")) is not None
    panel = report.panel.model_copy(update={"judges": []})
    assert build_panel_section(report.model_copy(update={"panel": panel})) is None
    unjudged = report.model_copy(update={"peer_agreement": []})
    assert build_panel_section(unjudged) is not None


def test_missing_estimates_keep_their_reason(report: Report) -> None:
    missing = missing_difference("no other model of its family is judged")
    judges = [row.model_copy(update={"own_family": missing}) for row in report.panel.judges]
    tables = build_panel_tables(report.panel.model_copy(update={"judges": judges}))
    biases = next(table for table in tables if table.id == "judge-biases")
    assert sum(missing in row for row in cells_of(biases)) == len(judges)
