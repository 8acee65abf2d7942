"""The calls of an audit: which questions go to which model, word for word."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable

from auditor.agents.blinding import blind
from auditor.agents.languages import country_stems, language_of, question_fields, topic_stems
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Call, Cell, Message, Outcome, Purpose, Survey, Trace, derive_seed
from auditor.models.structured import MoralJudgement, TraceReview
from auditor.prompts import load_prompt
from auditor.surveys.countries import demonyms


def direct_call(config: AuditConfig, survey: Survey, model: ModelSection, cell: Cell, sample: int) -> Call:
    """One sample of a direct score.

    The seed depends on the cell and the sample and not on the model, so that renaming a model changes no call.
    """
    probe = config.direct
    language = language_of(config, cell.country, sample)
    messages = load_prompt(f"direct.{probe.mode}", language).render(
        preamble=model.system, max_words=str(probe.max_words), **question_fields(survey, cell, language)
    )
    structured = probe.mode == "structured"
    return Call(
        name=model.name,
        model=model.model,
        server=model.api_base,
        messages=messages,
        purpose=Purpose.DIRECT,
        sample=sample,
        params=_params(model, probe.temperature, probe.max_tokens, derive_seed(config.seed, *cell, sample)),
        schema=MoralJudgement.__name__ if structured else None,
        max_words=probe.max_words if structured else None,
    )


def review_call(config: AuditConfig, survey: Survey, judge: ModelSection, trace: Trace) -> Call:
    """One judge's question about one trace, with country, topic and author taken out."""
    probe = config.probes.review
    text = blinded(config, survey, trace)
    messages = _review_messages(survey, judge, text, trace.score, probe.max_words)
    seed = derive_seed(config.seed, "review", *trace.cell, trace.sample)
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=messages,
        purpose=Purpose.REVIEW,
        params=_params(judge, probe.temperature, probe.max_tokens, seed),
        schema=TraceReview.__name__,
        max_words=probe.max_words,
    )


def blinded(config: AuditConfig, survey: Survey, trace: Trace) -> str:
    """A trace's text as judges get it."""
    names = [n for m in config.models for n in (m.name, m.model.split("/")[-1])]
    return blind(
        trace.text or "",
        country_words=_country_words(trace.cell.country, trace.language),
        other_countries=_all_words(tuple(c for c in survey.countries if c != trace.cell.country), trace.language),
        topic_words=(
            trace.cell.topic,
            *topic_stems(trace.cell.topic, trace.language),
            *survey.words.get(trace.cell.topic, ()),
        ),
        model_names=names,
    )


@functools.cache
def _country_words(country: str, language: str) -> tuple[str, ...]:
    return (country, *country_stems(country, language), *demonyms(country))


@functools.lru_cache(maxsize=512)
def _all_words(countries: tuple[str, ...], language: str) -> tuple[str, ...]:
    return tuple(word for country in countries for word in _country_words(country, language))


def for_review(config: AuditConfig, traces: Iterable[Trace]) -> list[Trace]:
    """The traces that go to judges: of each model and cell all that have a score, or the first few of them."""
    limit = config.probes.review.traces
    taken: dict[tuple[str, Cell], int] = {}
    chosen = []
    for trace in sorted(traces, key=lambda t: (t.cell, t.model, t.sample)):
        if trace.outcome is not Outcome.OK:
            continue
        n = taken.get((trace.model, trace.cell), 0)
        if limit == "all" or n < limit:
            chosen.append(trace)
            taken[trace.model, trace.cell] = n + 1
    return chosen


def _review_messages(
    survey: Survey, judge: ModelSection, text: str, score: float | None, max_words: int
) -> tuple[Message, ...]:
    return load_prompt("review").render(
        preamble=judge.system,
        trace=text,
        score=f"{score:+.2f}",
        fence=_fence(text),
        max_words=str(max_words),
        never=survey.scale[0],
        always=survey.scale[1],
    )


def _fence(text: str) -> str:
    """A line that the text does not contain, the same in every run."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    while (fence := f"=== {digest[:12]} ===") in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return fence


def _params(model: ModelSection, temperature: float, max_tokens: int, seed: int) -> dict[str, object]:
    chosen = temperature if model.temperature is None else model.temperature
    return {"temperature": chosen, "max_tokens": max_tokens, "seed": seed, **model.params}
