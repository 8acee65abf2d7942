"""Questions of the probes of other packages: their calls, and what their answers say."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from auditor.agents.call_builders import blind_trace, build_call, build_direct_call, effective_temperature
from auditor.agents.refusals import is_refusal_in_any_language
from auditor.config import AuditConfig, ModelSection
from auditor.config.installed_probes import InstalledProbe
from auditor.domain import Answer, Call, Message, Outcome, Survey, Trace, derive_seed
from auditor.models.reasoning import has_thinking, strip_thinking
from auditor.models.structured import find_schema
from auditor.models.structured_reading import parse_structured_answer
from auditor.probe_interface import ProbeAnswer, ProbeAudit, ProbeResult, Question
from auditor.storage import results
from auditor.storage.database import Database

MAX_WORDS = 200
"""Limit on each text of a structured answer."""


def open_probe_audit(
    probe: InstalledProbe, config: AuditConfig, survey: Survey, db: Database, audit_id: int
) -> ProbeAudit[Any]:
    """The audit as a probe sees it while it asks, with what is recorded."""
    return ProbeAudit(
        settings=config.probes.plugins[probe.name],
        config=config,
        survey=survey,
        load_traces=lambda model, cells=None: results.load_traces(db, audit_id, cells, model),
        load_scores=lambda: results.load_scores(db, audit_id),
        mask=partial(blind_trace, config, survey),
        load_question=partial(load_question, config, survey),
        load_hidden_reasoning=partial(results.has_hidden_reasoning, db, audit_id, has_thinking=has_thinking),
    )


def load_question(config: AuditConfig, survey: Survey, trace: Trace) -> tuple[Message, ...]:
    """Build the messages that an answer to a direct question replies to, without the model's own system message."""
    model = config.model(trace.model).model_copy(update={"system": None})
    return build_direct_call(config, survey, model, trace.cell, trace.sample).messages


def build_probe_call(
    config: AuditConfig, probe: InstalledProbe, model: ModelSection, question: Question, turn: int = 0
) -> Call:
    """Build the call of a question."""
    identity = (probe.name, *question.unit, question.sample, turn)
    return build_call(
        model,
        probe.purpose,
        _with_preamble(model.system, question.messages),
        temperature=effective_temperature(model, question.temperature),
        max_tokens=question.max_tokens,
        seed=derive_seed(config.seed, "probe", *identity),
        sample=question.sample,
        schema=None if question.schema is None else f"{probe.name}.{question.schema.__name__}",
        max_words=MAX_WORDS,
        language=question.language,
    )


def _with_preamble(preamble: str | None, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with a model's own system message before that of the question."""
    if not preamble:
        return messages
    if messages and messages[0].role == "system":
        return (Message("system", f"{preamble}\n\n{messages[0].content}"), *messages[1:])
    return (Message("system", preamble), *messages)


def read_answer(probe: InstalledProbe, place: ProbeAnswer, schema: str | None, answer: Answer) -> ProbeResult:
    """Read an answer by the probe; a failed call, and an answer without the structure, has no value.

    Args:
        place: who was asked what; its text is ignored.
        schema: name of the structure that was asked for; None for free text.
        answer: the recorded answer.
    """
    outcome, value = answer.outcome, None
    if outcome is Outcome.OK:
        outcome, value = _read_text(probe, replace(place, text=answer.text or ""), schema)
    return ProbeResult(
        place.model, place.unit, place.sample, place.turn, outcome, answer.key, value, probe.probe.reader_version
    )


def _read_text(probe: InstalledProbe, answer: ProbeAnswer, schema: str | None) -> tuple[Outcome, Any]:
    """Outcome and value of a complete text; one that cannot be read is a refusal if it says so in any language."""
    visible_text, structure = _without_prefill(strip_thinking(answer.text), answer.prefill), None
    outcome, value = Outcome.UNPARSED, None
    if schema is not None:
        parsed = parse_structured_answer(find_schema(schema), answer.text, answer.request)
        structure = None if isinstance(parsed, str) else parsed
    if schema is None or structure is not None:
        reading = probe.read(replace(answer, text=visible_text, structure=structure))
        outcome, value = reading.outcome, reading.value
    if outcome is Outcome.UNPARSED and is_refusal_in_any_language(visible_text):
        outcome = Outcome.REFUSED
    return outcome, value


def _without_prefill(text: str, prefill: str) -> str:
    """The text after the beginning that the model was to continue, which some providers return again."""
    beginning = prefill.strip()
    return text.lstrip().removeprefix(beginning) if beginning else text
