"""The engine 'ray' but for Ray: workers in this process. test_ray.py has real ones, on two nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor.cli.audit_checks import check_all
from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.errors import UsageError
from auditor.models import weights
from auditor.run import cluster, planned_survey, run_audit
from auditor.run.changes import change_note
from auditor.run.fingerprints import fingerprint
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.audits import KEY, KEY_VARIABLE, config
from tests.e2e.test_replay import log, replayed
from tests.e2e.test_run import question, stored
from tests.fake_server import FakeServer
from tests.postgres import PASSWORD, Postgres
from tests.run.test_crew import Near


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The GPUs of each worker that was hired."""
    found: list[float] = []

    @contextmanager
    def connected(address: str | None) -> Iterator[str]:
        yield "this process"

    def hire(kind: type[Any], *, gpus: float) -> Near:
        found.append(gpus)
        return Near()

    for name, stand_in in (("connected", connected), ("hire", hire), ("hosts", lambda: 2)):
        monkeypatch.setattr(cluster, name, stand_in)
    return found


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgres.schema().replace(f":{PASSWORD}@", "@")


def test_replayed_models_are_answered_here_and_recorded_once(
    server: FakeServer, url: str, storage: str, hired: list[float], tmp_path: Path
) -> None:
    audit = replayed(server, log(tmp_path), others=2, judges="peers")
    run_audit(audit, storage=storage)
    asked = [question(r) for r in server.requests]
    server.requests.clear()
    run_audit(audit.with_run(engine="ray"), storage=url)
    assert stored(url) == stored(storage)
    assert sorted(question(r) for r in server.requests) == sorted(asked)
    assert hired == [0.0, 0.0]
    with open_database(url) as db, db.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatch").scalar_one() == 0


@pytest.mark.slow
def test_a_model_of_a_host_has_a_worker_of_its_own_with_gpus(server: FakeServer, url: str, hired: list[float]) -> None:
    pytest.importorskip("gguf")
    path = str(weights.pull("smollm2-135m"))
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}
    probes = {"direct": {"samples": 1}, "logprob": {"method": "continuation"}}
    base = config(server.url, survey=survey, judges=[]).model_dump(mode="json")
    model = base["models"][0] | {"weights": path}
    run = {"engine": "ray", "gpus": 0.5}
    audit = AuditConfig.model_validate(base | {"models": [model], "probes": probes, "run": run})
    run_audit(audit, storage=url)
    assert sorted(hired) == [0.0, 0.0, 0.5]
    with open_database(url) as db:
        found = results.contrasts(db, audits.get(db, "scripted").id)
    assert found
    assert {contrast.outcome for contrast in found} == {Outcome.OK}
    assert len(server.requests) == 1


def test_where_requests_go_out_from_makes_no_other_audit(server: FakeServer, storage: str) -> None:
    here = config(server.url)
    there = here.with_run(engine="ray", ray_address="10.0.0.1:6379")
    assert there.hash == here.hash
    with open_database(storage) as db:
        made: dict[str, Any] = {"config": here.model_dump_json(), "config_hash": fingerprint(here), "environment": {}}
        saved = audits.save(db, name=here.name, survey=planned_survey(here), **made)
    assert change_note(saved, there, fingerprint(there)) is None


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "auto"])
def test_what_is_no_address_of_a_head_is_refused(server: FakeServer, url: str, address: str) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    with pytest.raises(UsageError, match="is no address"):
        run_audit(config(server.url).with_run(engine="ray", ray_address=address), storage=url)


def test_a_file_and_a_password_are_refused(server: FakeServer, storage: str, postgres: Postgres) -> None:
    audit = config(server.url).with_run(engine="ray")
    with pytest.raises(UsageError, match="cannot share the file"):
        run_audit(audit, storage=storage)
    with pytest.raises(UsageError, match="holds a password") as refused:
        run_audit(audit, storage=postgres.schema())
    assert PASSWORD not in str(refused.value)
    assert not Path(storage.removeprefix("sqlite:///")).exists()


def test_doctor_looks_at_the_cluster_and_leaves_keys_to_its_hosts(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    file = tmp_path / "audit.yaml"
    audit = config(server.url).with_run(engine="ray")
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    found = {check.name: check for check in check_all(file, storage)}
    assert found["cluster"].state == "FAIL"
    assert "cannot share the file" in found["cluster"].found
    assert not any(name.startswith("key of") for name in found)
