"""Savings are reported for finished audits, by stage, relative to asking everything."""

from __future__ import annotations

import pytest

from auditor.config import AuditConfig
from auditor.reports.data.build import build_report
from auditor.storage import audits
from auditor.storage.database import Database
from tests.support.synthetic_audit import populate


@pytest.mark.parametrize(("stage", "is_reported"), [(audits.FINISHED, True), ("review", False)])
def test_savings_are_reported_only_for_finished_audits(db: Database, stage: str, is_reported: bool) -> None:
    audit = populate(db, models=3, countries=5, topics=5, samples=3, judges=1)
    assert audit.config is not None
    config = AuditConfig.model_validate_json(audit.config)
    assert build_report(db, audit.name).savings == []
    panel = config.panel.model_copy(update={"judges_per_trace": 1})
    partial_config = config.model_copy(update={"panel": panel}).model_dump_json()
    audits.save_audit(
        db,
        name=audit.name,
        config=partial_config,
        config_hash=audit.config_hash,
        survey=audits.load_audit_survey(db, audit),
        environment={},
    )
    audits.set_stage(db, audit.id, stage)
    report = build_report(db, audit.name)
    assert len(report.savings) == is_reported
    for row in report.savings:
        n_verdicts = sum(r.ok + sum(r.losses.values()) for r in report.coverage.total if r.stage == "review")
        assert (row.stage, row.made, row.means) == ("review", n_verdicts, ["panel.judges_per_trace = 1"])
        assert row.full == pytest.approx(2 * row.made, abs=1)
