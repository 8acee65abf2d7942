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

from auditor.config import AuditConfig, TelemetrySection, resolve_key
from auditor.config.trust import collector
from auditor.domain import Answer, Attempt, Call, Measure, Outcome
from auditor.extras import load_extra
from auditor.models.finish_reasons import standard_name
from auditor.storage.new_results import Reading

if TYPE_CHECKING:
    from auditor.agents.run_context import Asker

PROVIDERS = {
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
PARAMS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
SCORE_NAME, VERDICT_NAME = "moral_score", "peer_review"
Values = dict[str, Any]


class Sink(Protocol):
    """Whoever takes spans and events."""

    def span(self, name: str, ids: tuple[int, int], times: tuple[datetime, float], facts: Values, failed: bool) -> None:
        """One request: its name, its trace's and its own id, when it began and how many seconds it took."""
        ...

    def event(self, ids: tuple[int, int], facts: Values) -> None:
        """One result of an evaluation, on the span with these ids."""
        ...

    def close(self) -> str:
        """Send what is left; returns what could not be delivered, in a sentence, or nothing."""
        ...


class Telling:
    """Asks, and tells a sink of every request that went out."""

    def __init__(self, asker: Asker, sink: Sink, audit: str, section: TelemetrySection) -> None:
        """Wrap whoever answers.

        Args:
            asker: the gateway.
            sink: is told of what went out.
            audit: the audit's name.
            section: how much is told.
        """
        self._asker, self._sink, self._audit, self._section = asker, sink, audit, section

    async def complete(self, call: Call) -> Answer:
        """The answer, as it is."""
        answer = await self._asker.complete(call)
        if is_told(call.key, self._section.share):
            for attempt in answer.attempts:
                self._tell(call, answer, attempt)
        return answer

    def finish(self, found: Iterable[Reading], note: Callable[[str], None]) -> None:
        """Tell of the scores and verdicts that a run has read, and send what is left.

        Args:
            found: those of this run; only of calls that are told.
            note: is told what could not be delivered.
        """
        for reading in found:
            if is_told(reading.key, self._section.share):
                ids = ids_of(reading.key, reading.number, reading.started_at)
                self._sink.event(ids, evaluation(reading, texts=self._section.texts))
        if lost := self._sink.close():
            note(f"Telemetry: {lost} What was recorded is whole.")

    def _tell(self, call: Call, answer: Answer, attempt: Attempt) -> None:
        facts = request_facts(call) | {"auditor.audit": self._audit, "auditor.attempt": attempt.number}
        failed = not attempt.outcome.is_answer
        if failed:
            facts["error.type"] = attempt.outcome.value
        if attempt.http_status is not None:
            facts["http.response.status_code"] = attempt.http_status
        if attempt is answer.attempts[-1] and answer.outcome.is_answer:
            facts |= response_facts(answer)
        facts |= _cost_facts(attempt)
        if self._section.texts:
            facts |= texts(call, answer if attempt is answer.attempts[-1] else None, attempt)
        started = attempt.started_at.isoformat(timespec="milliseconds")
        ids = ids_of(call.key, attempt.number, started)
        name = f"{facts['gen_ai.operation.name']} {facts['gen_ai.request.model']}"
        self._sink.span(name, ids, (attempt.started_at, attempt.latency_s), facts, failed)


def opened(config: AuditConfig) -> Sink | None:
    """Whoever is told of an audit's calls; None where nobody is.

    Raises:
        ConfigError: no collector is named, or a key of it is not in the environment.
        UsageError: OpenTelemetry is not installed.
    """
    section, to = config.telemetry, collector(config)
    if section is None or to is None:
        return None
    load_extra("opentelemetry.sdk.trace", "telemetry")
    load_extra("opentelemetry.exporter.otlp.proto.http.trace_exporter", "telemetry")
    from auditor.run.opentelemetry_sink import over_http

    keys = {name: resolve_key(value) for name, value in section.headers.items()}
    return over_http(to, keys, ours=section.endpoint is not None)


def is_told(key: str, share: float) -> bool:
    """Whether a call is among the share that is told: by its key, so that runs and events agree."""
    return int(key[:8], 16) < share * 2**32


def ids_of(key: str, number: int, started_at: str) -> tuple[int, int]:
    """Ids of a call's trace and of one of its requests."""
    own = sha256(f"{key} {number} {started_at}".encode()).hexdigest()
    return int(key[:32], 16), int(own[:16], 16)


# --- attributes ---------------------------------------------------------------------------------------------------


def request_facts(call: Call) -> Values:
    """What was asked of whom; no text."""
    provider, model = call.model.split("/", 1)
    facts: Values = {
        "gen_ai.operation.name": "text_completion" if call.measure is Measure.ECHO else "chat",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "auditor.call.key": call.key,
        "auditor.purpose": call.purpose.value,
        "auditor.model": call.name,
        "auditor.sample.index": call.sample,
    }
    facts |= {f"gen_ai.request.{name}": call.params[name] for name in PARAMS if call.params.get(name) is not None}
    if call.schema is not None:
        facts["gen_ai.output.type"] = "json"
    if call.cell is not None:
        facts |= {"auditor.cell.country": call.cell.country, "auditor.cell.topic": call.cell.topic}
    return facts | (_server(call.server) if call.server else {})


def _server(url: str) -> Values:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or url, "server.port": port}


def _cost_facts(attempt: Attempt) -> Values:
    """What this request cost; what is not known is not there."""
    if attempt.cost_usd is None:
        return {}
    return {"auditor.cost_usd": attempt.cost_usd, "auditor.cost_estimated": bool(attempt.estimated)}


def response_facts(answer: Answer) -> Values:
    """What came back; what a provider did not say is not there."""
    facts = {
        "gen_ai.response.model": answer.served_model,
        "gen_ai.response.finish_reasons": [answer.finish_reason] if answer.finish_reason else None,
        "gen_ai.usage.input_tokens": answer.prompt_tokens,
        "gen_ai.usage.output_tokens": answer.completion_tokens,
        "auditor.outcome": answer.outcome.value,
    }
    return {name: value for name, value in facts.items() if value is not None}


def texts(call: Call, answer: Answer | None, attempt: Attempt) -> Values:
    """Questions and answers, as JSON in the conventions' form; only where they were asked for."""

    def part(text: str) -> list[Mapping[str, str]]:
        return [{"type": "text", "content": text}]

    asked = [{"role": m.role, "parts": part(m.content)} for m in call.messages]
    facts: Values = {"gen_ai.input.messages": json.dumps(asked, ensure_ascii=False)}
    if answer is not None and answer.text is not None:
        # The field is required, and several providers send no reason with a complete answer.
        unnamed = "stop" if answer.outcome is Outcome.OK else "error"
        reason = standard_name(answer.finish_reason) or unnamed
        output = {"role": "assistant", "parts": part(answer.text), "finish_reason": reason}
        facts["gen_ai.output.messages"] = json.dumps([output], ensure_ascii=False)
    return facts | ({"auditor.error": attempt.error} if attempt.error else {})


def evaluation(reading: Reading, *, texts: bool = False) -> Values:
    """A score or a verdict as `gen_ai.evaluation.result`; what failed has its cause and neither score nor label."""
    facts: Values = {"gen_ai.evaluation.name": VERDICT_NAME if reading.judge else SCORE_NAME}
    if reading.judge:
        facts["auditor.judge"] = reading.judge
    if reading.score is not None:
        facts["gen_ai.evaluation.score.value"] = reading.score
    elif reading.ruling is not None:
        facts["gen_ai.evaluation.score.label"] = reading.ruling.value
    else:
        facts["error.type"] = reading.outcome.value
    if texts and reading.text:
        facts["gen_ai.evaluation.explanation"] = reading.text
    return facts
