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
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.storage.votes import TraceKey, VoteArrays


@dataclass(frozen=True)
class VerdictMatrix:
    """Verdicts that were given, shape (judges, traces): 1 is VALID, 0 INVALID, nan none.

    Attributes:
        judges: names; `traces`, in order, are those of the verdicts.
        seats: the judges that each trace went to; None where it went to all that may judge its author.
    """

    config: AuditConfig | None
    judges: list[str]
    votes: VoteArrays
    assignments: Mapping[TraceKey, Sequence[str]] | None = None

    @property
    def traces(self) -> Sequence[TraceKey]:
        return self.votes.traces

    def _to_matrix(self, vote_values: NDArray[np.generic]) -> FloatArray:
        row = {name: i for i, name in enumerate(self.judges)}
        rows = np.array([row[name] for name in self.votes.judges], dtype=np.intp)
        table = np.full((len(self.judges), len(self.traces)), np.nan)
        table[rows[self.votes.judge_index], self.votes.trace_index] = vote_values
        return table

    @cached_property
    def all_verdicts(self) -> FloatArray:
        """All verdicts."""
        return self._to_matrix(self.votes.valid)

    @cached_property
    def unconditional_verdicts(self) -> FloatArray:
        """Those that were asked whatever other judges said, which statistics rest on."""
        if self.votes.always.all():
            return self.all_verdicts
        return self._to_matrix(np.where(self.votes.always, self.votes.valid, np.nan))

    @property
    def confidence(self) -> FloatArray:
        """How sure judges say they are, in [0, 1]."""
        return self._to_matrix(self.votes.confidence)

    @property
    def recorded_at(self) -> FloatArray:
        """When each verdict was recorded, in seconds."""
        return self._to_matrix(self.votes.answered_at)

    @cached_property
    def _cell_numbering(self) -> tuple[dict[tuple[str, str], int], NDArray[np.intp]]:
        number: dict[tuple[str, str], int] = {}
        return number, np.array([number.setdefault(key[1:3], len(number)) for key in self.traces], dtype=np.intp)

    @property
    def cell_index(self) -> NDArray[np.intp]:
        """A number for the cell of each trace, shape (traces,): traces on one cell hang together."""
        return self._cell_numbering[1]

    @cached_property
    def cell_labels(self) -> tuple[Sequence[str], Sequence[str]]:
        """Country and topic of each cell, by its number."""
        return [country for country, _ in self._cell_numbering[0]], [topic for _, topic in self._cell_numbering[0]]

    @cached_property
    def is_longer_trace(self) -> FloatArray:
        """1 for traces longer than the median of their author's in their language, 0 for shorter; nan where neither."""
        groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for place, (key, language) in enumerate(zip(self.traces, self.votes.languages, strict=True)):
            groups[key[0], language].append(place)
        side = np.full(len(self.traces), np.nan)
        for members in groups.values():
            lengths = self.votes.lengths[members]
            with np.errstate(invalid="ignore"):
                away = lengths - np.median(lengths[~np.isnan(lengths)]) if not np.isnan(lengths).all() else lengths
            side[members] = np.where(away > 0, 1.0, np.where(away < 0, 0.0, np.nan))
        return side

    @cached_property
    def is_same_family(self) -> NDArray[np.bool_]:
        """Whether a trace's author is of a judge's family, shape (judges, traces)."""
        authors, place = np.unique([key[0] for key in self.traces], return_inverse=True)
        of_author = [find_family(self.config, str(name)) for name in authors]
        kin = [find_family(self.config, name) for name in self.judges]
        same = np.array([[k is not None and k == a for a in of_author] for k in kin], dtype=np.bool_)
        return same.reshape(len(kin), len(authors))[:, place]


def find_family(config: AuditConfig | None, model_name: str) -> str | None:
    """The family of a model or judge; None where it was imported without its id."""
    if config is None:
        return None
    found = next((m for m in [*config.models, *config.judge_models] if m.name == model_name), None)
    return None if found is None else found.family or family_of(found.model)


def build_verdict_matrix(source: ReportSource) -> VerdictMatrix:
    """An audit's verdicts."""
    seats = (
        None
        if source.judges_by_trace is None
        else {(p.model, *p.cell, p.sample): j for p, j in source.judges_by_trace.items()}
    )
    return VerdictMatrix(source.config, source.judge_names, source.votes, seats)
