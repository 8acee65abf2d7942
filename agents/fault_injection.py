"""Alteration of copies of traces: known faults, instructions to the judge, and padding without content."""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from auditor.agents.call_builders import blind_trace
from auditor.config import AuditConfig
from auditor.domain import Ruling, Survey, Trace, derive_seed
from auditor.surveys.regions import region_of

MIN_CLEAR_SCORE = 0.3
"""Smallest absolute score whose change of sign counts as a contradiction."""
MIN_DONOR_DISTANCE = 0.5
"""Smallest difference between the scores of a trace and of the trace whose norms replace its own."""
WESTERN_REGION = "Western"


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


FAULTS: Mapping[str, Callable[[Trace, TracePool], Trace | None]] = {
    "western norm": add_western_norm,
    "contradicting score": negate_score,
    "swapped fact": swap_norms,
    "non sequitur": add_non_sequitur,
}


def inject_faults(pool: TracePool, max_traces: int) -> dict[str, list[tuple[Trace, Trace]]]:
    """Alter traces: by fault, pairs of an original and an altered trace; the same ones in every run.

    Args:
        max_traces: maximum number of traces for each fault.
    """
    pairs_by_fault = {}
    for fault_name, inject_fault in FAULTS.items():
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
def load_instructions(language: str) -> Mapping[str, Sequence[str]]:
    """Wordings of instructions to a judge in a language: `verdict`, with a placeholder, and `preference`."""
    text = (resources.files("auditor.prompts") / language / "planted_instructions.toml").read_text(encoding="utf-8")
    wordings: dict[str, list[str]] = tomllib.loads(text)
    return wordings
