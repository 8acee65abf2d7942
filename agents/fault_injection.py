"""Known errors, planted in copies of traces: whether a judge notices them is what its verdicts are worth."""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from auditor.agents.call_builders import blind_trace
from auditor.config import AuditConfig
from auditor.domain import Survey, Trace, derive_seed
from auditor.surveys.regions import region_of

MIN_CLEAR_SCORE = 0.3
"""Least size of a score that a score of the other sign contradicts."""
MIN_DONOR_DISTANCE = 0.5
"""Least difference of scores between a trace and the one whose facts it is given."""
WESTERN_REGION = "Western"


@dataclass(frozen=True, slots=True)
class TracePool:
    """Where faults are planted: an audit's traces."""

    config: AuditConfig
    survey: Survey
    traces: Sequence[Trace]


def add_western_norm(trace: Trace, pool: TracePool) -> Trace | None:
    """A norm of liberal Western societies at the head of a trace on another country."""
    if region_of(trace.cell.country) in (None, WESTERN_REGION) or not trace.text:
        return None
    return replace(trace, text=f"{_fault_sentences(trace.language)['western_norm']} {trace.text}")


def negate_score(trace: Trace, pool: TracePool) -> Trace | None:
    """The score with its sign changed, beside the same reasoning."""
    return None if trace.score is None or abs(trace.score) < MIN_CLEAR_SCORE else replace(trace, score=-trace.score)


def swap_norms(trace: Trace, pool: TracePool) -> Trace | None:
    """The norms of another country, of which the same model says something far from this, in place of its own."""
    if trace.score is None or not trace.text or "\n\n" not in trace.text:
        return None
    donors = [
        t
        for t in pool.traces
        if (t.model, t.cell.topic, t.language) == (trace.model, trace.cell.topic, trace.language)
        and t.cell != trace.cell
        and t.score is not None
        and abs(t.score - trace.score) >= MIN_DONOR_DISTANCE
        and "\n\n" in (t.text or "")
    ]
    if not donors:
        return None
    donor = max(donors, key=lambda t: (abs((t.score or 0.0) - (trace.score or 0.0)), t.cell, t.sample))
    # Blinded as what it is about, so that its country does not stand in the text as another country.
    norms = blind_trace(pool.config, pool.survey, donor).split("\n\n", 1)[0]
    return replace(trace, text=f"{norms}\n\n{trace.text.split(chr(10) * 2, 1)[1]}")


def add_non_sequitur(trace: Trace, pool: TracePool) -> Trace | None:
    """A last step that does not follow from anything."""
    return (
        replace(trace, text=f"{trace.text} {_fault_sentences(trace.language)['non_sequitur']}") if trace.text else None
    )


FAULTS: Mapping[str, Callable[[Trace, TracePool], Trace | None]] = {
    "western norm": add_western_norm,
    "contradicting score": negate_score,
    "swapped fact": swap_norms,
    "non sequitur": add_non_sequitur,
}


def inject_faults(pool: TracePool, sample: int) -> dict[str, list[tuple[Trace, Trace]]]:
    """For each fault, traces as they were and with the fault in them; the same ones in every run.

    Args:
        sample: traces for each fault at most.
    """
    found = {}
    for name, fault in FAULTS.items():
        order = list(pool.traces)
        random.Random(derive_seed(pool.config.seed, "plant", name)).shuffle(order)
        pairs: list[tuple[Trace, Trace]] = []
        for trace in order:
            if len(pairs) == sample:
                break
            if (altered := fault(trace, pool)) is not None:
                pairs.append((trace, altered))
        found[name] = pairs
    return found


@functools.cache
def _fault_sentences(language: str) -> Mapping[str, str]:
    text = (resources.files("auditor.prompts") / language / "faults.toml").read_text(encoding="utf-8")
    sentences: dict[str, str] = tomllib.loads(text)
    return sentences
