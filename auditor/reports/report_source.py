"""What a report is made of: everything read from storage once, and the scores as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import AlteredTraceVerdict, Cell, CellScore, Conflict, Contest, Guess, Method, Rating, Survey
from auditor.errors import UsageError
from auditor.panel_assignment import TraceKey, assign_panels, select_reviewed
from auditor.storage import audits, costs, count_queries, judge_tests, results, semantic_results, tasks
from auditor.storage.audits import Audit
from auditor.storage.costs import CallCounts, UnreturnedCallCount
from auditor.storage.count_queries import (
    JudgeVerdictCounts,
    OutcomeCount,
    PeerVerdictCounts,
    RepairCounts,
    RulingSplitCount,
)
from auditor.storage.database import Database
from auditor.storage.judge_consistency import apply_consistency_weights
from auditor.storage.votes import VoteArrays, count_duplicate_verdicts, load_votes

FloatArray = NDArray[np.float64]
METHOD_ORDER = tuple(m.value for m in Method)
MAX_CONCURRENT_QUERIES = 2
"""Queries that work at the same time; more would each need their memory at once."""


@dataclass(frozen=True)
class ReportSource:
    """An audit as stored.

    Attributes:
        config: None for an audit of imported scores.
    """

    audit: Audit
    config: AuditConfig | None
    survey: Survey
    scores: Sequence[CellScore]
    trace_counts: Sequence[OutcomeCount] = ()
    verdict_counts: Sequence[OutcomeCount] = ()
    judge_counts: Sequence[JudgeVerdictCounts] = ()
    final_verdict_counts: Sequence[RulingSplitCount] = ()
    call_counts: Sequence[CallCounts] = ()
    failed_attempt_counts: Sequence[UnreturnedCallCount] = ()
    conflicts: Sequence[Conflict] = field(default=(), repr=False)
    ratings: Sequence[Rating] = field(default=(), repr=False)
    sentence_pair_counts: Sequence[OutcomeCount] = ()
    votes: VoteArrays = field(default_factory=VoteArrays.empty, repr=False)
    n_repeated_verdicts: int = 0
    author_guesses: Sequence[Guess] = field(default=(), repr=False)
    judge_tests: Sequence[AlteredTraceVerdict] = field(default=(), repr=False)
    position_tests: Sequence[Contest] = field(default=(), repr=False)
    repair_counts: Sequence[RepairCounts] = ()
    n_shortened_traces: Mapping[str, int] = field(default_factory=dict)
    """Traces that were too long for a judge and were shortened, by model."""

    task_answers: Mapping[tuple[str, Cell, int], str] = field(default_factory=dict, repr=False)
    """To the items of a task, by model, item and sample."""
    semantic_models: Sequence[str] = ()
    """Models that answered moral questions."""

    peer_verdict_counts: Sequence[PeerVerdictCounts] = field(default=(), repr=False)
    """Valid verdicts by the model they are about and cell, but for those that an adaptive panel asked for on disputed
    traces only."""

    scored_traces: Sequence[tuple[str, Cell, int]] = field(default=(), repr=False)
    """Model, cell and sample of the traces that have a score; read only where it matters which they are."""

    @cached_property
    def reviewed_traces(self) -> list[TraceKey]:
        """The traces that went before judges, where `readable` was read."""
        return select_reviewed(self.config, (TraceKey(*key) for key in self.scored_traces)) if self.config else []

    @cached_property
    def judges_by_trace(self) -> dict[TraceKey, list[str]] | None:
        """Names of the judges of each trace that went before some; None where all went before all that may judge."""
        if self.config is None or self.config.panel.judges_per_trace is None:
            return None
        panels = assign_panels(self.config, self.survey)
        return {place: [judge.name for judge in panels.panel(place)] for place in self.reviewed_traces}

    @property
    def seed(self) -> int:
        """Of all resampling."""
        return self.config.seed if self.config else 0

    @cached_property
    def models(self) -> list[str]:
        """Audited models: in the config's order, then by name."""
        configured = [m.name for m in self.config.models] if self.config else []
        seen = {s.model for s in self.scores} | {t.model for t in self.trace_counts} | set(self.semantic_models)
        return [*configured, *sorted(seen.difference(configured))]

    @cached_property
    def judge_names(self) -> list[str]:
        """Judges: in the config's order, then by name."""
        configured = [j.name for j in self.config.judge_models] if self.config else []
        return [*configured, *sorted({j.judge for j in self.judge_counts}.difference(configured))]

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """What there are scores of to set beside people's: (method, model), method by method.

        Empty until anything is measured, and for a task, whose answers are measured apart.
        """
        if self.survey.task is not None:
            return []
        known = {(s.method, s.model) for s in self.scores}
        known |= {
            (Method.DIRECT.value, name)
            for name in self.models
            if self.scores and self.config and self.config.probes.direct
        }
        rank = {name: i for i, name in enumerate(self.models)}
        return sorted(known, key=lambda c: (_method_rank(c[0]), c[0], rank[c[1]]))

    @cached_property
    def cells(self) -> list[Cell]:
        """The survey's cells in its order, then any that only a model has.

        Where asking ended once r was known closely enough, cells that no model was asked about are left out.
        """
        known = [c.cell for c in self.survey.cells]
        if self.config is not None and self.config.direct.target_width is not None:
            asked = {Cell(t.country, t.topic) for t in self.trace_counts}
            known = [c.cell for c in self.survey.cells if c.score is None or c.cell in asked]
        return [*known, *sorted({s.cell for s in self.scores}.difference(known))]

    @cached_property
    def survey_scores(self) -> FloatArray:
        """What people say, shape (cells,); nan where they were not asked."""
        scores = self.survey.scores
        return np.array([scores.get(cell, np.nan) for cell in self.cells], dtype=float)

    @cached_property
    def countries(self) -> list[str]:
        return list(dict.fromkeys(c.country for c in self.cells))

    @property
    def named_countries(self) -> list[str]:
        """Countries; none for a task, whose items belong to no country."""
        return [country for country in self.countries if country]

    @cached_property
    def topics(self) -> list[str]:
        return list(dict.fromkeys(c.topic for c in self.cells))

    @cached_property
    def country_index(self) -> NDArray[np.intp]:
        """Position of each cell's country, shape (cells,)."""
        return _positions([c.country for c in self.cells], self.countries)

    @cached_property
    def topic_index(self) -> NDArray[np.intp]:
        """Position of each cell's topic, shape (cells,)."""
        return _positions([c.topic for c in self.cells], self.topics)

    @cached_property
    def score_matrix(self) -> FloatArray:
        """Scores, shape (columns, cells); nan where there is none."""
        return self._matrix("score")

    @cached_property
    def variance_matrix(self) -> FloatArray:
        """Variances of the samples, shape (columns, cells); nan where there is none."""
        return self._matrix("variance")

    @cached_property
    def self_consistency_matrix(self) -> FloatArray:
        """Self-consistencies, shape (columns, cells); nan where there is none."""
        return self._matrix("self_consistency")

    def column_values(self, field_name: str, column: int) -> FloatArray:
        """One figure of a series of scores, shape (cells,); nan where there is none."""
        values: FloatArray = self._matrix(field_name)[column]
        return values

    @cached_property
    def _matrices(self) -> dict[str, FloatArray]:
        return {}

    def _matrix(self, field_name: str) -> FloatArray:
        if field_name not in self._matrices:
            self._matrices[field_name] = self._build_matrix(field_name)
        return self._matrices[field_name]

    def _build_matrix(self, field_name: str) -> FloatArray:
        column = {c: i for i, c in enumerate(self.columns)}
        row = {c: i for i, c in enumerate(self.cells)}
        table = np.full((len(column), len(row)), np.nan)
        for score in self.scores:
            value = getattr(score, field_name)
            if value is not None:
                table[column[score.method, score.model], row[score.cell]] = value
        return table


_SOURCE_QUERIES: Mapping[str, Callable[[Database, int], Any]] = {
    "call_counts": costs.count_calls,  # those that take longest begin first
    "votes": load_votes,
    "n_repeated_verdicts": count_duplicate_verdicts,
    "judge_counts": count_queries.count_judge_verdicts,
    "conflicts": results.load_conflicts,
    "final_verdict_counts": count_queries.count_ruling_splits,
    "verdict_counts": count_queries.count_verdicts,
    "peer_verdict_counts": count_queries.count_peer_verdicts,
    "scores": results.load_scores,
    "trace_counts": count_queries.count_traces,
    "sentence_pair_counts": count_queries.count_sentence_pairs,
    "repair_counts": count_queries.count_repairs,
    "failed_attempt_counts": costs.count_unreturned_calls,
    "ratings": results.load_ratings,
    "semantic_models": semantic_results.answering_models,
    "author_guesses": judge_tests.load_guesses,
    "judge_tests": judge_tests.load_altered_trace_verdicts,
    "position_tests": judge_tests.load_contests,
}
"""What fills the fields of a `Source`."""


def load_source(db: Database, audit_name: str) -> ReportSource:
    """Read all that a report needs of an audit.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get_audit(db, audit_name)
    config = None if audit.config is None else AuditConfig.model_validate_json(audit.config)
    survey = audits.load_audit_survey(db, audit)
    queries = dict(_SOURCE_QUERIES)
    if survey.task:
        queries["task_answers"] = tasks.load_answers
    if config and config.review_varies_by_trace:
        queries["scored_traces"] = results.load_scored_trace_keys
    if config:
        limit = config.probes.review.max_trace_chars
        queries["n_shortened_traces"] = lambda db, audit_id: count_queries.count_shortened_traces(db, audit_id, limit)
    with ThreadPoolExecutor(
        MAX_CONCURRENT_QUERIES
    ) as readers:  # a query leaves the interpreter to others while it works
        found = {field: readers.submit(query, db, audit.id) for field, query in queries.items()}
        return ReportSource(
            audit=audit,
            config=None if config is None else apply_consistency_weights(db, audit.id, config),
            survey=survey,
            **{field: rows.result() for field, rows in found.items()},
        )


def require_survey_audit(
    audit_name: str, survey: Survey, feature: str, how_to_fix: str = "Name an audit of a survey."
) -> None:
    """Hold back what sets scores beside people's from an audit whose answers are right or wrong.

    Raises:
        UsageError: the audit is of a task; `what` says what needs people's answers, `instead` how to mend it.
    """
    if survey.task is not None:
        raise UsageError(
            f"audit '{audit_name}' is of a task, and {feature} needs people's answers to a survey.", how_to_fix
        )


def _method_rank(method: str) -> int:
    return METHOD_ORDER.index(method) if method in METHOD_ORDER else len(METHOD_ORDER)


def _positions(values: Sequence[str], ordered_values: Sequence[str]) -> NDArray[np.intp]:
    position = {value: i for i, value in enumerate(ordered_values)}
    return np.array([position[value] for value in values], dtype=np.intp)
