"""Telemetry sink that exports OpenTelemetry spans and events over HTTP; imported only if a collector is configured."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
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
from requests.adapters import HTTPAdapter

from auditor.config.credential_hosts import is_metadata_address
from auditor.run.telemetry import SpanAttributes

EVALUATION_EVENT_NAME = "gen_ai.evaluation.result"
MAX_QUEUE_SIZE, MAX_EXPORT_BATCH_SIZE, EXPORT_TIMEOUT_S = 65_536, 512, 10.0
HEADER_VARIABLES = tuple(f"OTEL_EXPORTER_OTLP_{signal}HEADERS" for signal in ("", "TRACES_", "LOGS_"))


class _PresetIdGenerator(IdGenerator):
    """Returns the ids that were assigned to it for the next span."""

    trace_id, span_id = 0, 0

    def generate_trace_id(self) -> int:
        """The trace id that was assigned last."""
        return self.trace_id

    def generate_span_id(self) -> int:
        """The span id that was assigned last."""
        return self.span_id


class _DeliveryCount:
    """Counts of submitted and delivered spans and events."""

    submitted = delivered = 0


class _CountingSpanExporter(SpanExporter):
    """Passes spans on to another exporter, and counts those that the collector accepted."""

    def __init__(self, inner: SpanExporter, delivery_count: _DeliveryCount) -> None:
        self._inner, self._delivery_count = inner, delivery_count

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans; they are counted as delivered if the inner exporter succeeds."""
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._delivery_count.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _CountingLogExporter(LogRecordExporter):
    """Passes events on to another exporter, and counts those that the collector accepted."""

    def __init__(self, inner: LogRecordExporter, delivery_count: _DeliveryCount) -> None:
        self._inner, self._delivery_count = inner, delivery_count

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export events; they are counted as delivered if the inner exporter succeeds."""
        result = self._inner.export(batch)
        if result is LogRecordExportResult.SUCCESS:
            self._delivery_count.delivered += len(batch)
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]


class OpenTelemetrySink:
    """Exports spans and events in batches from background threads; a failing collector does not delay the run."""

    def __init__(self, span_exporter: SpanExporter, log_exporter: LogRecordExporter, destination: str) -> None:
        """Start the background threads.

        Args:
            span_exporter: sends spans.
            log_exporter: sends events.
            destination: name of the collector, for messages.
        """
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # `close` reports failures once
        self._destination, self._id_generator = destination, _PresetIdGenerator()
        self._delivery_count = _DeliveryCount()
        resource = Resource.create({"service.name": "auditor", "service.version": metadata.version("auditor")})
        self._tracer_provider = TracerProvider(
            resource=resource, id_generator=self._id_generator, shutdown_on_exit=False
        )
        self._tracer_provider.add_span_processor(
            BatchSpanProcessor(
                _CountingSpanExporter(span_exporter, self._delivery_count), MAX_QUEUE_SIZE, None, MAX_EXPORT_BATCH_SIZE
            )
        )
        self._logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(
                _CountingLogExporter(log_exporter, self._delivery_count),
                max_queue_size=MAX_QUEUE_SIZE,
                max_export_batch_size=MAX_EXPORT_BATCH_SIZE,
            )
        )
        self._tracer = self._tracer_provider.get_tracer("auditor")
        self._logger = self._logger_provider.get_logger("auditor")

    def emit_span(
        self, name: str, ids: tuple[int, int], timing: tuple[datetime, float], attributes: SpanAttributes, failed: bool
    ) -> None:
        """Export the span of one request; see `TelemetrySink`."""
        self._id_generator.trace_id, self._id_generator.span_id = ids
        # `timing` is the request's start and its duration in seconds; spans take nanoseconds since 1970.
        start_ns = int(timing[0].timestamp() * 1e9)
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, start_time=start_ns)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        self._delivery_count.submitted += 1
        span.end(end_time=start_ns + int(timing[1] * 1e9))

    def emit_event(self, ids: tuple[int, int], attributes: SpanAttributes) -> None:
        """Export the event of one evaluation; see `TelemetrySink`."""
        span_context = SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        self._delivery_count.submitted += 1
        self._logger.emit(
            event_name=EVALUATION_EVENT_NAME,
            attributes=attributes,
            context=set_span_in_context(NonRecordingSpan(span_context)),
        )

    def close(self) -> str:
        """Send what is queued, and describe what was not delivered; see `TelemetrySink`."""
        self._tracer_provider.shutdown()
        self._logger_provider.shutdown()
        n_lost = self._delivery_count.submitted - self._delivery_count.delivered
        return (
            f"{n_lost} of {self._delivery_count.submitted} spans and events were not delivered to {self._destination}."
            if n_lost
            else ""
        )


def create_http_sink(endpoint: str, headers: Mapping[str, str], *, is_configured: bool) -> OpenTelemetrySink:
    """Create a sink that sends to a collector by OTLP over HTTP.

    Args:
        endpoint: the collector's base URL.
        headers: sent with each request.
        is_configured: whether the config names the endpoint; headers from the environment, which may be meant for
            another collector, are not sent then.
    """
    options: dict[str, Any] = {"headers": dict(headers), "timeout": EXPORT_TIMEOUT_S}
    with _without_variables(HEADER_VARIABLES if is_configured else ()):
        return OpenTelemetrySink(
            OTLPSpanExporter(f"{endpoint}/v1/traces", session=_open_session(), **options),
            OTLPLogExporter(f"{endpoint}/v1/logs", session=_open_session(), **options),
            endpoint,
        )


def _open_session() -> requests.Session:
    """Open a session that sends nothing to a link-local address or a metadata service, whatever its name."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _CheckedAdapter())
    return session


class _CheckedAdapter(HTTPAdapter):
    """Resolves the name of the server before each request, unless a proxy does so."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request.

        Raises:
            requests.ConnectionError: the name leads to an address that nothing may be sent to.
        """
        url = urlsplit(request.url or "")
        if not requests.utils.select_proxy(request.url or "", proxies):
            for *_, address in socket.getaddrinfo(url.hostname, url.port or url.scheme, type=socket.SOCK_STREAM):
                host = str(address[0]).partition("%")[0]
                if is_metadata_address(ipaddress.ip_address(host)):
                    raise requests.ConnectionError(
                        f"{url.hostname} leads to {host}, a link-local address or metadata service", request=request
                    )
        return super().send(request, stream, timeout, verify, cert, proxies)


@contextmanager
def _without_variables(names: Sequence[str]) -> Iterator[None]:
    """Remove environment variables within the context."""
    removed_values = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(removed_values)
