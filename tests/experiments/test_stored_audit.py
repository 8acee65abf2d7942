"""What an experiment requires of an audit, and the error for an audit that lacks it."""

from __future__ import annotations

import pytest

from auditor.errors import UsageError
from auditor.experiments.judges import bias, planted
from auditor.experiments.sampling import direct_temperature, samples
from auditor.experiments.stored_audit import Experiment, ExperimentContext
from auditor.probes.semantic.experiments.runs import rules
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.fake_server import FakeServer
from tests.support.synthetic_audit import populate


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (planted, "audit 'imported' has no judges to ask"),
        (bias, "audit 'imported' has no judges to ask"),
        (rules, "audit 'imported' has asked no moral questions"),
        (samples, "audit 'imported' has no direct samples"),
        (direct_temperature, "audit 'imported' has no direct samples"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_imported_audit_has_nothing_to_ask(storage: str, experiment: Experiment, message: str) -> None:
    with open_database(storage) as db:
        survey = audits.load_audit_survey(db, populate(db, models=2, countries=5, topics=5, samples=1))
        audits.save_audit(db, name="imported", config=None, config_hash=None, survey=survey, environment={})
    with pytest.raises(UsageError, match=message):
        experiment(ExperimentContext(storage), "imported")


@pytest.mark.parametrize(
    ("direct", "message"),
    [({"samples": 8, "tolerance": 0.05}, "stopped asking early"), (None, "has no direct samples")],
    ids=["open-ended", "no direct scores"],
)
def test_an_audit_without_equal_samples_is_refused_before_a_model_is_asked(
    server: FakeServer, storage: str, direct: dict[str, object] | None, message: str
) -> None:
    probes = {"direct": direct} if direct else {"semantic": {"limit": 1}}
    audit = config(server.url, 2, judges=[], probes=probes, embedding={"model": "all-MiniLM-L6-v2"})
    with open_database(storage) as db:
        survey = audits.load_audit_survey(db, populate(db, models=2, countries=5, topics=5, samples=1))
        audits.save_audit(
            db, name=audit.name, config=audit.model_dump_json(), config_hash="x", survey=survey, environment={}
        )
    experiments: dict[Experiment, float] = {samples: 9, direct_temperature: 0.1}
    for experiment, setting in experiments.items():
        with pytest.raises(UsageError, match=message):
            experiment(ExperimentContext(storage), audit.name, [setting], ask=True)
    assert not server.requests


def test_an_audit_without_judges_is_refused(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, 2, judges=[], survey=FOUR_CELLS), storage=storage)
    n_requests = len(server.requests)
    with pytest.raises(UsageError, match=r"has no judges to ask\. Name one that was run with `judges`"):
        planted(ExperimentContext(storage), "scripted")
    assert len(server.requests) == n_requests
