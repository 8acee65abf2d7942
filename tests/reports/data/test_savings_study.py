"""The savings study of a full audit, and its refusal for an audit that asked less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.errors import UsageError
from auditor.reports.data.report_source import load_source
from auditor.reports.data.savings_study import list_sampling_plans, run_savings_study
from auditor.reports.output import render_document
from auditor.reports.sections.experiments.sampling import build_savings_document
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.known import known
from tests.support.synthetic_audit import populate


def test_savings_study_compares_reduced_plans_with_the_full_plan(db: Database) -> None:
    audit = populate(db, models=5, countries=8, topics=8, samples=5)
    study = run_savings_study(db, load_source(db, audit.name))
    assert (study.models, study.samples) == (5, 5)
    rows = {row.name: row for row in study.rows}
    judges = rows["2 judges a trace"]
    assert (judges.direct, judges.shift, judges.largest, judges.same_tiers) == (1, 0, 0, 1)
    assert judges.review == pytest.approx(0.5, abs=0.001)
    assert rows["adaptive panels"].same_winners == 1
    loose, strict = rows["tolerance 0.1"], rows["tolerance 0.02"]
    assert loose.direct < strict.direct < 1
    assert loose.largest >= strict.largest > 0
    both = rows["2 judges and tolerance 0.02"]
    assert both.calls < min(strict.calls, judges.calls)
    text = render_document(build_savings_document(study), "markdown")
    assert "2 judges a trace" in text
    assert "stays within 0.01" in text


def test_conflicts_have_no_outcome_without_verdicts(db: Database) -> None:
    audit = populate(db, models=3, countries=5, topics=5, samples=3)
    verdicts = results.load_verdicts(db, audit.id)
    save_records(
        db, audit.id, [replace(verdict, outcome=Outcome.REFUSED, ruling=None, aspects={}) for verdict in verdicts]
    )
    study = run_savings_study(db, load_source(db, audit.name))
    assert {row.same_winners for row in study.rows} == {None}


def test_a_savings_study_of_a_reduced_audit_is_refused(db: Database) -> None:
    audit = populate(db, models=3, countries=5, topics=5, samples=3)
    config = AuditConfig.model_validate_json(known(audit.config))
    reduced_config = config.model_copy(update={"panel": config.panel.model_copy(update={"judges_per_trace": 1})})
    survey = audits.load_audit_survey(db, audit)
    audits.save_audit(
        db, name=audit.name, config=reduced_config.model_dump_json(), config_hash="other", survey=survey, environment={}
    )
    with pytest.raises(UsageError, match="already asked fewer questions"):
        run_savings_study(db, load_source(db, audit.name))


@pytest.mark.parametrize("n_models", [2, 3, 20])
@pytest.mark.parametrize("n_samples", [1, 3, 4])
def test_each_plan_is_listed_once_and_is_what_its_name_says(n_models: int, n_samples: int) -> None:
    plans = list_sampling_plans(n_models, n_samples)
    settings = [(plan.judges_per_trace, plan.adaptive, plan.tolerance, plan.target_width) for plan in plans]
    assert len(set(settings)) == len(settings) > 0
    assert all(plan.tolerance is not None for plan in plans if "tolerance" in plan.name)
    assert any(plan.tolerance is not None for plan in plans) is (n_samples > 3)
