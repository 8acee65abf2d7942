"""Small audits that use providers' batch APIs, and what is checked of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, Price
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.report_schema import Report
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY_VARIABLE, config, with_models
from tests.support.fake_server import FakeServer
from tests.support.fake_vertex import BUCKET, FakeVertex
from tests.support.google_machine import google_machine
from tests.support.killed_runs import run_until
from tests.support.notices import NoticeRecorder

BATCH = {"poll_s": 0.05, "quiet_s": 0.2, "least": 1, "bucket": f"gs://{BUCKET}/audits"}
CALLS, DIRECT_CALLS = 24, 12
DISCOVERIES = 2
"""Calls that are sent individually, one to each model: they find out what it accepts."""
BATCHED_CALLS = DIRECT_CALLS - DISCOVERIES
"""Calls of an audit without judges that are submitted in batches."""
PRICE = Price(input=10.0, output=100.0)
"""At which an answer costs $0.003 by itself, and half of that in a batch."""


class BatchServer(FakeServer):
    batches: FakeVertex


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Credentials of a Google machine, which the scripted server may have."""
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1,GOOGLE_CREDENTIALS@127.0.0.1")
    with google_machine(monkeypatch, tmp_path, lambda: "ya29.token"):
        yield


def small(server: FakeServer, provider: str = "openai", **changes: Any) -> AuditConfig:
    """Config of 2 models, 3 cells and 2 samples, where the other model judges every trace."""
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ["divorce"]}
    audit = config(server.url, 2, survey=survey, probes={"direct": {"samples": 2}}, **changes)
    api_base = server.url.removesuffix("/v1") + {"openai": "/v1", "gemini": "/v1beta"}.get(provider, "")
    # litellm sends a schema to those of Gemini's models that it knows.
    names = {"a": "gemini-2.5-flash", "b": "gemini-2.5-pro"}
    models = []
    for m in audit.models:
        is_google = provider in ("gemini", "vertex_ai")
        model = f"{provider}/{names[m.model[-1]]}" if is_google else m.model.replace("openai", provider)
        key = None if provider == "vertex_ai" else m.api_key
        models.append(m.model_copy(update={"model": model, "api_base": api_base, "api_key": key}))
    return audit.model_copy(update={"models": models})


def batched(server: FakeServer, provider: str = "openai", **batch: Any) -> AuditConfig:
    """Config of that audit without judges and in batches; `batch` replaces keys of the section."""
    return small(server, provider, judges=[], batch=BATCH | batch)


def priced(audit: AuditConfig) -> AuditConfig:
    return with_models(audit, price=PRICE)


def run_with_notices(audit: AuditConfig, storage: str) -> tuple[Report, list[str]]:
    """Run an audit; returns its report and the notices of the run."""
    progress = NoticeRecorder()
    return run_audit(audit, storage=storage, progress=progress).report(), progress.notes


def run_until_submitted(audit: AuditConfig, storage: str) -> None:
    """Run an audit in a process that is killed when both models' batches are submitted."""
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9


def waiting_batches(storage: str) -> list[dict[str, Any]]:
    with open_database(storage, create=False) as db:
        waiting: list[dict[str, Any]] = load_audit_status(db, audits.get_audit(db, "scripted"))["batches"]
        return waiting


def assert_none_is_submitted_twice(server: BatchServer, n_calls: int = BATCHED_CALLS) -> None:
    """Check that a number of calls was submitted in batches, each once."""
    assert len(server.batches.keys) == len(set(server.batches.keys)) == n_calls


def assert_all_is_answered(report: Report) -> None:
    """Check that every direct question has a usable answer."""
    assert report.coverage.total[0].ok == DIRECT_CALLS
