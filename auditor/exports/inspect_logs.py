"""Export an audit as logs of Inspect AI, one per model, with Inspect's own writer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.atomic_files import make_folder, open_replacements
from auditor.domain import AnswerKind, Cell, Method, Outcome, Ruling, Task, canonical_hash
from auditor.errors import UsageError
from auditor.exports.model_figures import select_figures
from auditor.exports.traces import TraceRecord, join_trace_records
from auditor.extras import load_extra
from auditor.lazy_imports import import_when_used
from auditor.metrics.intervals.estimate import Estimate, proportion
from auditor.models.finish_reasons import FinishCategory, classify_finish_reason
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.data.task import build_task_report
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.schema import SCHEMA_VERSION
from auditor.tasks import describe_answer_format, is_correct
from auditor.text_safety import slugify

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalScore
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

if not TYPE_CHECKING:
    inspect_ai_log = import_when_used("inspect_ai.log")
    inspect_ai_model = import_when_used("inspect_ai.model")
    scorer = import_when_used("inspect_ai.scorer")
    viewer = import_when_used("inspect_ai.viewer")
else:
    import inspect_ai.log as inspect_ai_log
    import inspect_ai.model as inspect_ai_model
    from inspect_ai import scorer, viewer


SCORE_NAME = "score"
"""Name of auditor's own score of a trace; a judge's verdict is named `judge:NAME`."""
METADATA_KEY = "auditor"
"""Key of the log's metadata that identifies logs written by auditor."""
TASK_KEY = "task"
"""Key of that metadata with the format of answers, by the keys of a configuration's `task`."""
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
    trace, usage = record.trace, sum_trace_usage(record)
    prompt_messages, reply_messages = _build_messages(record)
    item = task.item_for(trace.cell) if task else None
    question = "\n\n".join(filter(None, (item.context, item.question))) if item else ""
    unknown_prompt = f"{trace.cell.topic}, {trace.cell.country} (what was asked is not recorded)"
    return inspect_ai_log.EvalSample(
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
    roles = {
        "system": inspect_ai_model.ChatMessageSystem,
        "user": inspect_ai_model.ChatMessageUser,
        "assistant": inspect_ai_model.ChatMessageAssistant,
    }
    final_call = record.final_call
    prompt_messages: list[ChatMessage] = (
        [roles[message.role](content=message.content) for message in final_call.messages] if final_call else []
    )
    text = final_call.text if final_call else record.trace.text
    return prompt_messages, [] if text is None else [
        inspect_ai_model.ChatMessageAssistant(content=text, source="generate")
    ]


def _build_output(record: TraceRecord, model: str, replies: list[ChatMessage], usage: ModelUsage | None) -> ModelOutput:
    """Build the output of a sample: the answer (no choice if there was none), its stop reason, usage and error."""
    final_call = record.final_call
    finish_reason = final_call.finish_reason if final_call else None
    stop_reason: Any = (
        STOP_REASONS.get(classify_finish_reason(finish_reason), "unknown") if finish_reason else "unknown"
    )
    assistant_messages = [message for message in replies if isinstance(message, inspect_ai_model.ChatMessageAssistant)]
    return inspect_ai_model.ModelOutput(
        model=(final_call.served_model if final_call else None) or model,
        choices=[
            inspect_ai_model.ChatCompletionChoice(message=message, stop_reason=stop_reason)
            for message in assistant_messages
        ],
        usage=usage,
        time=_total_seconds(record),
        error=None if record.trace.outcome.is_answer else record.trace.outcome.value,
    )


def sum_trace_usage(record: TraceRecord) -> ModelUsage | None:
    """Tokens and cost (US dollars) of a trace's calls; None if the provider did not report tokens for all of them."""
    calls = [call for call in record.calls if call.text is not None]
    input_counts, output_counts = [call.prompt_tokens for call in calls], [call.completion_tokens for call in calls]
    costs = [call.cost_usd for call in calls]
    if not calls or None in input_counts or None in output_counts:
        return None
    input_tokens, output_tokens = sum(count or 0 for count in input_counts), sum(count or 0 for count in output_counts)
    cost = None if None in costs else sum(cost or 0.0 for cost in costs)
    return inspect_ai_model.ModelUsage(
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
    trace, scores = record.trace, dict[str, scorer.Score]()
    if trace.score is not None:
        comparison_with_people = (
            {}
            if record.human_score is None
            else {"people": record.human_score, "difference": trace.score - record.human_score}
        )
        scores[SCORE_NAME] = scorer.Score(
            value=trace.score, answer=f"{trace.score:g}", explanation=trace.text, metadata=comparison_with_people
        )
    if task is not None and trace.answer is not None:
        is_right = is_correct(task, task.item_for(trace.cell), trace.answer)
        value: str | float = CORRECT if is_right else INCORRECT
        if is_right is None:
            value = float(trace.answer) if task.kind is AnswerKind.SCORE else trace.answer
        scores[SCORE_NAME] = scorer.Score(value=value, answer=trace.answer, explanation=trace.text)
    for verdict in record.verdicts:
        if verdict.ruling is None:
            continue
        ratings: dict[str, float | bool] = dict(verdict.aspects)
        if verdict.confidence is not None:
            ratings["confidence"] = verdict.confidence
        scores[judge_score_name(verdict.judge)] = scorer.Score(
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
    outcome = record.trace.outcome
    if outcome.is_answer:
        return None
    call_error = record.first_call.error if record.first_call else None
    return inspect_ai_log.EvalError(
        message=f"{outcome.value}: {call_error}" if call_error else outcome.value, traceback="", traceback_ansi=""
    )


def sum_usage(usages: Iterable[ModelUsage | None]) -> ModelUsage | None:
    """Sum of usages; None if there are none or any is None. The total cost is None if any cost is."""
    all_usages = list(usages)
    known_usages = [usage for usage in all_usages if usage is not None]
    if not known_usages or len(known_usages) < len(all_usages):
        return None
    costs = [usage.total_cost for usage in known_usages]
    return inspect_ai_model.ModelUsage(
        input_tokens=sum(usage.input_tokens for usage in known_usages),
        output_tokens=sum(usage.output_tokens for usage in known_usages),
        total_tokens=sum(usage.total_tokens for usage in known_usages),
        total_cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


INTERVAL_NOTE = "95%, over other countries and topics; of the cells alone where there are too few of either"
TASK_INTERVAL_NOTE = "95%, over other items"


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A log that was written: its path, its model, the number of its samples and how many of them have a score."""

    path: Path
    model: str
    samples: int
    scored: int


def export_inspect(db: Database, name: str, folder: Path) -> list[WrittenLog]:
    """Write the traces of an audit as Inspect logs. Earlier logs of the same audit and models are replaced, or none.

    Args:
        db: the database that holds the audit.
        name: name of the audit.
        folder: created if missing; the folder for `inspect view --log-dir`.

    Raises:
        StorageError: there is no such audit.
        UsageError: Inspect is not installed, the audit has no traces, or the folder cannot be written to.
    """
    load_extra("inspect_ai.log", "inspect")
    source = load_source(db, name)
    figures_by_model = _compute_figures(source)
    make_folder(folder)
    logs, used_names = [], set[str]()
    with open_replacements(folder) as temporary_folder:
        for model in source.models:
            audit_id = source.audit.id
            traces = results.load_traces(db, audit_id, model=model)
            verdicts = results.load_verdicts(db, audit_id, model=model)
            records = join_trace_records(db, traces, verdicts, source.conflicts, source.survey.scores)
            if not records:
                continue
            log = _build_log(source, model, records, figures_by_model.get(model, {}))
            file_name = f"{_unique_name(f'{slugify(name)}_{slugify(model)}', used_names)}.eval"
            inspect_ai_log.write_eval_log(log, temporary_folder / file_name)
            logs.append(WrittenLog(folder / file_name, model, len(records), sum(map(_has_score, records))))
    if not logs:
        raise UsageError(
            f"audit '{name}' has no traces.", "Inspect logs consist of answers: name an audit that has answers."
        )
    return logs


def _unique_name(name: str, used_names: set[str]) -> str:
    """Return a name, with `-2`, `-3`, … appended if it is used already, and add it to `used_names`."""
    candidate, number = name, 2
    while candidate in used_names:
        candidate, number = f"{name}-{number}", number + 1
    used_names.add(candidate)
    return candidate


# --- the log -----------------------------------------------------------------------------------------------------


def _build_log(
    source: ReportSource, model: str, records: Sequence[TraceRecord], figures: Mapping[str, float | None]
) -> EvalLog:
    """Build a model's Inspect log: one sample per trace, the report's figures, and the tokens used.

    The token usage is left out unless it is known for every sample with an answer.
    """
    config, audit = source.config, source.audit
    provider = config.model(model).model if config else model
    samples = [build_sample(record, provider, source.survey.task) for record in records]
    usage = sum_usage(sample.model_usage.get(provider) for sample in samples if sample.output.choices)
    n_completed = sum(sample.error is None for sample in samples)
    return inspect_ai_log.EvalLog(
        status="success" if audit.stage in audits.FINAL_STAGES else "cancelled",
        eval=_build_spec(source, model, provider, records),
        results=inspect_ai_log.EvalResults(
            total_samples=len(samples),
            completed_samples=n_completed,
            scores=[*_build_eval_scores(records, figures)],
        ),
        stats=inspect_ai_log.EvalStats(
            started_at=audit.created_at,
            completed_at=audit.finished_at or audit.updated_at,
            model_usage={} if usage is None else {provider: usage},
        ),
        samples=samples,
    )


def _build_spec(source: ReportSource, model: str, provider: str, records: Sequence[TraceRecord]) -> Any:
    """Build the head of a model's log: ids, data set, model, judges and settings; returns Inspect's `EvalSpec`.

    Settings are left out for an audit without a config, which was imported. `provider` is the provider's name of the
    model, such as `openai/gpt-4o`.
    """
    audit, config, survey = source.audit, source.config, source.survey
    sample_ids = list(dict.fromkeys(sample_id(record.trace.cell) for record in records))
    model_section = config.model(model) if config else None
    probe = config.direct if config else None
    temperature = (
        model_section.temperature
        if model_section and model_section.temperature is not None
        else probe.temperature
        if probe
        else None
    )
    judges = config.judges_of(model) if config else []
    eval_id = canonical_hash([audit.name, audit.created_at, model])[:22]
    return inspect_ai_log.EvalSpec(
        eval_id=eval_id,
        run_id=canonical_hash([audit.name, audit.created_at])[:22],
        task_id=eval_id,
        created=audit.created_at,
        task=f"auditor/{audit.name}",
        task_description=f"Answers of {model}: {survey.title}"
        if survey.task
        else f"How well {model} agrees with the people of each country: {survey.title}",
        dataset=inspect_ai_log.EvalDataset(name=survey.name, samples=len(sample_ids), sample_ids=list(sample_ids)),
        model=provider,
        model_base_url=model_section.api_base if model_section else None,
        model_generate_config=inspect_ai_model.GenerateConfig(
            temperature=temperature, max_tokens=probe.max_tokens if probe else None
        ),
        model_roles={"judge": [inspect_ai_model.ModelConfig(model=judge.model) for judge in judges]}
        if judges
        else None,
        config=inspect_ai_log.EvalConfig(epochs=max(record.trace.sample for record in records) + 1),
        packages={"auditor": metadata.version("auditor")},
        viewer=viewer.ViewerConfig(trust_content=False),  # a model's text is untrusted: show it as text, not as markup
        metadata={METADATA_KEY: _audit_metadata(source, model)},
    )


def _audit_metadata(source: ReportSource, model: str) -> dict[str, Any]:
    """Build the entry of the log's metadata that says which audit, model and survey the log is about."""
    audit, survey = source.audit, source.survey
    return {
        **({TASK_KEY: describe_answer_format(survey.task)} if survey.task else {}),
        "version": metadata.version("auditor"),
        "schema_version": SCHEMA_VERSION,
        "audit": audit.name,
        "audit_id": audit.id,
        "config_hash": audit.config_hash,
        "stage": audit.stage,
        "model": model,
        "survey": survey.title,
        "survey_source": survey.source,
        "scale": {"-1": survey.scale[0], "+1": survey.scale[1]},
    }


def _has_score(record: TraceRecord) -> bool:
    """Whether the sample of a trace has auditor's own score."""
    return record.trace.score is not None or record.trace.answer is not None


def _build_eval_scores(
    records: Sequence[TraceRecord], report_figures: Mapping[str, float | None]
) -> Iterable[EvalScore]:
    """Yield the report's figures with their 95% CIs, then each judge's share of VALID; unmeasured ones are left out."""
    outcome_counts = {outcome.value: sum(record.trace.outcome is outcome for record in records) for outcome in Outcome}
    n_scored = sum(map(_has_score, records))
    yield inspect_ai_log.EvalScore(
        name=SCORE_NAME,
        scorer=SCORE_NAME,
        scored_samples=n_scored,
        unscored_samples=len(records) - n_scored,
        metrics=_build_eval_metrics(report_figures),
        metadata={
            "outcomes": {name: n for name, n in outcome_counts.items() if n},
            "interval": TASK_INTERVAL_NOTE if "accuracy" in report_figures else INTERVAL_NOTE,
        },
    )
    rulings: defaultdict[str, list[Ruling | None]] = defaultdict(list)
    for verdict in (verdict for record in records for verdict in record.verdicts):
        rulings[verdict.judge].append(verdict.ruling)
    for judge, judge_rulings in rulings.items():
        cast_rulings = [ruling for ruling in judge_rulings if ruling is not None]
        valid_share = proportion(sum(ruling is Ruling.VALID for ruling in cast_rulings), len(cast_rulings))
        figures = {"valid": valid_share.value, "valid_ci_low": valid_share.ci_low, "valid_ci_high": valid_share.ci_high}
        yield inspect_ai_log.EvalScore(
            name=judge_score_name(judge),
            scorer=judge_score_name(judge),
            scored_samples=len(cast_rulings),
            unscored_samples=len(judge_rulings) - len(cast_rulings),
            metrics=_build_eval_metrics(figures),
        )


def _compute_figures(source: ReportSource) -> dict[str, dict[str, float | None]]:
    """Each model's figures of agreement with people, or accuracy on a task, by name, with the ends of their 95% CIs.

    Intervals are over countries and topics, or over items.
    """
    if task := build_task_report(source):
        return {row.model: _flatten_estimates("answers", row.accuracy.n, select_figures(row)) for row in task.models}
    return {
        row.model: _flatten_estimates("cells", row.n, select_figures(row))
        for row in compute_alignment(source)
        if row.method == Method.DIRECT
    }


def _flatten_estimates(counted: str, n: int, estimates: Mapping[str, Estimate]) -> dict[str, float | None]:
    """A count, and the value and the ends of the interval of each estimate, by name."""
    figures: dict[str, float | None] = {counted: n}
    for name, estimate in estimates.items():
        figures |= {name: estimate.value, f"{name}_ci_low": estimate.ci_low, f"{name}_ci_high": estimate.ci_high}
    return figures


def _build_eval_metrics(figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Convert figures to Inspect's metrics by name; a figure that is None is left out."""
    return {
        name: inspect_ai_log.EvalMetric(name=name, value=value) for name, value in figures.items() if value is not None
    }
