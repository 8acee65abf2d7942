"""Models whose servers accept different things are audited side by side, and the report says what is not comparable."""

from __future__ import annotations

from auditor.domain import Purpose
from auditor.reports.data.build import build_report
from auditor.reports.sections.caution import list_cautions
from auditor.run import run_audit
from auditor.storage.database import open_database
from tests.run.test_ping import NO_SCHEMA, NO_TEMPERATURE, reply
from tests.support.audit_configs import THREE_SAMPLES, config
from tests.support.fake_server import FakeServer


def test_what_servers_accept_is_shown_and_refused_settings_are_not_compared(server: FakeServer, storage: str) -> None:
    server.script = reply  # model b refuses the temperature, c JSON schemas
    run_audit(config(server.url, judges=[], probes=THREE_SAMPLES), storage=storage)
    with open_database(storage) as db:
        report = build_report(db, "scripted")
    capabilities = {row.name: row for row in report.requests.capabilities}
    assert [row.capability.form for row in capabilities.values()] == ["json_schema", "json_schema", "json_object"]
    assert capabilities["model-b"].evidence == "HTTP 400: parameter temperature refused"
    assert capabilities["model-c"].evidence.startswith("HTTP 400: ")
    assert [capabilities[name].capability.dropped_params for name in ("model-a", "model-b")] == [(), ("temperature",)]
    versions = {row.version.name: row.version for row in report.served}
    assert [versions[f"model-{name}"].altered for name in "abc"] == ["", "temperature", ""]
    assert versions["model-c"].form == "json_object"
    assert report.sampling.sampling_settings_differ
    assert report.sampling.refusing_models(Purpose.DIRECT) == ["model-b"]
    assert any("not accepted for model-b (the server’s default temperature)" in text for text in list_cautions(report))
    assert report.requests.form_split == []
    refusals = {(group.name, group.message, group.unusable) for group in report.failures.groups}
    assert refusals == {("model-b", NO_TEMPERATURE, 0), ("model-c", NO_SCHEMA, 0)}
