"""What the audit's answers cost; what is not known stays unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from auditor.reports.cost.schema import CostPart, CostRow
from auditor.reports.report_source import Source
from auditor.storage.costs import AttemptTally, CallTally


def cost(source: Source) -> CostPart:
    """Cost by model and purpose, and in all."""
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallTally]] = {}
    for tally in source.calls:
        groups.setdefault((tally.name, tally.purpose), []).append(tally)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    return CostPart(
        total=_row(None, None, source.calls),
        rows=[_row(*key, groups[key]) for key in keys],
        lost=sum(lost.attempts for lost in source.lost),
        lost_usd=_lost(source.lost, groups),
    )


def _lost(lost: Sequence[AttemptTally], groups: Mapping[tuple[str, str], Sequence[CallTally]]) -> float | None:
    """The most that lost calls may have cost, going by the dearest of their kind."""
    dearest = {k: max((t.cost_usd for t in ts if t.cost_usd is not None), default=None) for k, ts in groups.items()}
    bounds = [(tally.attempts, dearest.get((tally.name, tally.purpose))) for tally in lost]
    known = [n * most for n, most in bounds if most is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _row(name: str | None, purpose: str | None, tallies: Sequence[CallTally]) -> CostRow:
    priced = [t.cost_usd * t.calls for t in tallies if t.cost_usd is not None]
    unpriced = sum(t.unpriced for t in tallies)
    return CostRow(
        name=name,
        purpose=purpose,
        calls=sum(t.calls for t in tallies),
        attempts=sum(t.attempts for t in tallies),
        answers=sum(t.answers for t in tallies),
        prompt_tokens=sum(t.prompt_tokens for t in tallies),
        completion_tokens=sum(t.completion_tokens for t in tallies),
        untold_tokens=sum(t.untold for t in tallies),
        cached_tokens=sum(t.cached_tokens for t in tallies) if any(t.told_tokens for t in tallies) else None,
        told_tokens=sum(t.told_tokens for t in tallies),
        usd=math.fsum(priced) if priced else None,
        unpriced=unpriced,
        lower_bound=unpriced > 0,
        estimated_usd=math.fsum(t.estimated_usd * t.calls for t in tallies),
        estimated_requests=sum(t.estimated for t in tallies),
    )
