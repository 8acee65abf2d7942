"""Verdicts as a table of judges and traces, which the statistics on judges take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain.families import family_of
from auditor.reports.source import Floats, Source
from auditor.storage.ballots import Ballot

TraceKey = tuple[str, str, str, int]
"""Model, country, topic, sample."""


@dataclass(frozen=True)
class Table:
    """Verdicts that were given, shape (judges, traces): 1 is VALID, 0 INVALID, nan none.

    Attributes:
        judges, authors: names; `traces` in order.
        seats: the judges that each trace went to; None where it went to all that may judge its author.
    """

    config: AuditConfig | None
    judges: list[str]
    authors: list[str]
    traces: list[TraceKey]
    ballots: list[Ballot]
    seats: Mapping[TraceKey, Sequence[str]] | None = None

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        row = {name: i for i, name in enumerate(self.judges)}
        column = {key: i for i, key in enumerate(self.traces)}
        rows = np.array([row[b.judge] for b in self.ballots], dtype=np.intp)
        return rows, np.array([column[_key(b)] for b in self.ballots], dtype=np.intp)

    def _laid_out(self, values: list[float]) -> Floats:
        table = np.full((len(self.judges), len(self.traces)), np.nan)
        table[self._places] = values
        return table

    @cached_property
    def said(self) -> Floats:
        """All verdicts."""
        return self._laid_out([float(b.valid) for b in self.ballots])

    @cached_property
    def fair(self) -> Floats:
        """Those that were asked whatever other judges said, which statistics rest on."""
        return self._laid_out([float(b.valid) if b.always else np.nan for b in self.ballots])

    @cached_property
    def confidence(self) -> Floats:
        """How sure judges say they are, in [0, 1]."""
        return self._laid_out([np.nan if b.confidence is None else b.confidence for b in self.ballots])

    @cached_property
    def moments(self) -> Floats:
        """When each verdict was recorded, in seconds."""
        return self._laid_out(
            [
                np.nan if b.answered_at is None else datetime.fromisoformat(b.answered_at).timestamp()
                for b in self.ballots
            ]
        )

    @cached_property
    def places(self) -> tuple[list[str], list[str]]:
        """Country and topic of each trace."""
        return [key[1] for key in self.traces], [key[2] for key in self.traces]

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """A number for the cell of each trace, shape (traces,): traces on one cell hang together."""
        number: dict[tuple[str, str], int] = {}
        return np.array([number.setdefault(key[1:3], len(number)) for key in self.traces], dtype=np.intp)

    @cached_property
    def longer(self) -> Floats:
        """1 for traces longer than the median of their author's in their language, 0 for shorter; nan where neither."""
        lengths: dict[tuple[str, str | None], dict[TraceKey, int]] = defaultdict(dict)
        for b in self.ballots:
            if b.length is not None:
                lengths[b.model, b.language][_key(b)] = b.length
        side: dict[TraceKey, float] = {}
        for group in lengths.values():
            middle = float(np.median(list(group.values())))
            side |= {key: float(n > middle) for key, n in group.items() if n != middle}
        return np.array([side.get(key, np.nan) for key in self.traces])

    @cached_property
    def own_family(self) -> NDArray[np.bool_]:
        """Whether a trace's author is of a judge's family, shape (judges, traces)."""
        kin = [family(self.config, name) for name in self.judges]
        authors = np.array([family(self.config, key[0]) for key in self.traces])
        return np.array([[k is not None and k == a for a in authors] for k in kin], dtype=np.bool_).reshape(
            len(self.judges), len(self.traces)
        )


def family(config: AuditConfig | None, name: str) -> str | None:
    """The family of a model or judge; None where it was imported without its id."""
    if config is None:
        return None
    found = next((m for m in [*config.models, *config.judge_models] if m.name == name), None)
    return None if found is None else found.family or family_of(found.model)


def table(source: Source) -> Table:
    """An audit's verdicts."""
    traces = sorted({_key(b) for b in source.ballots})
    seats = None if source.seats is None else {(p.model, *p.cell, p.sample): j for p, j in source.seats.items()}
    return Table(source.config, source.judge_names, source.models, traces, list(source.ballots), seats)


def _key(ballot: Ballot) -> TraceKey:
    return ballot.model, ballot.country, ballot.topic, ballot.sample
