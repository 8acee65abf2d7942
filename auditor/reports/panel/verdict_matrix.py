"""Verdicts as a table of judges and traces, which the statistics on judges take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain.model_families import family_of
from auditor.reports.report_source import Floats, Source
from auditor.storage.votes import Ballots, TraceKey


@dataclass(frozen=True)
class Table:
    """Verdicts that were given, shape (judges, traces): 1 is VALID, 0 INVALID, nan none.

    Attributes:
        judges: names; `traces`, in order, are those of the verdicts.
        seats: the judges that each trace went to; None where it went to all that may judge its author.
    """

    config: AuditConfig | None
    judges: list[str]
    ballots: Ballots
    seats: Mapping[TraceKey, Sequence[str]] | None = None

    @property
    def traces(self) -> Sequence[TraceKey]:
        return self.ballots.traces

    def _laid_out(self, values: NDArray[np.generic]) -> Floats:
        row = {name: i for i, name in enumerate(self.judges)}
        rows = np.array([row[name] for name in self.ballots.judges], dtype=np.intp)
        table = np.full((len(self.judges), len(self.traces)), np.nan)
        table[rows[self.ballots.judge], self.ballots.trace] = values
        return table

    @cached_property
    def said(self) -> Floats:
        """All verdicts."""
        return self._laid_out(self.ballots.valid)

    @cached_property
    def fair(self) -> Floats:
        """Those that were asked whatever other judges said, which statistics rest on."""
        if self.ballots.always.all():
            return self.said
        return self._laid_out(np.where(self.ballots.always, self.ballots.valid, np.nan))

    @property
    def confidence(self) -> Floats:
        """How sure judges say they are, in [0, 1]."""
        return self._laid_out(self.ballots.confidence)

    @property
    def moments(self) -> Floats:
        """When each verdict was recorded, in seconds."""
        return self._laid_out(self.ballots.answered_at)

    @cached_property
    def _numbered(self) -> tuple[dict[tuple[str, str], int], NDArray[np.intp]]:
        number: dict[tuple[str, str], int] = {}
        return number, np.array([number.setdefault(key[1:3], len(number)) for key in self.traces], dtype=np.intp)

    @property
    def cells(self) -> NDArray[np.intp]:
        """A number for the cell of each trace, shape (traces,): traces on one cell hang together."""
        return self._numbered[1]

    @cached_property
    def places(self) -> tuple[Sequence[str], Sequence[str]]:
        """Country and topic of each cell, by its number."""
        return [country for country, _ in self._numbered[0]], [topic for _, topic in self._numbered[0]]

    @cached_property
    def longer(self) -> Floats:
        """1 for traces longer than the median of their author's in their language, 0 for shorter; nan where neither."""
        groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for place, (key, language) in enumerate(zip(self.traces, self.ballots.languages, strict=True)):
            groups[key[0], language].append(place)
        side = np.full(len(self.traces), np.nan)
        for members in groups.values():
            lengths = self.ballots.lengths[members]
            with np.errstate(invalid="ignore"):
                away = lengths - np.median(lengths[~np.isnan(lengths)]) if not np.isnan(lengths).all() else lengths
            side[members] = np.where(away > 0, 1.0, np.where(away < 0, 0.0, np.nan))
        return side

    @cached_property
    def own_family(self) -> NDArray[np.bool_]:
        """Whether a trace's author is of a judge's family, shape (judges, traces)."""
        authors, place = np.unique([key[0] for key in self.traces], return_inverse=True)
        of_author = [family(self.config, str(name)) for name in authors]
        kin = [family(self.config, name) for name in self.judges]
        same = np.array([[k is not None and k == a for a in of_author] for k in kin], dtype=np.bool_)
        return same.reshape(len(kin), len(authors))[:, place]


def family(config: AuditConfig | None, name: str) -> str | None:
    """The family of a model or judge; None where it was imported without its id."""
    if config is None:
        return None
    found = next((m for m in [*config.models, *config.judge_models] if m.name == name), None)
    return None if found is None else found.family or family_of(found.model)


def table(source: Source) -> Table:
    """An audit's verdicts."""
    seats = None if source.seats is None else {(p.model, *p.cell, p.sample): j for p, j in source.seats.items()}
    return Table(source.config, source.judge_names, source.ballots, seats)
