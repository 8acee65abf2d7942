"""The sink of `auditor.run.telemetry` that speaks OpenTelemetry over HTTP; loaded only where it is asked for."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import metadata

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from auditor.run.telemetry import Values

EVENT = "gen_ai.evaluation.result"
QUEUE, BATCH, TIMEOUT_S = 65_536, 512, 10.0
ENV_HEADERS = tuple(f"OTEL_EXPORTER_OTLP_{signal}HEADERS" for signal in ("", "TRACES_", "LOGS_"))


class _Ids(IdGenerator):
    """Gives the ids that it was told to give next."""

    trace, own = 0, 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.own


class _Count:
    """How many of what was told arrived."""

    told = delivered = 0


class _Spans(SpanExporter):
    def __init__(self, inner: SpanExporter, count: _Count) -> None:
        self._inner, self._count = inner, count

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._count.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _Events(LogRecordExporter):
    def __init__(self, inner: LogRecordExporter, count: _Count) -> None:
        self._inner, self._count = inner, count

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = self._inner.export(batch)
        if result is LogRecordExportResult.SUCCESS:
            self._count.delivered += len(batch)
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]


class OpenTelemetry:
    """Spans and events, sent in batches by threads of their own; a collector that fails holds nothing up."""

    def __init__(self, spans: SpanExporter, events: LogRecordExporter, where: str) -> None:
        """Begin.

        Args:
            spans, events: where they go.
            where: the same in words, for messages.
        """
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what failed is said once, at the end
        self._where, self._ids = where, _Ids()
        self._count = _Count()
        resource = Resource.create({"service.name": "auditor", "service.version": metadata.version("auditor")})
        self._spans = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(_Spans(spans, self._count), QUEUE, None, BATCH))
        self._events = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._events.add_log_record_processor(
            BatchLogRecordProcessor(_Events(events, self._count), max_queue_size=QUEUE, max_export_batch_size=BATCH)
        )
        self._tracer = self._spans.get_tracer("auditor")
        self._logger = self._events.get_logger("auditor")

    def span(self, name: str, ids: tuple[int, int], times: tuple[datetime, float], facts: Values, failed: bool) -> None:
        """One request; see `telemetry.Sink`."""
        self._ids.trace, self._ids.own = ids
        started = int(times[0].timestamp() * 1e9)
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=facts, start_time=started)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        self._count.told += 1
        span.end(end_time=started + int(times[1] * 1e9))

    def event(self, ids: tuple[int, int], facts: Values) -> None:
        """One evaluation; see `telemetry.Sink`."""
        about = SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        self._count.told += 1
        self._logger.emit(event_name=EVENT, attributes=facts, context=set_span_in_context(NonRecordingSpan(about)))

    def close(self) -> str:
        """Send what is left; see `telemetry.Sink`."""
        self._spans.shutdown()
        self._events.shutdown()
        lost = self._count.told - self._count.delivered
        return f"{lost} of {self._count.told} spans and events did not reach {self._where}." if lost else ""


def over_http(endpoint: str, headers: Mapping[str, str], *, ours: bool) -> OpenTelemetry:
    """To a collector by OTLP over HTTP.

    Args:
        endpoint: its base URL.
        headers: sent with each request.
        ours: whether the config named the endpoint: then headers that the environment holds for another collector are
            not sent there.
    """
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    told = dict(headers)
    with _without(ENV_HEADERS if ours else ()):
        return OpenTelemetry(
            OTLPSpanExporter(f"{endpoint}/v1/traces", headers=told, timeout=TIMEOUT_S),
            OTLPLogExporter(f"{endpoint}/v1/logs", headers=told, timeout=TIMEOUT_S),
            endpoint,
        )


@contextmanager
def _without(names: Sequence[str]) -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
