"""The calls of an audit: which questions go to which model, word for word."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from auditor.agents.blinding import author_names, blind_and_truncate
from auditor.agents.identifying_terms import country_terms, other_country_terms, topic_terms
from auditor.agents.localization import language_of_sample, question_prompt_fields
from auditor.agents.task_prompts import answer_schema_name, item_prompt_fields, question_with_options, task_prompt_name
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Call, Cell, Message, Outcome, Purpose, Survey, Trace, canonical_hash, derive_seed
from auditor.errors import ConfigError
from auditor.models.structured import AnswerReview, MoralJudgement, TraceReview
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.prompts import Prompt, load_prompt, read_prompt
from auditor.text_safety import truncate_middle

LABEL_CONSONANTS = "BCDFGHJKLMNPQRSTVWXZ"
"""Of labels: no vowels, so that no label is a word."""


def build_direct_call(config: AuditConfig, survey: Survey, model: ModelSection, cell: Cell, sample: int) -> Call:
    """One sample of a direct score.

    The seed depends on the cell and the sample and not on the model, so that renaming a model changes no call.
    """
    probe = config.direct
    structured = probe.mode == "structured"
    if survey.task is None:
        language = language_of_sample(config, cell.country, sample)
        prompt, fields = load_prompt(f"direct.{probe.mode}", language), question_prompt_fields(survey, cell, language)
        schema = MoralJudgement.__name__
    else:
        prompt, fields = (
            load_prompt(f"{task_prompt_name(survey.task)}.{probe.mode}"),
            item_prompt_fields(survey.task, cell),
        )
        schema = answer_schema_name(survey.task, cell)
    messages = prompt.render(preamble=model.system, max_words=str(probe.max_words), **fields)
    return Call(
        name=model.name,
        model=model.model,
        server=model.api_base,
        messages=messages,
        purpose=Purpose.DIRECT,
        sample=sample,
        params=_request_params(
            model,
            _effective_temperature(model, probe.temperature),
            probe.max_tokens,
            derive_seed(config.seed, *cell, sample),
        ),
        schema=schema if structured else None,
        max_words=probe.max_words if structured else None,
        cell=cell,
    )


def build_review_call(config: AuditConfig, survey: Survey, judge: ModelSection, trace: Trace, text: str) -> Call:
    """One judge's question about one trace.

    Args:
        text: the trace as judges get it, from `blinded`.
    """
    probe = config.probes.review
    messages = _render_review_messages(config, survey, judge, text, trace)
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=messages,
        purpose=Purpose.REVIEW,
        params=judge_params(config, judge, derive_seed(config.seed, "review", *trace.cell, trace.sample)),
        schema=(TraceReview if survey.task is None else AnswerReview).__name__,
        max_words=probe.max_words,
    )


def blind_trace(config: AuditConfig, survey: Survey, trace: Trace) -> str:
    """A trace's text as judges get it, blinded and no longer than `probes.review.max_trace_chars`.

    Of a task, whose question judges are shown, only the author is hidden.
    """
    cell, language = trace.cell, trace.language
    hide = functools.partial(
        blind_and_truncate,
        trace.text or "",
        config.probes.review.max_trace_chars,
        model_names=author_names((m.name, m.model) for m in (*config.models, *config.judge_models)),
        language=language,
    )
    if survey.task is not None:
        return hide()
    return hide(
        country_terms=country_terms(cell.country, language),
        other_country_terms=other_country_terms(tuple(c for c in survey.countries if c != cell.country), language),
        topic_terms=topic_terms(survey, cell.topic, language),
    )


def select_traces_for_review(config: AuditConfig, traces: Iterable[Trace]) -> list[Trace]:
    """The traces that go to judges: of each model and cell all that have a score, or the first few of them."""
    readable = {TraceKey.from_trace(t): t for t in traces if t.outcome is Outcome.OK}
    return [readable[place] for place in select_reviewed(config, readable)]


def _render_review_messages(
    config: AuditConfig, survey: Survey, judge: ModelSection, text: str, trace: Trace
) -> tuple[Message, ...]:
    task = survey.task
    identity = (judge.model, judge.system, judge.params, text, trace.score if task is None else trace.answer)
    values = {
        "label": analyst_label(config.seed, *identity),
        "trace": text,
        "fence": fence_line(text, config.seed, *identity),
        "max_words": str(config.probes.review.max_words),
    }
    if task is None:
        values |= {"score": f"{trace.score:+.2f}", "never": survey.scale[0], "always": survey.scale[1]}
    else:
        shown = truncate_middle(trace.answer or "", config.probes.review.max_trace_chars)
        values |= {"answer": shown, "question": question_with_options(task.item_for(trace.cell))}
    prompt = load_review_prompt(judge, for_task=task is not None)
    return prompt.render(preamble=judge.system, **{name: values[name] for name in prompt.fields})


def load_review_prompt(judge: ModelSection, *, for_task: bool = False) -> Prompt:
    """The template that a judge is asked with: its own, or that of all, for a survey or for a task.

    Raises:
        ConfigError: its own cannot be read, lacks the trace or its fence, or has a placeholder that nothing fills.
    """
    standard = load_prompt("review.task" if for_task else "review")
    if judge.review_prompt is None:
        return standard
    own = read_prompt(judge.review_prompt)
    if unknown := own.fields - standard.fields:
        raise ConfigError(
            f"{judge.review_prompt}: nothing fills the field '{min(unknown)}'.", f"Known: {sorted(standard.fields)}."
        )
    if missing := {"trace", "fence", "answer" if for_task else "score"} - own.fields:
        raise ConfigError(f"{judge.review_prompt}: the field '{min(missing)}' is missing.", "Add it.")
    return own


def analyst_label(seed: int, *identity: object) -> str:
    """What an analyst is called before one judge and for one item only, the same in every run."""
    number = derive_seed(seed, "label", *identity)
    return "".join(LABEL_CONSONANTS[number // len(LABEL_CONSONANTS) ** i % len(LABEL_CONSONANTS)] for i in range(4))


def fence_line(text: str, seed: int, *identity: object) -> str:
    """A line that the text does not contain and its author could not foresee, the same in every run."""
    digest = canonical_hash([seed, "fence", *map(str, identity), text])
    while (line := f"=== {digest[:16]} ===") in text or digest[:16] in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return line


def judge_params(config: AuditConfig, judge: ModelSection, seed: int) -> dict[str, object]:
    """What is sent beside the messages to a judge."""
    probe = config.probes.review
    temperature = probe.temperature if config.judges == "peers" else _effective_temperature(judge, probe.temperature)
    return _request_params(judge, temperature, probe.max_tokens, seed)


def _request_params(model: ModelSection, temperature: float, max_tokens: int, seed: int) -> dict[str, object]:
    record = {"answers": _file_digest(model.answers)} if model.answers else {}
    return {"temperature": temperature, "max_tokens": max_tokens, "seed": seed, **model.params, **record}


@functools.cache
def _file_digest(filename: str) -> str:
    """SHA-256 of a record, so that another record's answers are other answers; empty where there is no file."""
    path = Path(filename)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _effective_temperature(model: ModelSection, default_temperature: float) -> float:
    return default_temperature if model.temperature is None else model.temperature
