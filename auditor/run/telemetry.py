"""Calls and what was read out of them, for a collector that speaks OpenTelemetry: off unless a config asks for it.

Names are those of the semantic conventions for generative AI (in development there; commit 024a4f9 of their sources);
what has none there is under `auditor.`. A span is one request. Its trace is its call's, named after the call's key, so
that what several runs told of one call is found together. Scores and verdicts are events on the span they are about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from auditor.config import AuditConfig, TelemetrySection, resolve_secret
from auditor.config.trust import collector_url
from auditor.domain import Answer, Attempt, Call, LogprobMeasure, Outcome
from auditor.extras import load_extra
from auditor.models.finish_reasons import opentelemetry_finish_reason
from auditor.storage.new_results import NewResult

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelClient

PROVIDER_NAMES = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""litellm's providers by the conventions' names, where these differ."""
RECORDED_PARAMS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
SCORE_EVALUATION_NAME, VERDICT_EVALUATION_NAME = "moral_score", "peer_review"
SpanAttributes = dict[str, Any]


class TelemetrySink(Protocol):
    """Whoever takes spans and events."""

    def emit_span(
        self, name: str, ids: tuple[int, int], timing: tuple[datetime, float], attributes: SpanAttributes, failed: bool
    ) -> None:
        """One request: its name, its trace's and its own id, when it began and how many seconds it took."""
        ...

    def emit_event(self, ids: tuple[int, int], attributes: SpanAttributes) -> None:
        """One result of an evaluation, on the span with these ids."""
        ...

    def close(self) -> str:
        """Send what is left; returns what could not be delivered, in a sentence, or nothing."""
        ...


class TracedClient:
    """Asks, and tells a sink of every request that went out."""

    def __init__(self, client: ModelClient, sink: TelemetrySink, audit_name: str, section: TelemetrySection) -> None:
        """Wrap whoever answers.

        Args:
            asker: the gateway.
            sink: is told of what went out.
            audit: the audit's name.
            section: how much is told.
        """
        self._client, self._sink, self._audit_name, self._section = client, sink, audit_name, section

    async def complete(self, call: Call) -> Answer:
        """The answer, as it is."""
        answer = await self._client.complete(call)
        if is_sampled(call.key, self._section.share):
            for attempt in answer.attempts:
                self._emit_request_span(call, answer, attempt)
        return answer

    def finish(self, evaluations: Iterable[NewResult], notify: Callable[[str], None]) -> None:
        """Tell of the scores and verdicts that a run has read, and send what is left.

        Args:
            found: those of this run; only of calls that are told.
            note: is told what could not be delivered.
        """
        for reading in evaluations:
            if is_sampled(reading.key, self._section.share):
                ids = span_ids(reading.key, reading.number, reading.started_at)
                self._sink.emit_event(ids, evaluation_attributes(reading, include_texts=self._section.texts))
        if lost := self._sink.close():
            notify(f"Telemetry: {lost} What was recorded is whole.")

    def _emit_request_span(self, call: Call, answer: Answer, attempt: Attempt) -> None:
        facts = request_attributes(call) | {"auditor.audit": self._audit_name, "auditor.attempt": attempt.number}
        failed = not attempt.outcome.is_answer
        if failed:
            facts["error.type"] = attempt.outcome.value
        if attempt.http_status is not None:
            facts["http.response.status_code"] = attempt.http_status
        if attempt is answer.attempts[-1] and answer.outcome.is_answer:
            facts |= response_attributes(answer)
        facts |= _cost_attributes(attempt)
        if self._section.texts:
            facts |= message_attributes(call, answer if attempt is answer.attempts[-1] else None, attempt)
        started = attempt.started_at.isoformat(timespec="milliseconds")
        ids = span_ids(call.key, attempt.number, started)
        name = f"{facts['gen_ai.operation.name']} {facts['gen_ai.request.model']}"
        self._sink.emit_span(name, ids, (attempt.started_at, attempt.latency_s), facts, failed)


def open_telemetry_sink(config: AuditConfig) -> TelemetrySink | None:
    """Whoever is told of an audit's calls; None where nobody is.

    Raises:
        ConfigError: no collector is named, or a key of it is not in the environment.
        UsageError: OpenTelemetry is not installed.
    """
    section, to = config.telemetry, collector_url(config)
    if section is None or to is None:
        return None
    load_extra("opentelemetry.sdk.trace", "telemetry")
    load_extra("opentelemetry.exporter.otlp.proto.http.trace_exporter", "telemetry")
    from auditor.run.opentelemetry_sink import create_http_sink

    keys = {name: resolve_secret(value) for name, value in section.headers.items()}
    return create_http_sink(to, keys, is_configured=section.endpoint is not None)


def is_sampled(key: str, sample_share: float) -> bool:
    """Whether a call is among the share that is told: by its key, so that runs and events agree."""
    return int(key[:8], 16) < sample_share * 2**32


def span_ids(key: str, attempt_number: int, started_at: str) -> tuple[int, int]:
    """Ids of a call's trace and of one of its requests."""
    own = sha256(f"{key} {attempt_number} {started_at}".encode()).hexdigest()
    return int(key[:32], 16), int(own[:16], 16)


# --- attributes ---------------------------------------------------------------------------------------------------


def request_attributes(call: Call) -> SpanAttributes:
    """What was asked of whom; no text."""
    provider, model = call.model.split("/", 1)
    facts: SpanAttributes = {
        "gen_ai.operation.name": "text_completion" if call.measure is LogprobMeasure.ECHO else "chat",
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": model,
        "auditor.call.key": call.key,
        "auditor.purpose": call.purpose.value,
        "auditor.model": call.name,
        "auditor.sample.index": call.sample,
    }
    facts |= {
        f"gen_ai.request.{name}": call.params[name] for name in RECORDED_PARAMS if call.params.get(name) is not None
    }
    if call.schema is not None:
        facts["gen_ai.output.type"] = "json"
    if call.cell is not None:
        facts |= {"auditor.cell.country": call.cell.country, "auditor.cell.topic": call.cell.topic}
    return facts | (_server_attributes(call.server) if call.server else {})


def _server_attributes(url: str) -> SpanAttributes:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or url, "server.port": port}


def _cost_attributes(attempt: Attempt) -> SpanAttributes:
    """What this request cost; what is not known is not there."""
    if attempt.cost_usd is None:
        return {}
    return {"auditor.cost_usd": attempt.cost_usd, "auditor.cost_estimated": bool(attempt.estimated)}


def response_attributes(answer: Answer) -> SpanAttributes:
    """What came back; what a provider did not say is not there."""
    facts = {
        "gen_ai.response.model": answer.served_model,
        "gen_ai.response.finish_reasons": [answer.finish_reason] if answer.finish_reason else None,
        "gen_ai.usage.input_tokens": answer.prompt_tokens,
        "gen_ai.usage.output_tokens": answer.completion_tokens,
        "auditor.outcome": answer.outcome.value,
    }
    return {name: value for name, value in facts.items() if value is not None}


def message_attributes(call: Call, answer: Answer | None, attempt: Attempt) -> SpanAttributes:
    """Questions and answers, as JSON in the conventions' form; only where they were asked for."""

    def part(text: str) -> list[Mapping[str, str]]:
        return [{"type": "text", "content": text}]

    asked = [{"role": m.role, "parts": part(m.content)} for m in call.messages]
    facts: SpanAttributes = {"gen_ai.input.messages": json.dumps(asked, ensure_ascii=False)}
    if answer is not None and answer.text is not None:
        # The field is required, and several providers send no reason with a complete answer.
        unnamed = "stop" if answer.outcome is Outcome.OK else "error"
        reason = opentelemetry_finish_reason(answer.finish_reason) or unnamed
        output = {"role": "assistant", "parts": part(answer.text), "finish_reason": reason}
        facts["gen_ai.output.messages"] = json.dumps([output], ensure_ascii=False)
    return facts | ({"auditor.error": attempt.error} if attempt.error else {})


def evaluation_attributes(reading: NewResult, *, include_texts: bool = False) -> SpanAttributes:
    """A score or a verdict as `gen_ai.evaluation.result`; what failed has its cause and neither score nor label."""
    facts: SpanAttributes = {
        "gen_ai.evaluation.name": VERDICT_EVALUATION_NAME if reading.judge else SCORE_EVALUATION_NAME
    }
    if reading.judge:
        facts["auditor.judge"] = reading.judge
    if reading.score is not None:
        facts["gen_ai.evaluation.score.value"] = reading.score
    elif reading.ruling is not None:
        facts["gen_ai.evaluation.score.label"] = reading.ruling.value
    else:
        facts["error.type"] = reading.outcome.value
    if include_texts and reading.text:
        facts["gen_ai.evaluation.explanation"] = reading.text
    return facts
