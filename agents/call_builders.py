"""Building the calls of an audit: direct questions, items of a task, and review requests to judges."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from auditor.agents.blinding import author_names, blind_and_truncate, identifying_terms
from auditor.agents.localization import language_of_sample, question_prompt_fields, wording_of_sample
from auditor.atomic_files import hash_file
from auditor.config import AuditConfig, ModelSection
from auditor.config.base import PromptForm
from auditor.config.probes import DEFAULT_REVIEW_WORDS, DirectProbe
from auditor.domain import (
    ENGLISH,
    AnswerKind,
    Call,
    Cell,
    DeclaredCapabilities,
    LogprobMeasure,
    Message,
    Outcome,
    Purpose,
    ReasoningSettings,
    Survey,
    Task,
    TaskItem,
    Trace,
    canonical_hash,
    derive_seed,
    lettered_options,
)
from auditor.domain.decisions import SURVEY_REVIEWS, TASK_REVIEWS, aspect_questions
from auditor.errors import ConfigError
from auditor.models.answer_schemas import (
    MoralJudgement,
    ReasonedJudgement,
    ScoredAnswer,
    StepwiseJudgement,
    TaskAnswer,
    choice_schema_name,
)
from auditor.models.logprobs import measure_params
from auditor.models.structured import find_schema, limited_schema
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.prompts import Prompt, load_prompt, read_prompt
from auditor.prompts.language_data import load_stand_in_trace
from auditor.text_safety import truncate_middle

STRUCTURE_PROMPT = "structure"


@functools.cache
def describe_structure(schema_name: str, max_words: int, language: str = ENGLISH) -> str:
    """The instruction to answer with JSON of a schema, which is added to the last user message.

    Args:
        schema_name: name of the schema, see `find_schema`.
        max_words: limit on each text of the structure.
        language: ISO 639-1 code of the language of the question.
    """
    schema_text = json.dumps(limited_schema(find_schema(schema_name), max_words), ensure_ascii=False)
    return load_prompt(STRUCTURE_PROMPT, language).render(schema=schema_text)[-1].content


def task_prompt_name(task: Task) -> str:
    """Name of the prompt for the task's kind of answer, without the suffix for the mode."""
    kind: str = task.kind.value
    if task.kind is AnswerKind.EXACT:
        kind = "number" if task.numbers else "words"
    return f"task.{kind}"


def item_prompt_fields(task: Task, cell: Cell) -> dict[str, str]:
    """Values for the placeholders of an item's prompt: question, and options of a choice or range of a score."""
    item = task.item_for(cell)
    fields = {"question": question_with_context(item)}
    if task.kind is AnswerKind.CHOICE:
        fields["options"] = "\n".join(lettered_options(item))
    if task.range is not None:
        fields |= {"least": f"{task.range[0]:g}", "most": f"{task.range[1]:g}"}
    return fields


def answer_schema_name(task: Task, cell: Cell) -> str:
    """Name of the schema of a structured answer to an item."""
    if task.kind is AnswerKind.CHOICE:
        return choice_schema_name(len(task.item_for(cell).options))
    return (ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer).__name__


def question_with_context(item: TaskItem) -> str:
    """The question, after its context if it has one."""
    return f"{item.context}\n\n{item.question}" if item.context else item.question


def question_with_options(item: TaskItem) -> str:
    """The question with its context and its options, as shown to judges."""
    return "\n".join([question_with_context(item), *lettered_options(item)])


PURPOSES_WITH_RECORD = frozenset({Purpose.DIRECT, Purpose.REVIEW, Purpose.GUESS, Purpose.REWRITE, Purpose.CONTEST})
"""Purposes whose calls name the model's file of recorded answers. Keys for other purposes are on disk without it."""


def build_call(
    model: ModelSection,
    purpose: Purpose,
    messages: tuple[Message, ...],
    *,
    temperature: float,
    max_tokens: int,
    top_p: float | None = None,
    seed: int,
    sample: int = 0,
    schema: str | None = None,
    max_words: int | None = None,
    cell: Cell | None = None,
    language: str = ENGLISH,
) -> Call:
    """Build the call that asks a model for a free text or a structured answer.

    Args:
        model: the model's section in the config, whose `params` override the four parameters below.
        purpose: what the answer is for.
        messages: the chat, in order.
        temperature: sampling temperature, from 0 to 2; see `effective_temperature`.
        max_tokens: limit on output tokens.
        top_p: probability of the words that are drawn from; None for the provider's default.
        seed: must not depend on the model's name, so that renaming a model changes no call.
        sample: index of this sample among equal questions, from 0.
        schema: name of the structured answer's schema; None for free text.
        max_words: maximum length of each text in a structured answer; None for no limit.
        cell: the cell of a direct question.
        language: ISO 639-1 code of the messages' language.
    """
    nucleus = {} if top_p is None else {"top_p": top_p}  # keys of calls without it are on disk
    params = request_params(model, temperature=temperature, max_tokens=max_tokens, seed=seed, **nucleus)
    if model.answers and purpose in PURPOSES_WITH_RECORD:
        params["answers"] = file_digest(model.answers)
    return Call(
        **model_fields(model),
        messages=messages,
        purpose=purpose,
        sample=sample,
        params=params,
        schema=schema,
        max_words=max_words if schema else None,
        cell=cell,
        language=language,
    )


def build_judge_call(
    config: AuditConfig,
    judge: ModelSection,
    purpose: Purpose,
    messages: tuple[Message, ...],
    *,
    about: tuple[object, ...],
    schema: str,
    max_words: int | None = None,
) -> Call:
    """Build the call that asks a judge about traces, with the temperature and length of `probes.review`.

    Args:
        about: what is judged, such as the cell and the sample; the seed depends on it, and not on the judge.
        schema, max_words: see `build_call`.
    """
    return build_call(
        judge,
        purpose,
        messages,
        **review_sampling(config, judge),
        seed=derive_seed(config.seed, purpose.value, *about),
        schema=schema,
        max_words=max_words,
    )


def build_logprob_call(
    model: ModelSection,
    purpose: Purpose,
    messages: tuple[Message, ...],
    measure: LogprobMeasure,
    continuations: tuple[str, ...] = (),
) -> Call:
    """Build the call that measures the log-probabilities of continuations, or of the next token without any."""
    from auditor.models.continuation import weights_identity  # these modules load httpx (0.5 s)

    is_local = measure is LogprobMeasure.CONTINUATION
    params = {"weights": weights_identity(model)} if is_local else {**measure_params(measure), **model.params}
    return Call(
        **model_fields(model, on_this_machine=is_local),
        messages=messages,
        purpose=purpose,
        params=params,
        measure=measure,
        continuations=continuations,
    )


class SamplingSettings(TypedDict):
    """How answers are sampled, if the model's `params` do not say otherwise."""

    temperature: float
    max_tokens: int
    top_p: NotRequired[float]


def direct_sampling(config: AuditConfig, model: ModelSection) -> SamplingSettings:
    """How a model's direct answers are sampled."""
    probe = config.direct
    settings = SamplingSettings(
        temperature=effective_temperature(model, probe.temperature), max_tokens=probe.max_tokens
    )
    if probe.top_p is not None:
        settings["top_p"] = probe.top_p
    return settings


def review_sampling(config: AuditConfig, judge: ModelSection) -> SamplingSettings:
    """How a judge's reviews are sampled. If the models judge each other, none has a temperature of its own."""
    probe = config.probes.review
    is_peer = config.judges == "peers"
    temperature = probe.temperature if is_peer else effective_temperature(judge, probe.temperature)
    return {"temperature": temperature, "max_tokens": probe.max_tokens}


def request_params(model: ModelSection, **params: Any) -> dict[str, Any]:
    """The parameters of a request to a model, whose own `params` take precedence."""
    return {**params, **model.params}


def effective_temperature(model: ModelSection, default_temperature: float) -> float:
    """The temperature configured for the model, or the default if it has none."""
    return default_temperature if model.temperature is None else model.temperature


class ModelFields(TypedDict):
    """Fields of `Call` that every call to one model shares."""

    name: str
    model: str
    server: str | None
    base_model: str | None
    reasoning: ReasoningSettings | None
    declared: DeclaredCapabilities | None


def model_fields(model: ModelSection, *, on_this_machine: bool = False) -> ModelFields:
    """The fields of a call that come from its model's section.

    Args:
        model: the model's section.
        on_this_machine: whether the call is computed from local weights, which have no server and do not think.
    """
    return ModelFields(
        name=model.name,
        model=model.model,
        server=None if on_this_machine else model.api_base,
        base_model=model.base_model,
        reasoning=None if on_this_machine or model.reasoning is None else model.reasoning.settings,
        declared=None if on_this_machine or model.capabilities is None else model.capabilities.declared,
    )


def file_digest(filename: str) -> str:
    """SHA-256 of a file of recorded answers or verdicts, so that a changed file counts; empty if it does not exist."""
    path = Path(filename)
    if not path.is_file():
        return ""
    status = path.stat()
    return _hash_version(path, status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _hash_version(path: Path, *version: int) -> str:
    """SHA-256 of a file; `version` makes the cache miss once it has changed, as between two runs of a notebook."""
    return hash_file(path)


LABEL_CONSONANTS = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters of labels; without vowels no label is a word."""


def build_direct_call(config: AuditConfig, survey: Survey, model: ModelSection, cell: Cell, sample: int) -> Call:
    """Build the call that asks a model the question on a cell, or the item of a task, for one sample of its answer."""
    probe = config.direct
    language = ENGLISH if survey.task is not None else language_of_sample(config, cell.country, sample)
    if survey.task is None:
        wording = wording_of_sample(config, survey, sample)
        prompt = load_prompt(probe.prompt_name, language)
        fields = question_prompt_fields(survey, cell, language, wording)
        schema = None
    else:
        prompt, fields = (
            load_prompt(f"{task_prompt_name(survey.task)}.{probe.mode}"),
            item_prompt_fields(survey.task, cell),
        )
        schema = answer_schema_name(survey.task, cell)
    if "max_words" in prompt.fields:
        fields = {**fields, "max_words": str(probe.max_words)}
    messages = prompt.render(preamble=model.system, **fields)
    return build_question_call(config, model, cell, sample, messages, language, schema=schema)


def build_question_call(
    config: AuditConfig,
    model: ModelSection,
    cell: Cell,
    sample: int,
    messages: tuple[Message, ...],
    language: str,
    *,
    schema: str | None = None,
) -> Call:
    """Build the call that puts a question on a cell, or an item of a task, in given words.

    Args:
        schema: name of the schema of a structured answer; None for that of a survey's standard question.
    """
    probe = config.direct
    return build_call(
        model,
        Purpose.DIRECT,
        messages,
        **direct_sampling(config, model),
        seed=derive_seed(config.seed, *cell, sample),
        sample=sample,
        schema=(schema or _select_schema(probe).__name__) if probe.mode == "structured" else None,
        max_words=probe.max_words,
        cell=cell,
        language=language,
    )


def _select_schema(probe: DirectProbe) -> type[MoralJudgement]:
    """The schema of a structured answer to a survey's question."""
    if probe.form == "paper":
        return StepwiseJudgement
    return MoralJudgement if probe.schema_version == 1 else ReasonedJudgement


def build_review_call(config: AuditConfig, survey: Survey, judge: ModelSection, trace: Trace, text: str) -> Call:
    """Build the call that asks one judge for a verdict on one trace.

    Args:
        trace: the trace judged; its score or answer is shown, and its cell and sample determine the seed.
        text: the trace's text as shown to judges, from `blind_trace`.
    """
    for_task = survey.task is not None
    is_limited = config.probes.review.max_words != DEFAULT_REVIEW_WORDS
    return build_judge_call(
        config,
        judge,
        Purpose.REVIEW,
        _render_review_messages(config, survey, judge, text, trace),
        about=(*trace.cell, trace.sample),
        schema=(TASK_REVIEWS if for_task else SURVEY_REVIEWS)[is_limited],
        max_words=config.probes.review.max_words,
    )


def blind_trace(config: AuditConfig, survey: Survey, trace: Trace) -> str:
    """A trace's text as shown to judges: blinded, and at most `probes.review.max_trace_chars` long.

    For a task only the author is masked, since judges see the question.
    """
    cell, language = trace.cell, trace.language
    blind = functools.partial(
        blind_and_truncate,
        trace.text or "",
        config.probes.review.max_trace_chars,
        model_names=author_names(tuple((model.name, model.model) for model in config.models_by_name.values())),
        language=language,
    )
    if survey.task is not None:
        return blind()
    return blind(terms=identifying_terms(survey, cell.country, cell.topic, language))


def select_traces_for_review(config: AuditConfig, traces: Iterable[Trace]) -> list[Trace]:
    """Select the traces for review: of each model and cell all `ok` traces, or the first few; see `select_reviewed`."""
    scored_traces = {TraceKey.from_trace(trace): trace for trace in traces if trace.outcome is Outcome.OK}
    return [scored_traces[trace_key] for trace_key in select_reviewed(config, scored_traces)]


def _render_review_messages(
    config: AuditConfig, survey: Survey, judge: ModelSection, text: str, trace: Trace
) -> tuple[Message, ...]:
    """Fill in the judge's review template for a survey trace (with its score) or a task trace (with its answer).

    Args:
        text: the trace's text as shown to judges, from `blind_trace`.
    """
    task = survey.task
    identity = (judge.model, judge.system, judge.params, text, trace.score if task is None else trace.answer)
    field_values = {
        "aspects": describe_aspects(for_task=task is not None),
        "label": analyst_label(config.seed, *identity),
        "trace": text,
        "fence": fence_line(text, config.seed, *identity),
        "max_words": str(config.probes.review.max_words),
    }
    if task is None:
        # `never` and `always` are the labels of the scale's ends, -1 and +1.
        low, high = survey.question_about(trace.cell.topic).scale
        field_values |= {"score": f"{trace.score:+.2f}", "never": low, "always": high}
    else:
        shown_answer = truncate_middle(trace.answer or "", config.probes.review.max_trace_chars)
        field_values |= {"answer": shown_answer, "question": question_with_options(task.item_for(trace.cell))}
    prompt = load_review_prompt(judge, for_task=task is not None, form=config.probes.review.form)
    return prompt.render(preamble=judge.system, **{name: field_values[name] for name in prompt.fields})


def plan_stand_ins(config: AuditConfig, survey: Survey, cell: Cell) -> list[Call]:
    """A review of the stand-in trace by each judge that is asked; the answers are used for nothing else."""
    return [build_stand_in(config, survey, judge, cell) for judge in config.judge_models if judge.verdicts is None]


def build_stand_in(config: AuditConfig, survey: Survey, judge: ModelSection, cell: Cell) -> Call:
    """A review of the stand-in trace by one model."""
    stand_in = load_stand_in_trace()
    trace = Trace("", cell, 0, Outcome.OK, stand_in.score, stand_in.text, answer=stand_in.answer)
    return replace(build_review_call(config, survey, judge, trace, stand_in.text), purpose=Purpose.PREFLIGHT)


@functools.cache
def describe_aspects(*, for_task: bool) -> str:
    """The part of the review prompt that asks for the aspects, as keys of the judge's JSON."""
    questions = aspect_questions(for_task=for_task).values()
    return "; ".join(f'"{question.key}": {question.question}, true or false' for question in questions)


def load_review_prompt(judge: ModelSection, *, for_task: bool = False, form: PromptForm = "standard") -> Prompt:
    """Load the review template of a judge: its custom one, or the built-in one for surveys or tasks.

    Args:
        form: of the built-in one for surveys; tasks have one form.

    Raises:
        ConfigError: the custom template cannot be read, lacks a required placeholder, or has an unknown one.
    """
    built_in_prompt = load_prompt("review.task" if for_task else "review")
    if judge.review_prompt is None:
        return load_prompt(f"review.{form}") if form != "standard" and not for_task else built_in_prompt
    custom_prompt = read_prompt(judge.review_prompt)
    if unknown_fields := custom_prompt.fields - built_in_prompt.fields:
        raise ConfigError(
            f"{judge.review_prompt}: the field '{min(unknown_fields)}' is unknown.",
            f"Use only: {', '.join(sorted(built_in_prompt.fields))}.",
        )
    if missing_fields := {"trace", "fence", "answer" if for_task else "score"} - custom_prompt.fields:
        raise ConfigError(f"{judge.review_prompt}: the field '{min(missing_fields)}' is missing.", "Add it.")
    return custom_prompt


def analyst_label(seed: int, *identity: object) -> str:
    """Four-letter pseudonym of a trace's author, different for each judge and trace, the same in every run."""
    number = derive_seed(seed, "label", *identity)  # its last four digits in base 20 are the letters
    return "".join(LABEL_CONSONANTS[number // len(LABEL_CONSONANTS) ** i % len(LABEL_CONSONANTS)] for i in range(4))


def fence_line(text: str, seed: int, *identity: object) -> str:
    """Delimiter line that does not occur in the text and that its author cannot predict; the same in every run."""
    digest = canonical_hash([seed, "fence", *map(str, identity), text])
    while (line := f"=== {digest[:16]} ===") in text or digest[:16] in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return line
