"""Ray workers on two hosts and on this machine: results equal those of one process even if some die; no key leaks.

In `make test` a host dies and a run drains; in `make faults` a driver, a worker of this machine and Ray itself die, and
a cluster without a token is refused.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from auditor.config import AuditConfig
from auditor.errors import UsageError
from auditor.models.limiter import RATE_BURST_S
from auditor.reports.data.verification import verify_audit
from auditor.run import open_audit, run_audit
from auditor.run.ray_worker import MAX_WAITING_REPLIES
from auditor.storage.database import Database, open_database
from tests.e2e.test_killed import small
from tests.e2e.test_run import exported, question, stored
from tests.e2e.test_team import report
from tests.support.audit_configs import KEY, KEY_VARIABLE, config, with_models
from tests.support.fake_server import FakeServer, answer
from tests.support.killed_runs import needs_all_faults
from tests.support.patience import PATIENCE_S
from tests.support.postgres_server import running_or_skip
from tests.support.ray_nodes import (
    ADDRESS,
    TOKEN,
    TRUSTED_SERVERS,
    Clusters,
    Host,
    clusters,
    descendants,
    environment,
    head,
)
from tests.support.stored_rows import count_attempts

SECRETS = (KEY, TOKEN)
DUMP = """
import sys, ray
from ray._private.state import actors, jobs
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list
from tests.support.patience import PATIENCE_S
ray.init(address=sys.argv[1], log_to_driver=False)
print(actors(), jobs())
for namespace in (None, b"fun", b"job", b"session", b"package", b"cluster"):
    for key in _internal_kv_list(b"", namespace=namespace):
        print(key, _internal_kv_get(key, namespace=namespace))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Clusters]:
    """A running Ray cluster of two hosts with a token."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")  # seconds: not during collection
    with clusters() as running_clusters:
        yield running_clusters


@pytest.fixture
def server(nodes: Clusters) -> Iterator[FakeServer]:
    """A scripted server that the hosts reach."""
    with FakeServer(address=nodes.gateway) as running_server:
        yield running_server


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", TRUSTED_SERVERS)


def start(
    audit: AuditConfig, url: str, folder: Path, nodes: Clusters | None = None, host: Host | None = None, **changes: str
) -> subprocess.Popen[str]:
    """Start `auditor run` on a cluster's first or another host, without an API key; or with one of this machine."""
    file = folder / "audit.yaml"
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    command = [sys.executable, "-m", "auditor", "run", str(file), "--storage", url, "--engine", "ray"]
    env = environment(COLUMNS="200", **changes)
    if nodes is not None:
        command = (host or nodes.first.host).command(*command, "--ray-address", nodes.address)
        del env[KEY_VARIABLE]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)


def wait_for(server: FakeServer, requests: int, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(server.requests) < requests:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline, "the run asks nothing"
        time.sleep(0.01)


def run_locally(audit: AuditConfig, server: FakeServer, folder: Path) -> tuple[str, Counter[str]]:
    """Run an audit in this process; returns its database and what it asked."""
    storage = f"sqlite:///{folder / 'local.db'}"
    run_audit(audit, storage=storage)
    questions = Counter(map(question, server.requests))
    server.requests.clear()
    return storage, questions


def assert_same_results(url: str, local_storage: str, folder: Path) -> None:
    """Check that the audit of one database equals that of the other, and that its records are intact."""
    assert stored(url) == stored(local_storage)
    assert report(url) == report(local_storage)
    assert exported(url, folder / "exported") == exported(local_storage, folder / "exported-local")
    assert open_audit("scripted", storage=url).report().cost.lost == 0  # each has a recorded attempt
    with open_database(url) as db:
        assert verify_audit(db, "scripted").is_consistent


def assert_few_are_repeated(server: FakeServer, local_questions: Counter[str], url: str, in_flight: int) -> None:
    """Check that at most the requests in flight and 20 more were sent again, and each is recorded as perhaps paid."""
    questions = Counter(map(question, server.requests))
    assert set(questions) == set(local_questions)
    with open_database(url) as db:
        n_lost = count_lost_attempts(db)
    assert sum((questions - local_questions).values()) <= n_lost <= in_flight + MAX_WAITING_REPLIES


def assert_one_short_line(output: str) -> None:
    """Check that one short line says that a worker died, and that the terminal shows no message of Ray."""
    assert len([line for line in output.splitlines() if " died; " in line]) == 1, output
    assert_short(output)


def assert_short(output: str) -> None:
    """Check that the terminal shows no message of Ray."""
    assert "Worker exit type" not in output
    assert "marked dead" not in output
    assert "Raylet is terminated" not in output
    assert max(map(len, output.splitlines())) < 250, output


@needs_all_faults
def test_a_killed_driver_is_replaced_on_another_host(server: FakeServer, nodes: Clusters, tmp_path: Path) -> None:
    audit = small(server)
    local_storage, local_questions = run_locally(audit, server, tmp_path)
    server.script = lambda request: replace(answer(request), delay_s=0.1)
    with running_or_skip(keeps_commits=True, address=nodes.gateway) as postgres:
        url = f"{postgres.url(postgres.database())}?sslmode=disable"
        running = start(audit, url, tmp_path, nodes)
        wait_for(server, 20, running)
        running.kill()
        running.communicate()
        n_before, lost = len(server.requests), sum(m.max_concurrency for m in audit.models)
        stdout = start(audit, url, tmp_path, nodes, nodes.second.host).communicate(timeout=PATIENCE_S)[0]

        assert stored(url) == stored(local_storage), stdout
        assert set(map(question, server.requests)) == set(local_questions)
        assert len(server.requests) - n_before <= len(local_questions) - n_before + lost
        with open_database(url) as db, db.read() as connection:
            query = "SELECT count(*), count(DISTINCT key) FROM attempt"
            n_attempts, n_keys = connection.exec_driver_sql(query).one()
        assert n_attempts == n_keys == len(local_questions)  # a recorded answer that is asked again has two


def test_after_a_host_dies_results_are_as_of_one_process(server: FakeServer, nodes: Clusters, tmp_path: Path) -> None:
    audit, url = small(server), f"sqlite:///{tmp_path / 'ray.db'}"
    local_storage, local_questions = run_locally(audit, server, tmp_path)
    server.script = lambda request: replace(answer(request), delay_s=0.1)

    running = start(audit, url, tmp_path, nodes)
    wait_for(server, 15, running)
    nodes.second.kill()
    stdout = running.communicate(timeout=PATIENCE_S)[0]

    assert running.returncode == 0, stdout
    assert_one_short_line(stdout)
    assert_same_results(url, local_storage, tmp_path)
    assert_few_are_repeated(server, local_questions, url, sum(m.max_concurrency for m in audit.models))


@needs_all_faults
def test_a_killed_worker_of_this_machine_is_replaced(server: FakeServer, tmp_path: Path) -> None:
    audit, url = small(server), f"sqlite:///{tmp_path / 'ray.db'}"
    local_storage, local_questions = run_locally(audit, server, tmp_path)
    server.script = lambda request: replace(answer(request), delay_s=0.1)

    running = start(audit, url, tmp_path)
    wait_for(server, 15, running)
    os.kill(find_process(running.pid, "ray::WorkerActor"), signal.SIGKILL)
    stdout = running.communicate(timeout=PATIENCE_S)[0]

    assert running.returncode == 0, stdout
    assert_one_short_line(stdout)
    assert_same_results(url, local_storage, tmp_path)
    assert_few_are_repeated(server, local_questions, url, sum(m.max_concurrency for m in audit.models))


@needs_all_faults
def test_a_run_ends_with_advice_if_ray_stops_on_this_machine(server: FakeServer, tmp_path: Path) -> None:
    audit, url = small(server), f"sqlite:///{tmp_path / 'ray.db'}"
    local_storage, _ = run_locally(audit, server, tmp_path)
    server.script = lambda request: replace(answer(request), delay_s=0.1 if request.number < 30 else 600.0)

    running = start(audit, url, tmp_path)
    wait_for(server, 30, running)
    os.kill(find_process(running.pid, "ray::RuntimeEnvAgent"), signal.SIGKILL)  # Ray stops with it
    stdout = running.communicate(timeout=PATIENCE_S)[0]
    server.script = answer

    assert running.returncode == 1, stdout
    assert "Ray has stopped on this machine" in stdout
    assert_short(stdout)
    run_audit(audit, storage=url)
    assert_same_results(url, local_storage, tmp_path)


def find_process(parent: int, title: str) -> int:
    """Process id of a process below another one, by the beginning of its command line."""
    pids = [pid for pid in descendants(parent) if Path(f"/proc/{pid}/cmdline").read_text().startswith(title)]
    assert len(pids) == 1, pids
    return pids[0]


def count_lost_attempts(db: Database) -> int:
    """Number of recorded requests whose worker died."""
    with db.read() as connection:
        n_attempts: int = connection.exec_driver_sql(
            "SELECT count(*) FROM attempt WHERE error = 'the process that sent it died' AND outcome = 'server_error'"
        ).scalar_one()
    return n_attempts


def test_keys_are_in_no_log_and_no_table_of_ray(nodes: Clusters, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", DUMP, nodes.address], env=environment(), capture_output=True, text=True, check=True
    )
    assert "Worker" in process.stdout
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    assert any("worker" in path.name for path in files)
    for secret in SECRETS:
        assert secret not in process.stdout
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_one_signal_drains_a_run_whose_workers_share_a_rate_limit_and_another_engine_resumes_it(
    server: FakeServer, nodes: Clusters, tmp_path: Path
) -> None:
    url, rpm, n_samples = f"sqlite:///{tmp_path / 'ray.db'}", 600, 40
    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"]}
    audit = config(server.url, models=1, judges=[], survey=survey, probes={"direct": {"samples": n_samples}})
    audit = with_models(audit, rpm=rpm)
    server.script = lambda request: replace(answer(request), delay_s=0.1)
    running = start(audit, url, tmp_path, nodes)
    wait_for(server, 25, running)
    running.send_signal(signal.SIGINT)
    stdout = running.communicate(timeout=PATIENCE_S)[0]
    assert running.returncode == 130, stdout
    assert "all answers received so far are saved" in stdout
    times = [request.at for request in server.requests]
    assert all(n <= rpm / 60 * (RATE_BURST_S + at - times[0]) + 1 for n, at in enumerate(times))
    with open_database(url) as db:
        assert count_attempts(db) == len(times)
    run_audit(audit, storage=url)
    assert len(server.requests) == len(set(map(question, server.requests))) == n_samples


@needs_all_faults
def test_a_cluster_without_authentication_is_refused(
    server: FakeServer, nodes: Clusters, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with head(nodes.folder, "open", Host(), RAY_AUTH_MODE="disabled") as unlocked:
        address = unlocked.wait_for_output(ADDRESS)
        monkeypatch.setenv("RAY_ADDRESS", address)
        audit = config(server.url).with_run(engine="ray", ray_address=address)
        with pytest.raises(UsageError, match="accepts connections without a token"):
            run_audit(audit, storage=storage)
    assert server.requests == []
