"""Convert a trace to a sample of Inspect AI: the prompt, the answer, the score and the judges' verdicts.

A trace without a score becomes a sample without a score. A failed call keeps its error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from auditor.domain import Cell, Task, canonical_hash
from auditor.exports.trace_records import TraceRecord
from auditor.models.finish_reasons import FinishCategory, classify_finish_reason
from auditor.tasks import is_correct

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

SCORE_NAME = "score"
"""Name of auditor's own score of a trace; a judge's verdict is named `judge:NAME`."""
METADATA_KEY = "auditor"
"""Key of the log's metadata that identifies logs written by auditor."""
STOP_REASONS = {
    FinishCategory.COMPLETE: "stop",
    FinishCategory.TOOL_CALL: "tool_calls",
    FinishCategory.TRUNCATED: "max_tokens",
    FinishCategory.REFUSED: "content_filter",
}
"""Inspect's stop reasons; the other categories have no counterpart and become `unknown`."""
CORRECT, INCORRECT = "C", "I"
"""Inspect's grades of an answer."""
CELL_SEPARATOR = " | "
"""Separates country and topic in a sample's id."""


def build_sample(record: TraceRecord, model: str, task: Task | None = None) -> EvalSample:
    """Build the Inspect sample of a trace.

    Args:
        model: the provider's name of the model, such as `openai/gpt-4o`.
        task: of an audit of a task; its samples have the question, the options and the right answer of their item.
    """
    from inspect_ai.log import EvalSample

    trace, usage = record.trace, sum_trace_usage(record)
    prompt_messages, reply_messages = _build_messages(record)
    item = task.item_for(trace.cell) if task else None
    question = "\n\n".join(filter(None, (item.context, item.question))) if item else ""
    unknown_prompt = f"{trace.cell.topic}, {trace.cell.country} (what was asked is not recorded)"
    return EvalSample(
        id=sample_id(trace.cell),
        epoch=trace.sample + 1,
        input=question or prompt_messages or unknown_prompt,
        choices=list(item.options) if item and item.options else None,
        target=item.truth or "" if item else "" if record.human_score is None else f"{record.human_score:g}",
        messages=[*prompt_messages, *reply_messages],
        output=_build_output(record, model, reply_messages, usage),
        scores=_build_scores(record, task) or None,
        metadata=_sample_metadata(record),
        model_usage={} if usage is None else {model: usage},
        started_at=record.first_call.started_at if record.first_call else None,
        total_time=_total_seconds(record),
        uuid=canonical_hash([trace.model, *trace.cell, trace.sample, trace.key])[:22],
        error=_build_error(record),
    )


def sample_id(cell: Cell) -> str:
    """Id of a cell's samples: `COUNTRY | TOPIC`; of an item of a task, the item's."""
    return f"{cell.country}{CELL_SEPARATOR}{cell.topic}" if cell.country else cell.topic


def _build_messages(record: TraceRecord) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """Messages sent to the model, and the reply in a list, which is empty if there was none."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    roles = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    final_call = record.final_call
    prompt_messages: list[ChatMessage] = (
        [roles[message.role](content=message.content) for message in final_call.messages] if final_call else []
    )
    text = final_call.text if final_call else record.trace.text
    return prompt_messages, [] if text is None else [ChatMessageAssistant(content=text, source="generate")]


def _build_output(record: TraceRecord, model: str, replies: list[ChatMessage], usage: ModelUsage | None) -> ModelOutput:
    """Build the output of a sample: the answer (no choice if there was none), its stop reason, usage and error."""
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput

    final_call = record.final_call
    finish_reason = final_call.finish_reason if final_call else None
    stop_reason: Any = (
        STOP_REASONS.get(classify_finish_reason(finish_reason), "unknown") if finish_reason else "unknown"
    )
    assistant_messages = [message for message in replies if isinstance(message, ChatMessageAssistant)]
    return ModelOutput(
        model=(final_call.served_model if final_call else None) or model,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop_reason) for message in assistant_messages],
        usage=usage,
        time=_total_seconds(record),
        error=None if record.trace.outcome.is_answer else record.trace.outcome.value,
    )


def sum_trace_usage(record: TraceRecord) -> ModelUsage | None:
    """Tokens and cost (US dollars) of a trace's calls; None if the provider did not report tokens for all of them."""
    from inspect_ai.model import ModelUsage

    calls = [call for call in record.calls if call.text is not None]
    input_counts, output_counts = [call.prompt_tokens for call in calls], [call.completion_tokens for call in calls]
    costs = [call.cost_usd for call in calls]
    if not calls or None in input_counts or None in output_counts:
        return None
    input_tokens, output_tokens = sum(count or 0 for count in input_counts), sum(count or 0 for count in output_counts)
    cost = None if None in costs else sum(cost or 0.0 for cost in costs)
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        total_cost=cost,
    )


def _total_seconds(record: TraceRecord) -> float | None:
    """Total latency of a trace's calls in seconds; None if no request of them is recorded."""
    calls = [call for call in record.calls if call.attempts]
    return sum(call.seconds for call in calls) if calls else None


def _build_scores(record: TraceRecord, task: Task | None) -> dict[str, Score]:
    """The trace's score and the judges' verdicts by score name; a missing score or verdict has no entry.

    An answer to a task is `C` (correct) or `I` (incorrect), or itself where the right one is not known.
    """
    from inspect_ai.scorer import Score

    trace, scores = record.trace, dict[str, Score]()
    if trace.score is not None:
        comparison_with_people = (
            {}
            if record.human_score is None
            else {"people": record.human_score, "difference": trace.score - record.human_score}
        )
        scores[SCORE_NAME] = Score(
            value=trace.score, answer=f"{trace.score:g}", explanation=trace.text, metadata=comparison_with_people
        )
    if task is not None and trace.answer is not None:
        is_right = is_correct(task, task.item_for(trace.cell), trace.answer)
        grade = trace.answer if is_right is None else CORRECT if is_right else INCORRECT
        scores[SCORE_NAME] = Score(value=grade, answer=trace.answer, explanation=trace.text)
    for verdict in record.verdicts:
        if verdict.ruling is None:
            continue
        ratings: dict[str, float | bool] = dict(verdict.aspects)
        if verdict.confidence is not None:
            ratings["confidence"] = verdict.confidence
        scores[judge_score_name(verdict.judge)] = Score(
            value=verdict.ruling.value, explanation=verdict.justification, metadata=ratings
        )
    return scores


def judge_score_name(judge: str) -> str:
    """Name of the Inspect score that holds a judge's verdicts."""
    return f"judge:{judge}"


def _sample_metadata(record: TraceRecord) -> dict[str, Any]:
    """Build the metadata of a sample: what the trace is about and how it came about; empty entries are left out."""
    trace = record.trace
    metadata: dict[str, Any] = {
        "country": trace.cell.country,
        "topic": trace.cell.topic,
        "sample": trace.sample,
        "language": trace.language,
        "outcome": trace.outcome.value,
        "key": trace.key,
        "asked_again": trace.repair_key is not None,
        "attempts": sum(call.attempts for call in record.calls),
        "judges_without_verdict": {
            verdict.judge: verdict.outcome.value for verdict in record.verdicts if verdict.ruling is None
        },
        "conflicts": [
            {
                "with": conflict.right if conflict.left == trace.model else conflict.left,
                "kind": conflict.kind.value,
                "state": conflict.state.value,
                "upheld": conflict.winner,
            }
            for conflict in record.conflicts
        ],
    }
    return {key: value for key, value in metadata.items() if value not in (None, "", {}, [])}


def _build_error(record: TraceRecord) -> Any:
    """Build Inspect's `EvalError` for a call that failed; None if the model answered, readably or not."""
    from inspect_ai.log import EvalError

    outcome = record.trace.outcome
    if outcome.is_answer:
        return None
    call_error = record.first_call.error if record.first_call else None
    return EvalError(
        message=f"{outcome.value}: {call_error}" if call_error else outcome.value, traceback="", traceback_ansi=""
    )


def sum_usage(usages: Iterable[ModelUsage | None]) -> ModelUsage | None:
    """Sum of usages; None if there are none or any is None. The total cost is None if any cost is."""
    from inspect_ai.model import ModelUsage

    all_usages = list(usages)
    known_usages = [usage for usage in all_usages if usage is not None]
    if not known_usages or len(known_usages) < len(all_usages):
        return None
    costs = [usage.total_cost for usage in known_usages]
    return ModelUsage(
        input_tokens=sum(usage.input_tokens for usage in known_usages),
        output_tokens=sum(usage.output_tokens for usage in known_usages),
        total_tokens=sum(usage.total_tokens for usage in known_usages),
        total_cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )
