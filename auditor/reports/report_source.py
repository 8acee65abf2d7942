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
from auditor.domain import Cell, CellScore, Conflict, Contest, Guess, Method, Rating, Survey, Trial
from auditor.errors import UsageError
from auditor.panel_assignment import Place, reviewed, seating
from auditor.storage import audits, costs, count_queries, judge_tests, results, semantic_results, tasks
from auditor.storage.audits import Audit
from auditor.storage.costs import AttemptTally, CallTally
from auditor.storage.count_queries import (
    JudgeTally,
    OutcomeTally,
    PeerTally,
    RepairTally,
    RulingTally,
)
from auditor.storage.database import Database
from auditor.storage.judge_consistency import with_weights
from auditor.storage.votes import Ballots, ballots, repeated

Floats = NDArray[np.float64]
METHOD_ORDER = tuple(m.value for m in Method)
AT_ONCE = 2
"""Queries that work at the same time; more would each need their memory at once."""


@dataclass(frozen=True)
class Source:
    """An audit as stored.

    Attributes:
        config: None for an audit of imported scores.
    """

    audit: Audit
    config: AuditConfig | None
    survey: Survey
    scores: Sequence[CellScore]
    traces: Sequence[OutcomeTally] = ()
    verdicts: Sequence[OutcomeTally] = ()
    judges: Sequence[JudgeTally] = ()
    rulings: Sequence[RulingTally] = ()
    calls: Sequence[CallTally] = ()
    lost: Sequence[AttemptTally] = ()
    conflicts: Sequence[Conflict] = field(default=(), repr=False)
    ratings: Sequence[Rating] = field(default=(), repr=False)
    contrasts: Sequence[OutcomeTally] = ()
    ballots: Ballots = field(default_factory=Ballots.none, repr=False)
    repeated: int = 0
    guesses: Sequence[Guess] = field(default=(), repr=False)
    trials: Sequence[Trial] = field(default=(), repr=False)
    contests: Sequence[Contest] = field(default=(), repr=False)
    repairs: Sequence[RepairTally] = ()
    shortened: Mapping[str, int] = field(default_factory=dict)
    """Traces that were too long for a judge and were shortened, by model."""

    answers: Mapping[tuple[str, Cell, int], str] = field(default_factory=dict, repr=False)
    """To the items of a task, by model, item and sample."""
    answering: Sequence[str] = ()
    """Models that answered moral questions."""

    peers: Sequence[PeerTally] = field(default=(), repr=False)
    """Valid verdicts by the model they are about and cell, but for those that an adaptive panel asked for on disputed
    traces only."""

    readable: Sequence[tuple[str, Cell, int]] = field(default=(), repr=False)
    """Model, cell and sample of the traces that have a score; read only where it matters which they are."""

    @cached_property
    def reviewed(self) -> list[Place]:
        """The traces that went before judges, where `readable` was read."""
        return reviewed(self.config, (Place(*key) for key in self.readable)) if self.config else []

    @cached_property
    def seats(self) -> dict[Place, list[str]] | None:
        """Names of the judges of each trace that went before some; None where all went before all that may judge."""
        if self.config is None or self.config.panel.judges_per_trace is None:
            return None
        panels = seating(self.config, self.survey)
        return {place: [judge.name for judge in panels.panel(place)] for place in self.reviewed}

    @property
    def seed(self) -> int:
        """Of all resampling."""
        return self.config.seed if self.config else 0

    @cached_property
    def models(self) -> list[str]:
        """Audited models: in the config's order, then by name."""
        configured = [m.name for m in self.config.models] if self.config else []
        seen = {s.model for s in self.scores} | {t.model for t in self.traces} | set(self.answering)
        return [*configured, *sorted(seen.difference(configured))]

    @cached_property
    def judge_names(self) -> list[str]:
        """Judges: in the config's order, then by name."""
        configured = [j.name for j in self.config.judge_models] if self.config else []
        return [*configured, *sorted({j.judge for j in self.judges}.difference(configured))]

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
        return sorted(known, key=lambda c: (_rank(c[0]), c[0], rank[c[1]]))

    @cached_property
    def cells(self) -> list[Cell]:
        """The survey's cells in its order, then any that only a model has.

        Where asking ended once r was known closely enough, cells that no model was asked about are left out.
        """
        known = [c.cell for c in self.survey.cells]
        if self.config is not None and self.config.direct.target_width is not None:
            asked = {Cell(t.country, t.topic) for t in self.traces}
            known = [c.cell for c in self.survey.cells if c.score is None or c.cell in asked]
        return [*known, *sorted({s.cell for s in self.scores}.difference(known))]

    @cached_property
    def truth(self) -> Floats:
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
        return _index([c.country for c in self.cells], self.countries)

    @cached_property
    def topic_index(self) -> NDArray[np.intp]:
        """Position of each cell's topic, shape (cells,)."""
        return _index([c.topic for c in self.cells], self.topics)

    @cached_property
    def matrix(self) -> Floats:
        """Scores, shape (columns, cells); nan where there is none."""
        return self._read("score")

    @cached_property
    def variance(self) -> Floats:
        """Variances of the samples, shape (columns, cells); nan where there is none."""
        return self._read("variance")

    @cached_property
    def cosine(self) -> Floats:
        """Self-consistencies, shape (columns, cells); nan where there is none."""
        return self._read("self_consistency")

    def column_of(self, name: str, column: int) -> Floats:
        """One figure of a series of scores, shape (cells,); nan where there is none."""
        values: Floats = self._read(name)[column]
        return values

    @cached_property
    def _tables(self) -> dict[str, Floats]:
        return {}

    def _read(self, name: str) -> Floats:
        if name not in self._tables:
            self._tables[name] = self._laid_out(name)
        return self._tables[name]

    def _laid_out(self, name: str) -> Floats:
        column = {c: i for i, c in enumerate(self.columns)}
        row = {c: i for i, c in enumerate(self.cells)}
        table = np.full((len(column), len(row)), np.nan)
        for score in self.scores:
            value = getattr(score, name)
            if value is not None:
                table[column[score.method, score.model], row[score.cell]] = value
        return table


_QUERIES: Mapping[str, Callable[[Database, int], Any]] = {
    "calls": costs.call_tallies,  # those that take longest begin first
    "ballots": ballots,
    "repeated": repeated,
    "judges": count_queries.judge_tallies,
    "conflicts": results.conflicts,
    "rulings": count_queries.ruling_tallies,
    "verdicts": count_queries.verdict_tallies,
    "peers": count_queries.peer_tallies,
    "scores": results.scores,
    "traces": count_queries.trace_tallies,
    "contrasts": count_queries.contrast_tallies,
    "repairs": count_queries.repair_tallies,
    "lost": costs.lost_tallies,
    "ratings": results.ratings,
    "answering": semantic_results.answering_models,
    "guesses": judge_tests.guesses,
    "trials": judge_tests.trials,
    "contests": judge_tests.contests,
}
"""What fills the fields of a `Source`."""


def load(db: Database, name: str) -> Source:
    """Read all that a report needs of an audit.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get(db, name)
    config = None if audit.config is None else AuditConfig.model_validate_json(audit.config)
    survey = audits.survey_of(db, audit)
    queries = dict(_QUERIES)
    if survey.task:
        queries["answers"] = tasks.answers
    if config and config.is_thinned:
        queries["readable"] = results.readable
    if config:
        limit = config.probes.review.max_trace_chars
        queries["shortened"] = lambda db, audit_id: count_queries.shortened_traces(db, audit_id, limit)
    with ThreadPoolExecutor(AT_ONCE) as readers:  # a query leaves the interpreter to others while it works
        found = {field: readers.submit(query, db, audit.id) for field, query in queries.items()}
        return Source(
            audit=audit,
            config=None if config is None else with_weights(db, audit.id, config),
            survey=survey,
            **{field: rows.result() for field, rows in found.items()},
        )


def refuse_task(name: str, survey: Survey, what: str, instead: str = "Name an audit of a survey.") -> None:
    """Hold back what sets scores beside people's from an audit whose answers are right or wrong.

    Raises:
        UsageError: the audit is of a task; `what` says what needs people's answers, `instead` how to mend it.
    """
    if survey.task is not None:
        raise UsageError(f"audit '{name}' is of a task, and {what} needs people's answers to a survey.", instead)


def _rank(method: str) -> int:
    return METHOD_ORDER.index(method) if method in METHOD_ORDER else len(METHOD_ORDER)


def _index(values: Sequence[str], order: Sequence[str]) -> NDArray[np.intp]:
    position = {value: i for i, value in enumerate(order)}
    return np.array([position[value] for value in values], dtype=np.intp)
