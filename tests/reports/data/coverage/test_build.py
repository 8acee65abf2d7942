"""Planned = usable + lost by cause + missing, in total and by model, country, topic and judge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from auditor.config import CheckSection
from auditor.domain import Trace
from auditor.imports.recorded_audits import import_scores as import_file
from auditor.reports.data.coverage.build import build_coverage_report
from auditor.reports.data.coverage.counts import CoverageReport
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.reports.sections.caution import list_cautions
from auditor.storage import audits, results
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of
from auditor.surveys import load_survey
from tests.reports.conftest import import_scores
from tests.support.report_changes import change
from tests.support.synthetic_audit import populate


def coverage_of(db: Database, audit_name: str) -> CoverageReport:
    """The coverage of an audit without probes of their own."""
    return build_coverage_report(load_source(db, audit_name), [], {})


@pytest.mark.parametrize("side", ["models", "countries", "topics", "judges"])
def test_every_breakdown_adds_up_to_the_total(report: Report, side: str) -> None:
    for total in report.coverage.total:
        rows = [r for r in getattr(report.coverage, side) if r.stage == total.stage]
        if side == "judges" and total.stage == "direct":
            assert rows == []
            continue
        assert sum(row.planned for row in rows) == total.planned
        assert sum(row.ok for row in rows) == total.ok
        assert sum((Counter(row.losses) for row in rows), Counter()) == Counter(total.losses)


def test_samples_not_asked_yet_are_missing(db: Database) -> None:
    audit = populate(db, name="broken")
    trace_table = table_of(Trace)
    delete_egypt = trace_table.delete().where(trace_table.c.model == "birch", trace_table.c.country == "Egypt")
    db.write(lambda connection: connection.execute(delete_egypt))
    lost = 3 * sum(c.country == "Egypt" for c in audits.load_audit_survey(db, audit).scores)
    direct = [row for row in coverage_of(db, "broken").models if row.stage == "direct"]
    assert {r.name: r.missing for r in direct} == {"alder": 0, "birch": lost, "cedar": 0}


def test_empty_scores_are_missing_and_gates_do_not_pass_on_low_coverage(db: Database) -> None:
    truth = {(f"c{i}", t): 0.1 * i - 0.2 * j for i in range(13) for j, t in enumerate("abcdefghij")}
    scores = {("m", *cell): s if i < 8 else None for i, (cell, s) in enumerate(truth.items())}
    report = import_scores(db, truth, {**scores, ("n", "c1", "a"): None})
    rows = {row.name: (row.ok, row.missing, row.planned) for row in report.coverage.models}
    assert rows == {"m": (8, 122, 130), "n": (0, 1, 1)}
    check = check_report(report, CheckSection(min_pearson=0.5))
    assert check.exit_code == 4
    assert "8 of 130 answers are usable" in str(check)
    assert any("of the planned answers" in caution for caution in list_cautions(report))


def test_the_samples_in_an_imported_file_were_planned_for_each_method(db: Database, tmp_path: Path) -> None:
    survey = load_survey("wvs7-sample")
    cells = list(survey.scores)
    rows = [f'm,{c.country},"{c.topic}",direct,0.1,{k}' for c in cells[1:] for k in range(3)]
    rows += [f'm,{cells[0].country},"{cells[0].topic}",direct,0.1,{k}' for k in range(5)]
    rows += [f'm,{c.country},"{c.topic}",other,0.1,0' for c in cells[:4]]
    scores_path = tmp_path / "scores.csv"
    scores_path.write_text("model,country,topic,method,score,sample\n" + "\n".join(rows) + "\n", encoding="utf-8")
    import_file(scores_path, survey="wvs7-sample", audit="own", storage=db.url)
    samples_by_method = {row.method: (row.ok, row.planned) for row in coverage_of(db, "own").models}
    n = len(cells)
    assert samples_by_method == {"direct": (3 * n + 2, 3 * n + 2), "other": (4, 4)}
    assert verify_audit(db, "own").is_consistent


def test_finish_reasons_that_are_not_documented_are_named(db: Database, report: Report) -> None:
    audit = populate(db, name="reasons")
    answer_table = table_of(StoredAnswer)
    keys = [x.key for x in results.load_traces(db, audit.id) if x.model == "birch" and x.outcome.is_answer][:3]
    reasons = ["brand <new>", "brand <new>", "MAX_TOKENS"]
    changes = [
        answer_table.update().where(answer_table.c.key == k).values(finish_reason=r)
        for k, r in zip(keys, reasons, strict=True)
    ]
    db.write(lambda connection: [connection.execute(change) for change in changes])
    coverage = coverage_of(db, "reasons")
    [row] = coverage.undocumented_finish_reasons
    assert (row.name, row.reason, row.answers) == ("birch", "brand <new>", 2)
    note = "Some finish reasons are not documented: {}: “brand &lt;new&gt;” (2 answers)"
    assert note.format("<bdi>birch</bdi>") in render_report(change(report, coverage=coverage), "html")
