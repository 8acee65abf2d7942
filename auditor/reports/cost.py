"""What the audit's answers cost; what is not known stays unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.reports.model import CostPart, CostRow
from auditor.reports.source import Source
from auditor.storage.tallies import CallTally


def cost(source: Source) -> CostPart:
    """Cost by model and purpose, and in all."""
    attempts = {(a.name, a.purpose): a.attempts for a in source.attempts}
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallTally]] = {}
    for tally in source.calls:
        groups.setdefault((tally.name, tally.purpose), []).append(tally)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    return CostPart(
        total=_row(None, None, source.calls, sum(attempts.values())),
        rows=[_row(*key, groups[key], attempts.get(key, 0)) for key in keys],
    )


def _row(name: str | None, purpose: str | None, tallies: Sequence[CallTally], attempts: int) -> CostRow:
    priced = [t.cost_usd * t.answers for t in tallies if t.cost_usd is not None]
    unpriced = sum(t.answers for t in tallies if t.cost_usd is None)
    return CostRow(
        name=name,
        purpose=purpose,
        calls=sum(t.calls for t in tallies),
        attempts=attempts,
        answers=sum(t.answers for t in tallies),
        prompt_tokens=sum(t.prompt_tokens for t in tallies),
        completion_tokens=sum(t.completion_tokens for t in tallies),
        untold_tokens=sum(t.untold for t in tallies),
        usd=math.fsum(priced) if priced else None,
        unpriced=unpriced,
        lower_bound=unpriced > 0,
    )
