"""Known errors, planted in copies of traces: whether a judge notices them is what its verdicts are worth."""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from auditor.agents.call_builders import blinded
from auditor.config import AuditConfig
from auditor.domain import Survey, Trace, derive_seed
from auditor.surveys.regions import region_of

CLEAR = 0.3
"""Least size of a score that a score of the other sign contradicts."""
FAR = 0.5
"""Least difference of scores between a trace and the one whose facts it is given."""
WESTERN = "Western"


@dataclass(frozen=True, slots=True)
class Field:
    """Where faults are planted: an audit's traces."""

    config: AuditConfig
    survey: Survey
    traces: Sequence[Trace]


def western_norm(trace: Trace, field: Field) -> Trace | None:
    """A norm of liberal Western societies at the head of a trace on another country."""
    if region_of(trace.cell.country) in (None, WESTERN) or not trace.text:
        return None
    return replace(trace, text=f"{_sentences(trace.language)['western_norm']} {trace.text}")


def contradicting_score(trace: Trace, field: Field) -> Trace | None:
    """The score with its sign changed, beside the same reasoning."""
    return None if trace.score is None or abs(trace.score) < CLEAR else replace(trace, score=-trace.score)


def swapped_fact(trace: Trace, field: Field) -> Trace | None:
    """The norms of another country, of which the same model says something far from this, in place of its own."""
    if trace.score is None or not trace.text or "\n\n" not in trace.text:
        return None
    donors = [
        t
        for t in field.traces
        if (t.model, t.cell.topic, t.language) == (trace.model, trace.cell.topic, trace.language)
        and t.cell != trace.cell
        and t.score is not None
        and abs(t.score - trace.score) >= FAR
        and "\n\n" in (t.text or "")
    ]
    if not donors:
        return None
    donor = max(donors, key=lambda t: (abs((t.score or 0.0) - (trace.score or 0.0)), t.cell, t.sample))
    # Blinded as what it is about, so that its country does not stand in the text as another country.
    norms = blinded(field.config, field.survey, donor).split("\n\n", 1)[0]
    return replace(trace, text=f"{norms}\n\n{trace.text.split(chr(10) * 2, 1)[1]}")


def non_sequitur(trace: Trace, field: Field) -> Trace | None:
    """A last step that does not follow from anything."""
    return replace(trace, text=f"{trace.text} {_sentences(trace.language)['non_sequitur']}") if trace.text else None


FAULTS: Mapping[str, Callable[[Trace, Field], Trace | None]] = {
    "western norm": western_norm,
    "contradicting score": contradicting_score,
    "swapped fact": swapped_fact,
    "non sequitur": non_sequitur,
}


def plant(field: Field, sample: int) -> dict[str, list[tuple[Trace, Trace]]]:
    """For each fault, traces as they were and with the fault in them; the same ones in every run.

    Args:
        sample: traces for each fault at most.
    """
    found = {}
    for name, fault in FAULTS.items():
        order = list(field.traces)
        random.Random(derive_seed(field.config.seed, "plant", name)).shuffle(order)
        pairs: list[tuple[Trace, Trace]] = []
        for trace in order:
            if len(pairs) == sample:
                break
            if (altered := fault(trace, field)) is not None:
                pairs.append((trace, altered))
        found[name] = pairs
    return found


@functools.cache
def _sentences(language: str) -> Mapping[str, str]:
    text = (resources.files("auditor.prompts") / language / "faults.toml").read_text(encoding="utf-8")
    sentences: dict[str, str] = tomllib.loads(text)
    return sentences
