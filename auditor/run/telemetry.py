"""Export calls, scores and verdicts to an OpenTelemetry collector; off unless the config has a table `telemetry`.

Attributes follow OpenTelemetry's semantic conventions for generative AI (in development; commit 024a4f9 of their
sources); others start with `auditor.`. A span is one request. A trace is one call, with an id made of the call's key,
so that a collector shows the spans of several runs of one call together. Scores and verdicts are events on the span
of their request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from auditor.config import AuditConfig, TelemetrySection, resolve_secret
from auditor.config.providers import provider_of
from auditor.config.trust import resolve_collector_url
from auditor.domain import Answer, AnswerKind, Attempt, Call, LogprobMeasure, Outcome, Task
from auditor.domain.terms import split_model_id
from auditor.extras import load_extra
from auditor.models.finish_reasons import opentelemetry_finish_reason
from auditor.storage import audits, ledger
from auditor.storage.database import Database
from auditor.storage.results import NewResult, load_new_results
from auditor.tasks import is_correct

if TYPE_CHECKING:
    from auditor.agents.call_runner import CallRecorder
    from auditor.agents.run_context import ModelClient

RECORDED_PARAMS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
SCORE_EVALUATION_NAME, TASK_EVALUATION_NAME, VERDICT_EVALUATION_NAME = "moral_score", "task_answer", "peer_review"
CORRECT, INCORRECT = "correct", "incorrect"
SpanAttributes = dict[str, Any]


class TelemetrySink(Protocol):
    """Interface for exporting spans and events."""

    def emit_span(
        self, name: str, ids: tuple[int, int], timing: tuple[datetime, float], attributes: SpanAttributes, failed: bool
    ) -> None:
        """Export the span of one request.

        Args:
            name: name of the span.
            ids: ids of the trace and of the span, in this order.
            timing: when the request started, and its duration in seconds, in this order.
            attributes: attributes of the span.
            failed: whether the request failed.
        """
        ...

    def emit_event(self, ids: tuple[int, int], attributes: SpanAttributes) -> None:
        """Export the event of one score or verdict, on the span with these ids (trace, span)."""
        ...

    def close(self) -> str:
        """Send what is queued; returns a sentence about what was not delivered, or an empty string."""
        ...


class TracedClient:
    """Passes calls on, and exports every request that was sent to a sink."""

    def __init__(self, client: ModelClient, sink: TelemetrySink, audit_name: str, section: TelemetrySection) -> None:
        """Wrap a client.

        Args:
            client: answers the calls.
            sink: exports spans and events.
            audit_name: the audit's name.
            section: the config's table `telemetry`: which share of calls is exported, and whether with texts.
        """
        self._client, self._sink, self._audit_name, self._section = client, sink, audit_name, section

    async def complete(self, call: Call) -> Answer:
        """The client's answer; its requests are exported if the call is sampled."""
        answer = await self._client.complete(call)
        if is_sampled(call.key, self._section.share):
            for attempt in answer.attempts:
                self._emit_request_span(call, answer, attempt)
        return answer

    def _emit_request_span(self, call: Call, answer: Answer, attempt: Attempt) -> None:
        """Export one request as a span; the last attempt has the attributes of the answer."""
        attributes = request_attributes(call) | {"auditor.audit": self._audit_name, "auditor.attempt": attempt.number}
        has_failed = not attempt.outcome.is_answer
        if has_failed:
            attributes["error.type"] = attempt.outcome.value
        if attempt.http_status is not None:
            attributes["http.response.status_code"] = attempt.http_status
        if attempt is answer.attempts[-1] and answer.outcome.is_answer:
            attributes |= response_attributes(answer)
        attributes |= _cost_attributes(attempt)
        if self._section.texts:
            attributes |= message_attributes(call, answer if attempt is answer.attempts[-1] else None, attempt)
        started_at = attempt.started_at.isoformat(timespec="milliseconds")
        ids = span_ids(call.key, attempt.number, started_at)
        name = f"{attributes['gen_ai.operation.name']} {attributes['gen_ai.request.model']}"
        self._sink.emit_span(name, ids, (attempt.started_at, attempt.latency_s), attributes, has_failed)


@asynccontextmanager
async def open_telemetry_sink(
    config: AuditConfig, recorder: CallRecorder, notify: Callable[[str], None]
) -> AsyncIterator[TelemetrySink | None]:
    """Yield the sink that the config's table `telemetry` asks for; None without that table.

    At the end the run's scores and verdicts are exported too, and the sink is closed.

    Args:
        config: the audit's configuration.
        recorder: names the database and audit of the scores and verdicts.
        notify: receives a sentence about what was not delivered.

    Raises:
        ConfigError: no collector is named, or the environment variable of a header is not set.
        UsageError: OpenTelemetry is not installed.
    """
    section, collector = config.telemetry, resolve_collector_url(config)
    if section is None or collector is None:
        yield None
        return
    sink, started_at = _create_sink(section, collector), ledger.utc_now()
    try:
        yield sink
    finally:
        evaluations = load_new_results(recorder.db, recorder.audit_id, started_at)
        task = await asyncio.to_thread(_load_task, recorder.db, config)
        await asyncio.to_thread(finish_export, sink, section, evaluations, notify, task)


def _load_task(db: Database, config: AuditConfig) -> Task | None:
    """The task of an audit; None for an audit of a survey."""
    return audits.load_audit_survey(db, audits.get_audit(db, config.name)).task if config.task else None


def finish_export(
    sink: TelemetrySink,
    section: TelemetrySection,
    evaluations: Iterable[NewResult],
    notify: Callable[[str], None],
    task: Task | None = None,
) -> None:
    """Export a run's scores and verdicts, and close the sink.

    Args:
        sink: exports the events.
        section: the config's table `telemetry`.
        evaluations: the run's new scores and verdicts; only those of sampled calls are exported.
        notify: receives a sentence about what was not delivered.
        task: the audit's task; None for an audit of a survey.
    """
    for evaluation in evaluations:
        if is_sampled(evaluation.key, section.share):
            ids = span_ids(evaluation.key, evaluation.number, evaluation.started_at)
            sink.emit_event(ids, evaluation_attributes(evaluation, task, include_texts=section.texts))
    if delivery_problem := sink.close():
        notify(f"Telemetry: {delivery_problem} Nothing is lost: the database has all records.")


def _create_sink(section: TelemetrySection, collector: str) -> TelemetrySink:
    """Create the sink that sends to a collector over HTTP.

    Raises:
        ConfigError: the environment variable of a header is not set.
        UsageError: OpenTelemetry is not installed.
    """
    load_extra("opentelemetry.sdk.trace", "telemetry")
    load_extra("opentelemetry.exporter.otlp.proto.http.trace_exporter", "telemetry")
    from auditor.run.opentelemetry_sink import create_http_sink  # needs the extra `telemetry`

    headers = {name: resolve_secret(value) for name, value in section.headers.items()}
    return create_http_sink(collector, headers, is_configured=section.endpoint is not None)


def is_sampled(key: str, sample_share: float) -> bool:
    """Whether a call is in the exported share, from 0 to 1; decided by its key, so that all runs and events agree."""
    # The first eight of the key's hexadecimal digits are a number below 2**32, the same in every run.
    return int(key[:8], 16) < sample_share * 2**32


def span_ids(key: str, attempt_number: int, started_at: str) -> tuple[int, int]:
    """Ids of a call's trace (128 bits of its key) and of the span of one of its requests (64 bits)."""
    # 32 hexadecimal digits are 128 bits, and 16 are 64.
    request_digest = sha256(f"{key} {attempt_number} {started_at}".encode()).hexdigest()
    return int(key[:32], 16), int(request_digest[:16], 16)


# --- attributes ---------------------------------------------------------------------------------------------------


def request_attributes(call: Call) -> SpanAttributes:
    """Attributes of a request: provider, model, parameters, purpose and cell; no text."""
    provider, (_, model) = provider_of(call.model), split_model_id(call.model)
    attributes: SpanAttributes = {
        "gen_ai.operation.name": "text_completion" if call.measure is LogprobMeasure.ECHO else "chat",
        "gen_ai.provider.name": provider.telemetry_name or provider.prefix,
        "gen_ai.request.model": model,
        "auditor.call.key": call.key,
        "auditor.purpose": call.purpose.value,
        "auditor.model": call.name,
        "auditor.sample.index": call.sample,
    }
    attributes |= {
        f"gen_ai.request.{name}": call.params[name] for name in RECORDED_PARAMS if call.params.get(name) is not None
    }
    if call.schema is not None:
        attributes["gen_ai.output.type"] = "json"
    if call.cell is not None:
        attributes |= {"auditor.cell.country": call.cell.country, "auditor.cell.topic": call.cell.topic}
    return attributes | (_server_attributes(call.server) if call.server else {})


def _server_attributes(url: str) -> SpanAttributes:
    """Attributes of the server of a request: host and port; without a port in the URL, its scheme's default port."""
    split_url = urlsplit(url)
    port = split_url.port or (443 if split_url.scheme == "https" else 80)
    return {"server.address": split_url.hostname or url, "server.port": port}


def _cost_attributes(attempt: Attempt) -> SpanAttributes:
    """Attributes of a request's cost in USD, and whether it is an estimate; empty if the cost is unknown."""
    if attempt.cost_usd is None:
        return {}
    return {"auditor.cost_usd": attempt.cost_usd, "auditor.cost_estimated": bool(attempt.estimated)}


def response_attributes(answer: Answer) -> SpanAttributes:
    """Attributes of a response; those that the provider did not send are left out."""
    attributes = {
        "gen_ai.response.model": answer.served_model,
        "gen_ai.response.finish_reasons": [answer.finish_reason] if answer.finish_reason else None,
        "gen_ai.usage.input_tokens": answer.prompt_tokens,
        "gen_ai.usage.output_tokens": answer.completion_tokens,
        "auditor.outcome": answer.outcome.value,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def message_attributes(call: Call, answer: Answer | None, attempt: Attempt) -> SpanAttributes:
    """Attributes with the texts of a call: messages, answer and error, as JSON in the conventions' form.

    Args:
        call: the call.
        answer: its answer, if this request is the last attempt; else None.
        attempt: this request.
    """

    def text_parts(text: str) -> list[Mapping[str, str]]:
        """A text as the only part of a message, in the form of the conventions."""
        return [{"type": "text", "content": text}]

    input_messages = [{"role": message.role, "parts": text_parts(message.content)} for message in call.messages]
    attributes: SpanAttributes = {"gen_ai.input.messages": json.dumps(input_messages, ensure_ascii=False)}
    if answer is not None and answer.text is not None:
        # The field is required, and several providers send no reason with a complete answer.
        default_reason = "stop" if answer.outcome is Outcome.OK else "error"
        reason = opentelemetry_finish_reason(answer.finish_reason) or default_reason
        output_message = {"role": "assistant", "parts": text_parts(answer.text), "finish_reason": reason}
        attributes["gen_ai.output.messages"] = json.dumps([output_message], ensure_ascii=False)
    return attributes | ({"auditor.error": attempt.error} if attempt.error else {})


def evaluation_attributes(
    evaluation: NewResult, task: Task | None = None, *, include_texts: bool = False
) -> SpanAttributes:
    """Attributes of a score or verdict as `gen_ai.evaluation.result`; a failure has `error.type`, no score or label.

    An answer to an item of a task is `correct` or `incorrect`, where that is known; a score has the units of the task.
    """
    score_name = TASK_EVALUATION_NAME if task else SCORE_EVALUATION_NAME
    attributes: SpanAttributes = {"gen_ai.evaluation.name": VERDICT_EVALUATION_NAME if evaluation.judge else score_name}
    if evaluation.judge:
        attributes["auditor.judge"] = evaluation.judge
    if task and evaluation.answer is not None:
        is_right = is_correct(task, task.items[evaluation.topic], evaluation.answer)
        if is_right is not None:
            attributes["gen_ai.evaluation.score.label"] = CORRECT if is_right else INCORRECT
        if task.kind is AnswerKind.SCORE:
            attributes["gen_ai.evaluation.score.value"] = float(evaluation.answer)
    elif evaluation.score is not None:
        attributes["gen_ai.evaluation.score.value"] = evaluation.score
    elif evaluation.ruling is not None:
        attributes["gen_ai.evaluation.score.label"] = evaluation.ruling.value
    else:
        attributes["error.type"] = evaluation.outcome.value
    if include_texts and evaluation.text:
        attributes["gen_ai.evaluation.explanation"] = evaluation.text
    return attributes
