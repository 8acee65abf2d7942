"""Spans and events of an audit: their content, what they never contain, and a collector that fails."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from auditor.config import AuditConfig, TelemetrySection
from auditor.config.trust import describe_destinations, require_trust, required_bindings
from auditor.domain import (
    Answer,
    AnswerKind,
    Attempt,
    Call,
    Cell,
    Message,
    Outcome,
    Purpose,
    Ruling,
    Task,
    TaskItem,
)
from auditor.errors import ConfigError
from auditor.run import open_audit, run_audit
from auditor.run.telemetry import TracedClient, evaluation_attributes, finish_export, is_sampled, span_ids
from auditor.storage.results import NewResult
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, Reply, answer
from tests.support.local_servers import QuietHandler, serve
from tests.support.notices import NoticeRecorder
from tests.support.synthetic_audit import STARTED

pytest.importorskip("opentelemetry.sdk", reason="the extra 'telemetry' is not installed")

CALL = Call(
    name="gpt", model="azure/gpt-4o", messages=(Message("user", "How justifiable is divorce?"),),
    purpose=Purpose.DIRECT, sample=2, params={"temperature": 0.7, "max_tokens": 400}, schema="judgement",
    server="https://ours.example/v1", cell=Cell("Germany", "divorce"),
)  # fmt: skip
ANSWER = Answer(
    CALL.key, Outcome.OK, text="It is fine.", finish_reason="stop", served_model="gpt-4o-2", prompt_tokens=12,
    completion_tokens=3, cost_usd=None,
    attempts=(
        Attempt(1, STARTED, 0.25, Outcome.RATE_LIMITED, http_status=429, error="slow down"),
        Attempt(2, STARTED, 1.5, Outcome.OK, http_status=200),
    ),
)  # fmt: skip


class FixedAnswerClient:
    async def complete(self, call: Call) -> Answer:
        return ANSWER


async def exported_telemetry(section: TelemetrySection, *new_results: NewResult) -> tuple[list[Any], list[Any]]:
    """Spans and events of one call and the given new results, as the SDK exports them."""
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from auditor.run.opentelemetry_sink import OpenTelemetrySink

    spans, events = InMemorySpanExporter(), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    sink = OpenTelemetrySink(spans, events, "here")
    client = TracedClient(FixedAnswerClient(), sink, "audit", section)
    assert await client.complete(CALL) is ANSWER
    notes: list[str] = []
    finish_export(sink, section, new_results, notes.append)
    assert not notes
    return list(spans.get_finished_spans()), list(events.get_finished_logs())


async def test_a_span_has_the_attributes_of_the_genai_conventions() -> None:
    first, last = (await exported_telemetry(TelemetrySection()))[0]
    assert (first.name, first.kind.name) == ("chat gpt-4o", "CLIENT")
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.temperature": 0.7,
        "gen_ai.request.max_tokens": 400,
        "gen_ai.output.type": "json",
        "server.address": "ours.example",
        "server.port": 443,
        "error.type": "rate_limited",
        "http.response.status_code": 429,
        "auditor.audit": "audit",
        "auditor.attempt": 1,
        "auditor.call.key": CALL.key,
        "auditor.purpose": "direct",
        "auditor.model": "gpt",
        "auditor.sample.index": 2,
        "auditor.cell.country": "Germany",
        "auditor.cell.topic": "divorce",
    }
    assert (first.status.status_code.name, last.status.status_code.name) == ("ERROR", "UNSET")
    assert last.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert last.attributes["gen_ai.usage.input_tokens"] == 12
    assert "auditor.cost_usd" not in last.attributes  # unknown is not zero
    assert "error.type" not in last.attributes
    assert (last.end_time - last.start_time) / 1e9 == pytest.approx(1.5)
    assert last.start_time / 1e9 == pytest.approx(STARTED.timestamp())
    assert f"{last.context.trace_id:032x}" == CALL.key[:32] == f"{first.context.trace_id:032x}"
    assert first.context.span_id != last.context.span_id


async def test_each_span_has_the_cost_of_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = ANSWER.attempts
    charged = (replace(first, cost_usd=0.0, estimated=False), replace(last, cost_usd=0.5, estimated=True))
    answer = replace(ANSWER, cost_usd=0.5, attempts=charged, finish_reason="MAX_TOKENS")
    monkeypatch.setattr("tests.run.test_telemetry.ANSWER", answer)
    spans, _ = await exported_telemetry(TelemetrySection(texts=True))
    costs = [(s.attributes["auditor.cost_usd"], s.attributes["auditor.cost_estimated"]) for s in spans]
    assert costs == [(0.0, False), (0.5, True)]
    assert spans[1].attributes["gen_ai.response.finish_reasons"] == ("MAX_TOKENS",)
    assert json.loads(spans[1].attributes["gen_ai.output.messages"])[0]["finish_reason"] == "length"


@pytest.mark.parametrize(("outcome", "shown"), [(Outcome.OK, "stop"), (Outcome.TRUNCATED, "error")])
async def test_a_complete_answer_without_a_finish_reason_is_no_error(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, shown: str
) -> None:
    answer = replace(ANSWER, finish_reason=None, outcome=outcome)
    monkeypatch.setattr("tests.run.test_telemetry.ANSWER", answer)
    spans, _ = await exported_telemetry(TelemetrySection(texts=True))
    assert json.loads(spans[1].attributes["gen_ai.output.messages"])[0]["finish_reason"] == shown


async def test_spans_hold_no_text_unless_it_is_configured() -> None:
    spans, _ = await exported_telemetry(TelemetrySection())
    assert not any(word in span.to_json() for span in spans for word in ("justifiable", "It is fine", "slow down"))
    first, last = (await exported_telemetry(TelemetrySection(texts=True)))[0]
    [input_message] = json.loads(last.attributes["gen_ai.input.messages"])
    assert input_message == {"role": "user", "parts": [{"type": "text", "content": "How justifiable is divorce?"}]}
    assert json.loads(last.attributes["gen_ai.output.messages"])[0]["finish_reason"] == "stop"
    assert "gen_ai.output.messages" not in first.attributes


async def test_an_evaluation_is_an_event_on_its_calls_span() -> None:
    at = STARTED.isoformat(timespec="milliseconds")
    spans, [event] = await exported_telemetry(
        TelemetrySection(), NewResult("", Outcome.OK, -0.5, None, "reasons", CALL.key, 2, at, "divorce", None)
    )
    record = event.log_record
    assert record.event_name == "gen_ai.evaluation.result"
    assert dict(record.attributes) == {"gen_ai.evaluation.name": "moral_score", "gen_ai.evaluation.score.value": -0.5}
    assert (record.trace_id, record.span_id) == (spans[1].context.trace_id, spans[1].context.span_id)


def test_a_failed_evaluation_has_an_error_type_and_no_score() -> None:
    unparsed_verdict = NewResult("judge", Outcome.UNPARSED, None, None, "what", "0" * 64, 1, "", "divorce", None)
    assert evaluation_attributes(unparsed_verdict) == {
        "gen_ai.evaluation.name": "peer_review", "auditor.judge": "judge", "error.type": "unparsed",
    }  # fmt: skip
    invalid_verdict = unparsed_verdict._replace(outcome=Outcome.OK, ruling=Ruling.INVALID)
    assert evaluation_attributes(invalid_verdict, include_texts=True)["gen_ai.evaluation.score.label"] == "INVALID"
    assert evaluation_attributes(invalid_verdict, include_texts=True)["gen_ai.evaluation.explanation"] == "what"


TASK_EVALUATIONS: dict[str, tuple[Task, str, dict[str, Any]]] = {
    "right": (Task("t", AnswerKind.EXACT, ""), "42", {"label": "correct"}),
    "wrong": (Task("t", AnswerKind.EXACT, ""), "41", {"label": "incorrect"}),
    "a score": (Task("t", AnswerKind.SCORE, "", (0, 100), tolerance=1), "41", {"label": "correct", "value": 41.0}),
    "a score without a tolerance": (Task("t", AnswerKind.SCORE, "", (0, 100)), "41", {"value": 41.0}),
}


@pytest.mark.parametrize(("task", "answer", "expected"), TASK_EVALUATIONS.values(), ids=TASK_EVALUATIONS)
def test_an_answer_to_a_task_is_correct_or_not(task: Task, answer: str, expected: dict[str, Any]) -> None:
    task = replace(task, items={"q": TaskItem("q", "How many?", truth="42")})
    scaled = 0.5 if task.range else None
    evaluation = NewResult("", Outcome.OK, scaled, None, "reasons", "0" * 64, 1, "", "q", answer)
    attributes = {f"gen_ai.evaluation.score.{name}": value for name, value in expected.items()}
    assert evaluation_attributes(evaluation, task) == {"gen_ai.evaluation.name": "task_answer", **attributes}
    lost = evaluation._replace(outcome=Outcome.REFUSED, score=None, answer=None)
    assert evaluation_attributes(lost, task) == {"gen_ai.evaluation.name": "task_answer", "error.type": "refused"}


def test_sampling_of_calls_is_deterministic() -> None:
    keys = [f"{i * 0x01000193 & 0xFFFFFFFF:08x}" for i in range(4000)]
    sampled_keys = {key for key in keys if is_sampled(key, 0.25)}
    assert len(sampled_keys) == pytest.approx(1000, abs=120)
    assert sampled_keys <= {key for key in keys if is_sampled(key, 0.5)}
    assert all(is_sampled(key, 1.0) for key in keys)


# --- over HTTP ----------------------------------------------------------------------------------------------------


class Collector:
    """An OTLP collector over HTTP on a loopback port, which answers with `status`."""

    def __init__(self) -> None:
        self.status, self.url = 200, ""
        self.spans, self.events, self.headers = list[Any](), list[Any](), list[dict[str, str]]()

    def receive(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        import gzip

        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.headers.append(headers)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [s for scope in resource.scope_spans for s in scope.spans]
        elif path == "/v1/logs":
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.events += [r for scope in resource.scope_logs for r in scope.log_records]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()

    class Receiver(QuietHandler):
        def do_POST(self) -> None:
            collector.receive(self.path, self.read_body(), {k.lower(): v for k, v in self.headers.items()})
            self.reply({}, collector.status)

    with serve(Receiver) as port:
        collector.url = f"http://127.0.0.1:{port}"
        yield collector


def small_audit(server: FakeServer, **changes: Any) -> AuditConfig:
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce", "abortion"]}
    return config(server.url, 2, survey=survey, **changes)


def attributes_of(record: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in record.attributes}


def test_an_audit_exports_every_request_score_and_verdict(
    collector: Collector, server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle_once = iter([True])

    server.script = lambda request: (
        Reply(429, {"error": {"message": "slow"}}) if next(throttle_once, False) else answer(request)
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-other=theirs")
    section = {"endpoint": collector.url, "headers": {"x-api-key": f"os.environ/{KEY_VARIABLE}"}}
    run_audit(small_audit(server, telemetry=section), storage=storage)
    assert len(collector.spans) == len(server.requests) == 1 + 2 * 2 + 2 * 2
    assert [attributes_of(s).get("error.type") for s in collector.spans].count("rate_limited") == 1
    names = [attributes_of(e)["gen_ai.evaluation.name"] for e in collector.events]
    assert (names.count("moral_score"), names.count("peer_review")) == (4, 4)
    spans = {(s.trace_id, s.span_id) for s in collector.spans if attributes_of(s)["auditor.purpose"] == "direct"}
    assert {(e.trace_id, e.span_id) for e in collector.events} <= spans
    scores = [attributes_of(e).get("gen_ai.evaluation.score.value") for e in collector.events]
    assert sorted(s for s in scores if s is not None) == sorted(
        s for s in open_audit("scripted", storage=storage).scores().values() if s is not None
    )
    assert {h.get("x-api-key") for h in collector.headers} == {KEY}
    assert not any("x-other" in h for h in collector.headers)  # the environment's keys are for its own collector
    collector.spans.clear()
    collector.events.clear()
    run_audit(small_audit(server, telemetry=section), storage=storage)  # sends no new request, so exports nothing
    assert not collector.spans
    assert not collector.events


def test_the_environment_may_name_the_collector_but_does_not_enable_telemetry(
    collector: Collector, server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-other=ours")
    run_audit(small_audit(server), storage=storage)
    assert not collector.headers
    run_audit(small_audit(server, name="told", seed=8, telemetry={}), storage=storage)
    assert len(collector.spans) == 8
    assert {h.get("x-other") for h in collector.headers} == {"ours"}


def test_a_failing_collector_is_reported_after_the_run(collector: Collector, server: FakeServer, storage: str) -> None:
    collector.status, progress = 400, NoticeRecorder()
    audit = run_audit(small_audit(server, telemetry={"endpoint": collector.url}), storage=storage, progress=progress)
    assert audit.report().coverage.models[0].ok == 2
    assert f"Telemetry goes to: {collector.url.removeprefix('http://')}." in "\n".join(progress.notes)
    assert "16 of 16 spans and events were not delivered to" in progress.notes[-1]


def test_the_collector_is_declared_and_its_key_must_be_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    section = {"endpoint": "https://collect.example", "headers": {"authorization": "os.environ/THEIRS"}, "texts": True}
    audit = config("http://127.0.0.1:1/v1", telemetry=section)
    assert "Telemetry goes to: collect.example, with questions and answers." in describe_destinations(audit)
    assert "THEIRS@collect.example" in [str(b) for b in required_bindings(audit)]
    with pytest.raises(ConfigError, match=r"telemetry would send the key THEIRS to collect\.example"):
        require_trust(audit)
    assert audit.hash == config("http://127.0.0.1:1/v1").hash
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with pytest.raises(ConfigError, match=r"telemetry\.endpoint"):
        describe_destinations(config("http://127.0.0.1:1/v1", telemetry={}))


def test_ids_are_of_the_right_size_and_differ() -> None:
    first_ids, second_ids = span_ids(CALL.key, 1, "a"), span_ids(CALL.key, 2, "a")
    assert first_ids[0] == second_ids[0] < 2**128
    assert first_ids[1] != second_ids[1] < 2**64


def test_nothing_is_sent_to_a_metadata_service_that_a_name_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the name is checked before each request, since a name may lead elsewhere at any time."""
    from auditor.run.opentelemetry_sink import create_http_sink

    connected: list[object] = []

    def resolve(host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        assert host == "collector.example"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: connected.append(address))
    sink = create_http_sink("http://collector.example:4318", {}, is_configured=True)
    sink.emit_event((1, 2), {"gen_ai.evaluation.name": "x"})
    assert sink.close() == "1 of 1 spans and events were not delivered to http://collector.example:4318."
    assert connected == []
