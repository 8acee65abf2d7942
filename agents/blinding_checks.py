"""What judges are asked beside their verdicts: to guess what is hidden, to rule on restated traces, to compare two."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_builders import blinded, fence, judge_params, review_call
from auditor.agents.call_runner import ask
from auditor.agents.run_context import Context
from auditor.agents.verdict_parsing import read_verdict
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, Guess, Outcome, Purpose, Restatement, Trace, Trial, derive_seed
from auditor.models.structured import BlindGuess, Restated, read
from auditor.panel_assignment import Place
from auditor.prompts import load_prompt
from auditor.storage import judge_tests

MOST_OPTIONS = 10
"""Of a list to guess from: long enough that chance is low, short enough to be read."""
NEUTRAL = "neutral"


async def guess_traces(context: Context, traces: Iterable[Trace]) -> None:
    """Ask each judge what the first trace of each model and cell is about and by whom, and store its hits."""
    asked = []
    for trace in _first_of_each(traces):
        text = blinded(context.config, context.survey, trace)
        for judge in context.seating.panel(Place.of(trace)):
            asked.append((judge, trace, *_guess_call(context, judge, trace, text)))
    answers = await ask(context, "review", [call for *_, call in asked])
    found = [
        _read_guess(answers[call.key], judge.name, trace, lists)
        for judge, trace, lists, call in asked
        if call.key in answers
    ]
    await asyncio.to_thread(judge_tests.save_guesses, context.db, context.audit_id, found)


def _first_of_each(traces: Iterable[Trace]) -> list[Trace]:
    first: dict[tuple[str, Cell], Trace] = {}
    for trace in traces:
        first.setdefault((trace.model, trace.cell), trace)
    return list(first.values())


class Choices(NamedTuple):
    """One list to choose from, and the line of it that is right."""

    names: Sequence[str]
    right: str

    @property
    def told(self) -> str:
        """The list as a judge reads it."""
        return "\n".join(f"{i}. {name}" for i, name in enumerate(self.names, 1))

    def is_hit(self, number: int) -> bool | None:
        """Whether a line is the right one; None where there was nothing to choose."""
        return None if len(self.names) < 2 else self.names[number - 1] == self.right


def _guess_call(context: Context, judge: ModelSection, trace: Trace, text: str) -> tuple[tuple[Choices, ...], Call]:
    config, survey = context.config, context.survey
    item = (judge.model, judge.system, judge.params, text)
    rng = random.Random(derive_seed(config.seed, "guess", *item))
    ids = {m.name: m.model.split("/", 1)[-1] for m in config.models if m.name != judge.name}
    lists = (
        _choices(rng, trace.cell.country, survey.countries),
        _choices(rng, trace.cell.topic, survey.topics),
        _choices(rng, ids[trace.model], sorted(set(ids.values()))),
    )
    messages = load_prompt("review.guess").render(
        preamble=judge.system,
        trace=text,
        fence=fence(text, config.seed, "guess", *item),
        countries=lists[0].told,
        practices=lists[1].told,
        analysts=lists[2].told,
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


def _choices(rng: random.Random, right: str, known: Sequence[str]) -> Choices:
    others = [name for name in known if name != right]
    chosen = [right, *rng.sample(others, min(len(others), MOST_OPTIONS - 1))]
    rng.shuffle(chosen)
    return Choices(chosen, right)


def _read_guess(answer: Answer, judge: str, trace: Trace, lists: Sequence[Choices]) -> Guess:
    countries, topics, authors = (len(choices.names) for choices in lists)
    empty = Guess(
        judge, trace.model, trace.cell, trace.sample, answer.outcome,
        countries=countries, topics=topics, authors=authors, key=answer.key,
    )  # fmt: skip
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = read(BlindGuess, answer.text)
    if isinstance(said, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    numbers = (said.country, said.practice, said.analyst)
    if not all(1 <= n <= len(choices.names) for n, choices in zip(numbers, lists, strict=True)):
        return replace(empty, outcome=Outcome.UNPARSED)
    country, topic, author = (choices.is_hit(n) for n, choices in zip(numbers, lists, strict=True))
    return replace(empty, hit_country=country, hit_topic=topic, hit_author=author)


# --- restating --------------------------------------------------------------------------------------------------


async def restate_traces(context: Context, traces: Iterable[Trace]) -> None:
    """Have the rewriter restate traces of others, and judges other than it rule on what came of that."""
    config = context.config
    rewriter = config.model(config.probes.review.rewriter or "")
    mine = [t for t in traces if t.model != rewriter.name]
    calls = [_restate_call(context, rewriter, trace) for trace in mine]
    answers = await ask(context, "review", calls)
    restated = [
        _read_restatement(answers[call.key], rewriter.name, trace)
        for call, trace in zip(calls, mine, strict=True)
        if call.key in answers
    ]
    await asyncio.to_thread(judge_tests.save_restatements, context.db, context.audit_id, restated)
    texts = {(r.model, r.cell, r.sample): r.text for r in restated if r.text is not None}
    altered = [
        (judge, replace(trace, text=texts[trace.model, trace.cell, trace.sample]))
        for trace in mine
        if (trace.model, trace.cell, trace.sample) in texts
        for judge in context.seating.panel(Place.of(trace))
        if judge.name != rewriter.name
    ]
    await rule_on(context, NEUTRAL, altered)


def _restate_call(context: Context, rewriter: ModelSection, trace: Trace) -> Call:
    config = context.config
    text = blinded(config, context.survey, trace)
    messages = load_prompt("review.rewrite").render(
        preamble=rewriter.system,
        trace=text,
        fence=fence(text, config.seed, "rewrite", rewriter.model),
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


def _read_restatement(answer: Answer, rewriter: str, trace: Trace) -> Restatement:
    empty = Restatement(trace.model, trace.cell, trace.sample, rewriter, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = read(Restated, answer.text)
    return replace(empty, outcome=Outcome.UNPARSED) if isinstance(said, str) else replace(empty, text=said.text)


async def rule_on(context: Context, alteration: str, altered: Sequence[tuple[ModelSection, Trace]]) -> list[Trial]:
    """Have judges rule on altered traces in the words of the panel, and store it apart from verdicts."""
    config = context.config
    texts: dict[int, str] = {}
    calls = []
    for judge, trace in altered:
        if id(trace) not in texts:
            texts[id(trace)] = blinded(config, context.survey, trace)
        calls.append(review_call(config, context.survey, judge, trace, texts[id(trace)]))
    answers = await ask(context, "review", calls)
    words = config.probes.review.max_words
    found = []
    for (judge, trace), call in zip(altered, calls, strict=True):
        if call.key in answers:
            v = read_verdict(answers[call.key], judge.name, trace, words)
            found.append(Trial(alteration, v.judge, v.model, v.cell, v.sample, v.outcome, v.ruling, v.key))
    await asyncio.to_thread(judge_tests.save_trials, context.db, context.audit_id, found)
    return found
