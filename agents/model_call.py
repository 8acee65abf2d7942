"""Building a `Call`: the one place that fills in what its model's section in the config says."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from auditor.config import AuditConfig, ModelSection
from auditor.domain import (
    ENGLISH,
    Call,
    Cell,
    DeclaredCapabilities,
    LogprobMeasure,
    Message,
    Purpose,
    ReasoningSettings,
    derive_seed,
)

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
    from auditor.models.logprobs import measure_params

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


@functools.cache
def file_digest(filename: str) -> str:
    """SHA-256 of a file of recorded answers or verdicts, so that a changed file counts; empty if it does not exist."""
    path = Path(filename)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
