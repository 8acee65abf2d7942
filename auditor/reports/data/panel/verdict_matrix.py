"""Verdicts as matrices of judges by traces, the input of the statistics on judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import Units, sampling_units
from auditor.storage.votes import TraceKey, VoteArrays


@dataclass(frozen=True)
class VerdictMatrix:
    """Verdicts of an audit; matrices have shape (judges, traces).

    Attributes:
        config: None for an audit of imported scores.
        judges: names, in the order of the rows.
        votes: verdicts; its `traces` are the columns.
        assignments: the judges assigned to each trace; None where all judges that may judge its author are.
    """

    config: AuditConfig | None
    judges: list[str]
    votes: VoteArrays
    assignments: Mapping[TraceKey, Sequence[str]] | None = None

    @property
    def traces(self) -> Sequence[TraceKey]:
        """Keys of the traces, in the order of the columns."""
        return self.votes.traces

    def _to_matrix(self, vote_values: NDArray[np.generic]) -> FloatArray:
        """Arrange one number per vote in a matrix of shape (judges, traces); nan where a judge gave no verdict."""
        row_by_judge = {name: i for i, name in enumerate(self.judges)}
        judge_rows = np.array([row_by_judge[name] for name in self.votes.judges], dtype=np.intp)
        matrix = np.full((len(self.judges), len(self.traces)), np.nan)
        matrix[judge_rows[self.votes.judge_index], self.votes.trace_index] = vote_values
        return matrix

    @cached_property
    def all_verdicts(self) -> FloatArray:
        """All verdicts: 1 VALID, 0 INVALID, nan without a verdict."""
        return self._to_matrix(self.votes.valid)

    @cached_property
    def unconditional_verdicts(self) -> FloatArray:
        """Verdicts asked for independently of other judges' verdicts, which statistics rest on; nan for others."""
        # `always`: whether the judge was asked in any case, not only because an adaptive panel was split.
        if self.votes.always.all():
            return self.all_verdicts
        return self._to_matrix(np.where(self.votes.always, self.votes.valid, np.nan))

    @cached_property
    def is_assigned(self) -> NDArray[np.bool_]:
        """Whether each judge is assigned to each trace, shape (judges, traces); for imports, whether it has a verdict.

        For traces of no configured model, the judges with a verdict are taken as assigned.
        """
        is_assigned = ~np.isnan(self.all_verdicts)
        if self.config is None:
            return is_assigned
        row_by_judge = {name: row for row, name in enumerate(self.judges)}
        judges_by_author = {
            model.name: [judge.name for judge in self.config.judges_of(model.name)] for model in self.config.models
        }
        for column, key in enumerate(self.traces):
            # The first item of a key is the author.
            judges = judges_by_author.get(key[0]) if self.assignments is None else self.assignments.get(key)
            if judges is not None:
                is_assigned[:, column] = False
                is_assigned[[row_by_judge[judge] for judge in judges], column] = True
        return is_assigned

    @property
    def confidence(self) -> FloatArray:
        """Stated confidence of each verdict, in [0, 1]."""
        return self._to_matrix(self.votes.confidence)

    @property
    def recorded_at(self) -> FloatArray:
        """Time at which each verdict was recorded, in seconds."""
        return self._to_matrix(self.votes.answered_at)

    @cached_property
    def units(self) -> Units:
        """The countries and topics of the traces, or the items of a task: the units that intervals are over."""
        return sampling_units([key[1] for key in self.traces], [key[2] for key in self.traces])

    @cached_property
    def is_longer_trace(self) -> FloatArray:
        """1 for traces longer than the median for their author and language, 0 for shorter, nan otherwise."""
        groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for trace_index, (key, language) in enumerate(zip(self.traces, self.votes.languages, strict=True)):
            # The first item of a key is the author.
            groups[key[0], language].append(trace_index)
        is_longer = np.full(len(self.traces), np.nan)
        for trace_indices in groups.values():
            lengths = self.votes.lengths[trace_indices]
            with np.errstate(invalid="ignore"):
                excess_length = (
                    lengths - np.median(lengths[~np.isnan(lengths)]) if not np.isnan(lengths).all() else lengths
                )
            is_longer[trace_indices] = np.where(excess_length > 0, 1.0, np.where(excess_length < 0, 0.0, np.nan))
        return is_longer

    @cached_property
    def is_same_family(self) -> NDArray[np.bool_]:
        """Whether a trace's author and the judge are of the same model family, shape (judges, traces)."""
        authors, author_index = np.unique([key[0] for key in self.traces], return_inverse=True)
        author_families = [find_family(self.config, str(name)) for name in authors]
        judge_families = [find_family(self.config, name) for name in self.judges]
        is_same = np.array(
            [
                [judge_family is not None and judge_family == author_family for author_family in author_families]
                for judge_family in judge_families
            ],
            dtype=np.bool_,
        )
        return is_same.reshape(len(judge_families), len(authors))[:, author_index]


def find_family(config: AuditConfig | None, model_name: str) -> str | None:
    """Return the model family of a model or judge; None for imports or unknown names."""
    if config is None:
        return None
    model = config.models_by_name.get(model_name)
    return None if model is None else model.resolved_family


def build_verdict_matrix(source: ReportSource) -> VerdictMatrix:
    """Build the verdict matrix of an audit."""
    assignments = (
        None
        if source.judges_by_trace is None
        else {(trace.model, *trace.cell, trace.sample): judges for trace, judges in source.judges_by_trace.items()}
    )
    return VerdictMatrix(source.config, source.judge_names, source.votes, assignments)
