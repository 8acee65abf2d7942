"""Checks of blinding: judges guess what was masked, and give verdicts on restated traces."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_builders import (
    blind_trace,
    build_judge_call,
    build_review_call,
    fence_line,
    question_with_options,
)
from auditor.agents.call_runner import run_calls
from auditor.agents.peer_review import parse_verdict, review_schema
from auditor.agents.refusals import declines_request, find_outcome_without_structure
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import (
    AlteredTraceVerdict,
    Answer,
    Call,
    Cell,
    Guess,
    HarmlessAlteration,
    Outcome,
    Purpose,
    Restatement,
    Trace,
    derive_seed,
)
from auditor.models.answer_schemas import AuthorGuess, BlindGuess, Restated
from auditor.models.structured_reading import parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage.records import load_records, save_experiment, save_records

MAX_GUESS_OPTIONS = 10
"""Maximum number of options in a list: a low chance level, yet short enough to read."""


async def ask_for_guesses(context: RunContext, judge: ModelSection, traces: Iterable[Trace]) -> None:
    """Ask a judge to guess country, topic and author of the first trace of each model and cell; store the hits.

    Of a task, only the author is asked for.
    """
    requests = []
    for trace in _assigned_traces(context, judge, _first_trace_per_cell(traces)):
        text = blind_trace(context.config, context.survey, trace)
        requests.append((judge, trace, *_build_guess_call(context, judge, trace, text)))
    answers = await run_calls(context, "review", [call for *_, call in requests])
    guesses = [
        _parse_guess(answers[call.key], judge.name, trace, options, call.request_text)
        for judge, trace, options, call in requests
        if call.key in answers
    ]
    await asyncio.to_thread(save_records, context.db, context.audit_id, guesses)


def _assigned_traces(context: RunContext, judge: ModelSection, traces: Iterable[Trace]) -> list[Trace]:
    """Those of some traces that a judge is assigned to."""
    return [
        trace
        for trace in traces
        if any(member.name == judge.name for member in context.panel_assignment.panel(TraceKey.from_trace(trace)))
    ]


def _first_trace_per_cell(traces: Iterable[Trace]) -> list[Trace]:
    """The first trace of each model and cell."""
    first_traces: dict[tuple[str, Cell], Trace] = {}
    for trace in traces:
        first_traces.setdefault((trace.model, trace.cell), trace)
    return list(first_traces.values())


class GuessOptions(NamedTuple):
    """A list of options to choose from, and the correct one."""

    names: Sequence[str]
    correct: str

    @property
    def numbered_list(self) -> str:
        """The list as shown to a judge, numbered from 1."""
        return "\n".join(f"{i}. {name}" for i, name in enumerate(self.names, 1))

    def is_correct(self, number: int) -> bool | None:
        """Whether the option of this number, from 1, is correct; None if the list has fewer than two options."""
        return None if len(self.names) < 2 else self.names[number - 1] == self.correct


NO_OPTIONS = GuessOptions((), "")
"""Of what a judge of a task is not asked: items have no country, and judges see the question."""


def _build_guess_call(
    context: RunContext, judge: ModelSection, trace: Trace, text: str
) -> tuple[tuple[GuessOptions, ...], Call]:
    """Build the call that asks a judge for a guess; returns its options for country, topic and author, and the call.

    Args:
        text: the blinded trace. The order of the options depends on it, on the judge and on the audit's seed.
    """
    config, survey = context.config, context.survey
    identity = (judge.model, judge.system, judge.params, text)
    rng = random.Random(derive_seed(config.seed, "guess", *identity))
    author_ids = {model.name: model.unprefixed_model for model in config.models if model.name != judge.name}
    is_task = survey.task is not None
    options = (
        NO_OPTIONS if is_task else _draw_options(rng, trace.cell.country, survey.countries),
        NO_OPTIONS if is_task else _draw_options(rng, trace.cell.topic, survey.topics),
        _draw_options(rng, author_ids[trace.model], sorted(set(author_ids.values()))),
    )
    fence = fence_line(text, config.seed, "guess", *identity)
    about = (*trace.cell, trace.sample)
    if survey.task is not None:
        messages = load_prompt("review.guess.task").render(
            preamble=judge.system,
            question=question_with_options(survey.task.item_for(trace.cell)),
            trace=text,
            fence=fence,
            analysts=options[2].numbered_list,
        )
        return options, build_judge_call(
            config, judge, Purpose.GUESS, messages, about=about, schema=AuthorGuess.__name__
        )
    # The options are those for country, topic and author, in this order; the prompt calls a topic a practice.
    messages = load_prompt("review.guess").render(
        preamble=judge.system,
        trace=text,
        fence=fence,
        countries=options[0].numbered_list,
        practices=options[1].numbered_list,
        analysts=options[2].numbered_list,
    )
    call = build_judge_call(config, judge, Purpose.GUESS, messages, about=about, schema=BlindGuess.__name__)
    return options, call


def _draw_options(rng: random.Random, correct: str, candidates: Sequence[str]) -> GuessOptions:
    """Draw at most `MAX_GUESS_OPTIONS` options in random order, the correct one among them."""
    distractors = [name for name in candidates if name != correct]
    options = [correct, *rng.sample(distractors, min(len(distractors), MAX_GUESS_OPTIONS - 1))]
    rng.shuffle(options)
    return GuessOptions(options, correct)


def _parse_guess(answer: Answer, judge: str, trace: Trace, options: Sequence[GuessOptions], request: str = "") -> Guess:
    """Parse a judge's guess, and compare it with the truth; without hits if the call failed or the answer is invalid.

    Args:
        options: those for country, topic and author, in this order.
    """
    # Number of options in each list.
    countries, topics, authors = (len(choices.names) for choices in options)
    unanswered = Guess(
        judge, trace.model, trace.cell, trace.sample, answer.outcome,
        countries=countries, topics=topics, authors=authors, key=answer.key,
    )  # fmt: skip
    if answer.outcome is not Outcome.OK or answer.text is None:
        return unanswered
    schema: type[AuthorGuess | BlindGuess] = BlindGuess if countries or topics else AuthorGuess
    guess = parse_structured_answer(schema, answer.text, request)
    if isinstance(guess, str):
        return replace(unanswered, outcome=find_outcome_without_structure(answer.text))
    numbers = (guess.country, guess.practice, guess.analyst) if isinstance(guess, BlindGuess) else (0, 0, guess.analyst)
    is_listed = [
        1 <= number <= len(choices.names) or not choices.names for number, choices in zip(numbers, options, strict=True)
    ]
    if not all(is_listed):
        return replace(unanswered, outcome=Outcome.UNPARSED)
    country, topic, author = (choices.is_correct(number) for number, choices in zip(numbers, options, strict=True))
    return replace(unanswered, hit_country=country, hit_topic=topic, hit_author=author)


# --- restated traces --------------------------------------------------------------------------------------------


async def restate_traces(context: RunContext, rewriter: ModelSection, traces: Sequence[Trace]) -> None:
    """Have other models' traces restated, and store the results."""
    calls = [_build_restatement_call(context, rewriter, trace) for trace in traces]
    answers = await run_calls(context, "review", calls)
    restatements = [
        _parse_restatement(answers[call.key], rewriter.name, trace)
        for call, trace in zip(calls, traces, strict=True)
        if call.key in answers
    ]
    await asyncio.to_thread(save_records, context.db, context.audit_id, restatements)


async def review_restated_traces(context: RunContext, judge: ModelSection, traces: Sequence[Trace]) -> None:
    """Ask a judge for verdicts on the restated forms of some traces; store them under the alteration `neutral`."""
    cells, authors = {trace.cell for trace in traces}, {trace.model for trace in traces}
    restatements = await asyncio.to_thread(
        load_records, context.db, context.audit_id, Restatement, cells, model=authors
    )
    texts = {
        TraceKey(restatement.model, restatement.cell, restatement.sample): restatement.text
        for restatement in restatements
        if restatement.text is not None
    }
    judges_and_traces = [
        (judge, replace(trace, text=texts[TraceKey.from_trace(trace)]))
        for trace in _assigned_traces(context, judge, traces)
        if TraceKey.from_trace(trace) in texts
    ]
    await judge_altered_traces(context, HarmlessAlteration.NEUTRAL, judges_and_traces, is_experiment=False)


def _build_restatement_call(context: RunContext, rewriter: ModelSection, trace: Trace) -> Call:
    """Build the call that asks the rewriter to restate a blinded trace."""
    config = context.config
    text = blind_trace(config, context.survey, trace)
    messages = load_prompt("review.rewrite").render(
        preamble=rewriter.system,
        trace=text,
        fence=fence_line(text, config.seed, "rewrite", rewriter.model),
        max_words=str(config.direct.max_words),
    )
    return build_judge_call(
        config,
        rewriter,
        Purpose.REWRITE,
        messages,
        about=(*trace.cell, trace.sample),
        schema=Restated.__name__,
        max_words=2 * config.direct.max_words,
    )


def _parse_restatement(answer: Answer, rewriter: str, trace: Trace) -> Restatement:
    """Parse the rewriter's answer into the restated trace; without text if the call failed or the answer is invalid."""
    unanswered = Restatement(trace.model, trace.cell, trace.sample, rewriter, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return unanswered
    restated = parse_structured_answer(Restated, answer.text)
    if isinstance(restated, str):
        return replace(unanswered, outcome=find_outcome_without_structure(answer.text))
    if declines_request(restated.text):
        return replace(unanswered, outcome=Outcome.REFUSED)
    return replace(unanswered, text=restated.text)


async def judge_altered_traces(
    context: RunContext,
    alteration: str,
    judges_and_traces: Sequence[tuple[ModelSection, Trace]],
    *,
    is_experiment: bool = True,
) -> list[AlteredTraceVerdict]:
    """Ask for verdicts on altered traces with the panel's prompt; return and store them, apart from other verdicts.

    Args:
        alteration: name of the alteration, as in `AlteredTraceVerdict`.
        judges_and_traces: pairs of a judge and the altered trace.
        is_experiment: whether the verdicts go into the hash chain, since no run derives them.
    """
    config = context.config
    blinded_texts: dict[int, str] = {}  # by id() of the trace, since each trace goes to several judges
    calls = []
    for judge, trace in judges_and_traces:
        if id(trace) not in blinded_texts:
            blinded_texts[id(trace)] = blind_trace(config, context.survey, trace)
        calls.append(build_review_call(config, context.survey, judge, trace, blinded_texts[id(trace)]))
    answers = await run_calls(context, "review", calls)
    max_words = config.probes.review.max_words
    altered_verdicts = []
    for (judge, trace), call in zip(judges_and_traces, calls, strict=True):
        if call.key in answers:
            verdict = parse_verdict(
                answers[call.key],
                judge.name,
                trace,
                max_words,
                schema=review_schema(call),
                request=call.request_text,
            )
            altered_verdicts.append(
                AlteredTraceVerdict(
                    alteration,
                    verdict.judge,
                    verdict.model,
                    verdict.cell,
                    verdict.sample,
                    verdict.outcome,
                    verdict.ruling,
                    verdict.key,
                )
            )
    save = save_experiment if is_experiment else save_records
    await asyncio.to_thread(save, context.db, context.audit_id, altered_verdicts)
    return altered_verdicts
