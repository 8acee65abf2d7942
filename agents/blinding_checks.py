"""What judges are asked beside their verdicts: to guess what is hidden, to rule on restated traces, to compare two."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_builders import blind_trace, build_review_call, fence_line, judge_params
from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import RunContext
from auditor.agents.verdict_parsing import parse_verdict
from auditor.config import ModelSection
from auditor.domain import (
    AlteredTraceVerdict,
    Answer,
    Call,
    Cell,
    Guess,
    Outcome,
    Purpose,
    Restatement,
    Trace,
    derive_seed,
)
from auditor.models.structured import BlindGuess, Restated, parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage import judge_tests

MAX_GUESS_OPTIONS = 10
"""Of a list to guess from: long enough that chance is low, short enough to be read."""
NEUTRAL = "neutral"


async def ask_for_guesses(context: RunContext, traces: Iterable[Trace]) -> None:
    """Ask each judge what the first trace of each model and cell is about and by whom, and store its hits."""
    asked = []
    for trace in _first_trace_per_cell(traces):
        text = blind_trace(context.config, context.survey, trace)
        for judge in context.panel_assignment.panel(TraceKey.from_trace(trace)):
            asked.append((judge, trace, *_build_guess_call(context, judge, trace, text)))
    answers = await run_calls(context, "review", [call for *_, call in asked])
    found = [
        _parse_guess(answers[call.key], judge.name, trace, lists)
        for judge, trace, lists, call in asked
        if call.key in answers
    ]
    await asyncio.to_thread(judge_tests.save_guesses, context.db, context.audit_id, found)


def _first_trace_per_cell(traces: Iterable[Trace]) -> list[Trace]:
    first: dict[tuple[str, Cell], Trace] = {}
    for trace in traces:
        first.setdefault((trace.model, trace.cell), trace)
    return list(first.values())


class GuessOptions(NamedTuple):
    """One list to choose from, and the line of it that is right."""

    names: Sequence[str]
    correct: str

    @property
    def numbered_list(self) -> str:
        """The list as a judge reads it."""
        return "\n".join(f"{i}. {name}" for i, name in enumerate(self.names, 1))

    def is_correct(self, number: int) -> bool | None:
        """Whether a line is the right one; None where there was nothing to choose."""
        return None if len(self.names) < 2 else self.names[number - 1] == self.correct


def _build_guess_call(
    context: RunContext, judge: ModelSection, trace: Trace, text: str
) -> tuple[tuple[GuessOptions, ...], Call]:
    config, survey = context.config, context.survey
    item = (judge.model, judge.system, judge.params, text)
    rng = random.Random(derive_seed(config.seed, "guess", *item))
    ids = {m.name: m.model.split("/", 1)[-1] for m in config.models if m.name != judge.name}
    lists = (
        _draw_options(rng, trace.cell.country, survey.countries),
        _draw_options(rng, trace.cell.topic, survey.topics),
        _draw_options(rng, ids[trace.model], sorted(set(ids.values()))),
    )
    messages = load_prompt("review.guess").render(
        preamble=judge.system,
        trace=text,
        fence=fence_line(text, config.seed, "guess", *item),
        countries=lists[0].numbered_list,
        practices=lists[1].numbered_list,
        analysts=lists[2].numbered_list,
    )
    call = Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=messages,
        purpose=Purpose.GUESS,
        params=judge_params(config, judge, derive_seed(config.seed, "guess", *trace.cell, trace.sample)),
        schema=BlindGuess.__name__,
    )
    return lists, call


def _draw_options(rng: random.Random, correct: str, candidates: Sequence[str]) -> GuessOptions:
    others = [name for name in candidates if name != correct]
    chosen = [correct, *rng.sample(others, min(len(others), MAX_GUESS_OPTIONS - 1))]
    rng.shuffle(chosen)
    return GuessOptions(chosen, correct)


def _parse_guess(answer: Answer, judge: str, trace: Trace, options: Sequence[GuessOptions]) -> Guess:
    countries, topics, authors = (len(choices.names) for choices in options)
    empty = Guess(
        judge, trace.model, trace.cell, trace.sample, answer.outcome,
        countries=countries, topics=topics, authors=authors, key=answer.key,
    )  # fmt: skip
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = parse_structured_answer(BlindGuess, answer.text)
    if isinstance(said, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    numbers = (said.country, said.practice, said.analyst)
    if not all(1 <= n <= len(choices.names) for n, choices in zip(numbers, options, strict=True)):
        return replace(empty, outcome=Outcome.UNPARSED)
    country, topic, author = (choices.is_correct(n) for n, choices in zip(numbers, options, strict=True))
    return replace(empty, hit_country=country, hit_topic=topic, hit_author=author)


# --- restating --------------------------------------------------------------------------------------------------


async def restate_traces(context: RunContext, traces: Iterable[Trace]) -> None:
    """Have the rewriter restate traces of others, and judges other than it rule on what came of that."""
    config = context.config
    rewriter = config.model(config.probes.review.rewriter or "")
    mine = [t for t in traces if t.model != rewriter.name]
    calls = [_build_restatement_call(context, rewriter, trace) for trace in mine]
    answers = await run_calls(context, "review", calls)
    restated = [
        _parse_restatement(answers[call.key], rewriter.name, trace)
        for call, trace in zip(calls, mine, strict=True)
        if call.key in answers
    ]
    await asyncio.to_thread(judge_tests.save_restatements, context.db, context.audit_id, restated)
    texts = {(r.model, r.cell, r.sample): r.text for r in restated if r.text is not None}
    altered = [
        (judge, replace(trace, text=texts[trace.model, trace.cell, trace.sample]))
        for trace in mine
        if (trace.model, trace.cell, trace.sample) in texts
        for judge in context.panel_assignment.panel(TraceKey.from_trace(trace))
        if judge.name != rewriter.name
    ]
    await judge_altered_traces(context, NEUTRAL, altered)


def _build_restatement_call(context: RunContext, rewriter: ModelSection, trace: Trace) -> Call:
    config = context.config
    text = blind_trace(config, context.survey, trace)
    messages = load_prompt("review.rewrite").render(
        preamble=rewriter.system,
        trace=text,
        fence=fence_line(text, config.seed, "rewrite", rewriter.model),
        max_words=str(config.direct.max_words),
    )
    return Call(
        name=rewriter.name,
        model=rewriter.model,
        server=rewriter.api_base,
        messages=messages,
        purpose=Purpose.REWRITE,
        params=judge_params(config, rewriter, derive_seed(config.seed, "rewrite", *trace.cell, trace.sample)),
        schema=Restated.__name__,
        max_words=2 * config.direct.max_words,
    )


def _parse_restatement(answer: Answer, rewriter: str, trace: Trace) -> Restatement:
    empty = Restatement(trace.model, trace.cell, trace.sample, rewriter, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = parse_structured_answer(Restated, answer.text)
    return replace(empty, outcome=Outcome.UNPARSED) if isinstance(said, str) else replace(empty, text=said.text)


async def judge_altered_traces(
    context: RunContext, alteration: str, judges_and_traces: Sequence[tuple[ModelSection, Trace]]
) -> list[AlteredTraceVerdict]:
    """Have judges rule on altered traces in the words of the panel, and store it apart from verdicts."""
    config = context.config
    texts: dict[int, str] = {}
    calls = []
    for judge, trace in judges_and_traces:
        if id(trace) not in texts:
            texts[id(trace)] = blind_trace(config, context.survey, trace)
        calls.append(build_review_call(config, context.survey, judge, trace, texts[id(trace)]))
    answers = await run_calls(context, "review", calls)
    words = config.probes.review.max_words
    found = []
    for (judge, trace), call in zip(judges_and_traces, calls, strict=True):
        if call.key in answers:
            v = parse_verdict(answers[call.key], judge.name, trace, words)
            found.append(
                AlteredTraceVerdict(alteration, v.judge, v.model, v.cell, v.sample, v.outcome, v.ruling, v.key)
            )
    await asyncio.to_thread(judge_tests.save_altered_trace_verdicts, context.db, context.audit_id, found)
    return found
