"""One trace as a sample of Inspect AI: the call, the answer, our score and the judges' verdicts.

A trace without a score has none there either, nor a stand-in; a call that failed has the error that it ended with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditor.domain import Cell, Conflict, Trace, Verdict, canonical_hash
from auditor.models.finish_reasons import FinishCategory, classify_finish_reason
from auditor.storage.transcripts import CallTranscript

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

SCORE_NAME = "score"
"""Our own score of a trace; a judge's verdict is under `judge:NAME`."""
METADATA_KEY = "auditor"
"""Key of the log's metadata by which a log of ours is known."""
STOP_REASONS = {
    FinishCategory.COMPLETE: "stop",
    FinishCategory.TOOL_CALL: "tool_calls",
    FinishCategory.TRUNCATED: "max_tokens",
    FinishCategory.REFUSED: "content_filter",
}
"""Inspect's stop reasons; it has none for the others, which are `unknown`."""
CELL_SEPARATOR = " | "
"""Between country and topic in a sample's id."""


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """What is known of one trace."""

    trace: Trace
    human_score: float | None
    verdicts: Sequence[Verdict]
    conflicts: Sequence[Conflict]
    first_call: CallTranscript | None
    repair_call: CallTranscript | None
    """The call that asked once more, where the first answer could not be read."""

    @property
    def final_call(self) -> CallTranscript | None:
        return (
            self.repair_call if self.repair_call is not None and self.repair_call.text is not None else self.first_call
        )


def build_sample(record: TraceRecord, model: str) -> EvalSample:
    from inspect_ai.log import EvalSample

    trace, usage = record.trace, trace_usage(record)
    asked, answered = _build_messages(record)
    return EvalSample(
        id=sample_id(trace.cell),
        epoch=trace.sample + 1,
        input=asked or f"{trace.cell.topic}, {trace.cell.country} (what was asked is not recorded)",
        target="" if record.human_score is None else f"{record.human_score:g}",
        messages=[*asked, *answered],
        output=_build_output(record, model, answered, usage),
        scores=_build_scores(record) or None,
        metadata=_sample_metadata(record),
        model_usage={} if usage is None else {model: usage},
        started_at=record.first_call.started_at if record.first_call else None,
        total_time=_total_seconds(record),
        uuid=canonical_hash([trace.model, *trace.cell, trace.sample, trace.key])[:22],
        error=_build_error(record),
    )


def sample_id(cell: Cell) -> str:
    """The cell as Inspect shows it."""
    return f"{cell.country}{CELL_SEPARATOR}{cell.topic}"


def _build_messages(record: TraceRecord) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """What was said to the model, and what it said."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    roles = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    last = record.final_call
    asked: list[ChatMessage] = [roles[m.role](content=m.content) for m in last.messages] if last else []
    text = last.text if last else record.trace.text
    return asked, [] if text is None else [ChatMessageAssistant(content=text, source="generate")]


def _build_output(record: TraceRecord, model: str, replies: list[ChatMessage], usage: ModelUsage | None) -> ModelOutput:
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput

    last = record.final_call
    reason = last.finish_reason if last else None
    stop: Any = STOP_REASONS.get(classify_finish_reason(reason), "unknown") if reason else "unknown"
    said = [m for m in replies if isinstance(m, ChatMessageAssistant)]
    return ModelOutput(
        model=(last.served_model if last else None) or model,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop) for message in said],
        usage=usage,
        time=_total_seconds(record),
        error=None if record.trace.outcome.is_answer else record.trace.outcome.value,
    )


def trace_usage(record: TraceRecord) -> ModelUsage | None:
    """Tokens and cost of a trace; None where a provider did not say, since unknown is not zero."""
    from inspect_ai.model import ModelUsage

    calls = [x for x in (record.first_call, record.repair_call) if x is not None and x.text is not None]
    inputs, outputs = [x.prompt_tokens for x in calls], [x.completion_tokens for x in calls]
    costs = [x.cost_usd for x in calls]
    if not calls or None in inputs or None in outputs:
        return None
    read, wrote = sum(x or 0 for x in inputs), sum(x or 0 for x in outputs)
    cost = None if None in costs else sum(x or 0.0 for x in costs)
    return ModelUsage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote, total_cost=cost)


def _total_seconds(record: TraceRecord) -> float | None:
    calls = [x for x in (record.first_call, record.repair_call) if x is not None and x.attempts]
    return sum(x.seconds for x in calls) if calls else None


def _build_scores(record: TraceRecord) -> dict[str, Score]:
    """Our score and the judges' verdicts; what failed is not there."""
    from inspect_ai.scorer import Score

    trace, found = record.trace, dict[str, Score]()
    if trace.score is not None:
        told = (
            {}
            if record.human_score is None
            else {"people": record.human_score, "difference": trace.score - record.human_score}
        )
        found[SCORE_NAME] = Score(value=trace.score, answer=f"{trace.score:g}", explanation=trace.text, metadata=told)
    for v in record.verdicts:
        if v.ruling is None:
            continue
        aspects = {
            "cultural_accuracy": v.cultural_accuracy,
            "logical_consistency": v.logical_consistency,
            "score_fit": v.score_fit,
            "confidence": v.confidence,
        }
        told = {key: value for key, value in aspects.items() if value is not None}
        found[judge_score_name(v.judge)] = Score(value=v.ruling.value, explanation=v.justification, metadata=told)
    return found


def judge_score_name(judge: str) -> str:
    """A judge's verdicts as Inspect names scores."""
    return f"judge:{judge}"


def _sample_metadata(record: TraceRecord) -> dict[str, Any]:
    trace = record.trace
    facts: dict[str, Any] = {
        "country": trace.cell.country,
        "topic": trace.cell.topic,
        "sample": trace.sample,
        "language": trace.language,
        "outcome": trace.outcome.value,
        "key": trace.key,
        "asked_again": trace.repair_key is not None,
        "attempts": sum(x.attempts for x in (record.first_call, record.repair_call) if x is not None),
        "judges_without_verdict": {v.judge: v.outcome.value for v in record.verdicts if v.ruling is None},
        "conflicts": [
            {
                "with": c.right if c.left == trace.model else c.left,
                "kind": c.kind.value,
                "state": c.state.value,
                "upheld": c.winner,
            }
            for c in record.conflicts
        ],
    }
    return {key: value for key, value in facts.items() if value not in (None, {}, [])}


def _build_error(record: TraceRecord) -> Any:
    from inspect_ai.log import EvalError

    outcome = record.trace.outcome
    if outcome.is_answer:
        return None
    why = record.first_call.error if record.first_call else None
    return EvalError(message=f"{outcome.value}: {why}" if why else outcome.value, traceback="", traceback_ansi="")


def sum_usage(usages: Iterable[ModelUsage | None]) -> ModelUsage | None:
    """All together; None where any is not known, and without a cost where any has none."""
    from inspect_ai.model import ModelUsage

    each = list(usages)
    known = [u for u in each if u is not None]
    if not known or len(known) < len(each):
        return None
    costs = [u.total_cost for u in known]
    return ModelUsage(
        input_tokens=sum(u.input_tokens for u in known),
        output_tokens=sum(u.output_tokens for u in known),
        total_tokens=sum(u.total_tokens for u in known),
        total_cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )
