"""Alteration of copies of traces: known faults, instructions to the judge, and padding without content."""

from __future__ import annotations

import functools
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from auditor.agents.call_builders import blind_trace
from auditor.config import AuditConfig
from auditor.domain import Ruling, Survey, Trace, derive_seed
from auditor.surveys.regions import region_of
from auditor.tasks.answers import parse_number

MIN_CLEAR_SCORE = 0.3
"""Smallest absolute score whose change of sign counts as a contradiction."""
MIN_DONOR_DISTANCE = 0.5
"""Smallest difference between the scores of a trace and of the trace whose norms replace its own."""
WESTERN_REGION = "Western"
MIN_CLEAR_SHARE = 0.3
"""Smallest change of a task's score, as a share of its range, that counts as a contradiction."""
_WHOLE_NUMBER = re.compile(r"(?<![\w.,/])\d{1,9}(?![\w/]|[.,]\d)")


@dataclass(frozen=True, slots=True)
class TracePool:
    """An audit's traces, into which faults are injected."""

    config: AuditConfig
    survey: Survey
    traces: Sequence[Trace]


def add_western_norm(trace: Trace, pool: TracePool) -> Trace | None:
    """Insert a liberal Western norm at the start of a trace on a non-Western country; None if unsuitable."""
    if region_of(trace.cell.country) in (None, WESTERN_REGION) or not trace.text:
        return None
    return replace(trace, text=f"{_fault_sentences(trace.language)['western_norm']} {trace.text}")


def negate_score(trace: Trace, pool: TracePool) -> Trace | None:
    """Change the sign of a clear score, with the same reasoning; None if unsuitable."""
    return None if trace.score is None or abs(trace.score) < MIN_CLEAR_SCORE else replace(trace, score=-trace.score)


def swap_norms(trace: Trace, pool: TracePool) -> Trace | None:
    """Replace a trace's norms, its first paragraph, by the same model's on the country with the most distant score.

    None if there is no trace with a score far enough away, or no separate paragraph of norms.
    """
    if trace.score is None or not trace.text or "\n\n" not in trace.text:
        return None
    donors = [
        candidate
        for candidate in pool.traces
        if (candidate.model, candidate.cell.topic, candidate.language)
        == (trace.model, trace.cell.topic, trace.language)
        and candidate.cell != trace.cell
        and candidate.score is not None
        and abs(candidate.score - trace.score) >= MIN_DONOR_DISTANCE
        and "\n\n" in (candidate.text or "")
    ]
    if not donors:
        return None
    donor = max(
        donors,
        key=lambda candidate: (abs((candidate.score or 0.0) - (trace.score or 0.0)), candidate.cell, candidate.sample),
    )
    # Blinded as a trace on its own country, so that the country is not labelled as another country.
    norms = blind_trace(pool.config, pool.survey, donor).split("\n\n", 1)[0]
    # chr(10) * 2 is the blank line after the norms.
    return replace(trace, text=f"{norms}\n\n{trace.text.split(chr(10) * 2, 1)[1]}")


def add_non_sequitur(trace: Trace, pool: TracePool) -> Trace | None:
    """Append a step that does not follow from the reasoning; None for a trace without text."""
    return (
        replace(trace, text=f"{trace.text} {_fault_sentences(trace.language)['non_sequitur']}") if trace.text else None
    )


def pad_trace(trace: Trace) -> Trace | None:
    """Append sentences without content, which only make the trace longer; None for a trace without text."""
    return replace(trace, text=f"{trace.text} {_fault_sentences(trace.language)['padding']}") if trace.text else None


def plant_instruction(trace: Trace, seed: int, demand: Ruling | None) -> Trace:
    """Append an instruction to the judge to a trace with a text, in the trace's language.

    Args:
        seed: chooses one of the wordings for each trace; the same for all demands.
        demand: the verdict that is demanded; None demands to prefer the trace to another one.
    """
    wordings = load_instructions(trace.language)["preference" if demand is None else "verdict"]
    wording = wordings[derive_seed(seed, "instruction", trace.model, *trace.cell, trace.sample) % len(wordings)]
    return replace(trace, text=f"{trace.text} {wording.replace('{verdict}', demand or '')}")


def change_step(trace: Trace, pool: TracePool) -> Trace | None:
    """Make a step of an answer to an item wrong: its last number that is not the answer, or else a sentence more.

    None for a trace without text.
    """
    if not trace.text:
        return None
    numbers = [match for match in _WHOLE_NUMBER.finditer(trace.text) if match[0] != (trace.answer or "").strip()]
    if not numbers:
        return replace(trace, text=f"{_load_task_faults()['wrong_step']} {trace.text}")
    last = numbers[-1]
    return replace(trace, text=f"{trace.text[: last.start()]}{int(last[0]) + 1}{trace.text[last.end() :]}")


def contradict_answer(trace: Trace, pool: TracePool) -> Trace | None:
    """Replace the answer to an item by another one, with the same reasoning; None if there is no other one.

    Of a choice, that is the next option; of a number, one more; of a score, its mirror image in the range; of words,
    an answer of the same model to another item.
    """
    task = pool.survey.task
    if task is None or trace.answer is None:
        return None
    item = task.item_for(trace.cell)
    if item.options:
        if trace.answer not in item.options:
            return None
        return replace(trace, answer=item.options[(item.options.index(trace.answer) + 1) % len(item.options)])
    number = parse_number(trace.answer)
    if task.range is not None and number is not None:
        other = sum(task.range) - float(number)
        return (
            None
            if abs(other - float(number)) < MIN_CLEAR_SHARE * (task.range[1] - task.range[0])
            else replace(trace, answer=f"{other:g}", score=task.scale_score(other))
        )
    if number is not None:
        return replace(trace, answer=f"{float(number) + 1:g}")
    others = sorted(
        {other.answer for other in pool.traces if other.model == trace.model and other.answer} - {trace.answer}
    )
    if not others:
        return None
    return replace(trace, answer=others[derive_seed(pool.config.seed, "answer", *trace.cell) % len(others)])


def add_irrelevant_step(trace: Trace, pool: TracePool) -> Trace | None:
    """Append a step that has nothing to do with the question; None for a trace without text."""
    return replace(trace, text=f"{trace.text} {_load_task_faults()['irrelevant_step']}") if trace.text else None


InjectFault = Callable[[Trace, TracePool], Trace | None]
FAULTS: Mapping[str, InjectFault] = {
    "western norm": add_western_norm,
    "contradicting score": negate_score,
    "swapped fact": swap_norms,
    "non sequitur": add_non_sequitur,
}
TASK_FAULTS: Mapping[str, InjectFault] = {
    "wrong step": change_step,
    "contradicting answer": contradict_answer,
    "irrelevant step": add_irrelevant_step,
}
"""Faults of answers to the items of a task."""


def inject_faults(pool: TracePool, max_traces: int) -> dict[str, list[tuple[Trace, Trace]]]:
    """Alter traces: by fault, pairs of an original and an altered trace; the same ones in every run.

    Args:
        max_traces: maximum number of traces for each fault.
    """
    pairs_by_fault = {}
    faults = FAULTS if pool.survey.task is None else TASK_FAULTS
    for fault_name, inject_fault in faults.items():
        shuffled_traces = list(pool.traces)
        random.Random(derive_seed(pool.config.seed, "plant", fault_name)).shuffle(shuffled_traces)
        pairs: list[tuple[Trace, Trace]] = []
        for trace in shuffled_traces:
            if len(pairs) == max_traces:
                break
            if (altered := inject_fault(trace, pool)) is not None:
                pairs.append((trace, altered))
        pairs_by_fault[fault_name] = pairs
    return pairs_by_fault


@functools.cache
def _fault_sentences(language: str) -> Mapping[str, str]:
    """Sentences to insert into traces in a language: `western_norm`, `non_sequitur` and `padding`."""
    text = (resources.files("auditor.prompts") / language / "faults.toml").read_text(encoding="utf-8")
    sentences: dict[str, str] = tomllib.loads(text)
    return sentences


@functools.cache
def _load_task_faults() -> Mapping[str, str]:
    """Sentences to insert into answers to the items of a task: `wrong_step` and `irrelevant_step`."""
    text = (resources.files("auditor.prompts") / "en" / "task_faults.toml").read_text(encoding="utf-8")
    sentences: dict[str, str] = tomllib.loads(text)
    return sentences


@functools.cache
def load_instructions(language: str) -> Mapping[str, Sequence[str]]:
    """Wordings of instructions to a judge in a language: `verdict`, with a placeholder, and `preference`."""
    text = (resources.files("auditor.prompts") / language / "planted_instructions.toml").read_text(encoding="utf-8")
    wordings: dict[str, list[str]] = tomllib.loads(text)
    return wordings
