"""What a report is made of: everything read from storage once, and the scores as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, CellScore, Conflict, Contest, Guess, Method, Rating, Survey, Trial
from auditor.storage import audits, moral, results, tallies, trials
from auditor.storage.audits import Audit
from auditor.storage.ballots import Ballot, ballots
from auditor.storage.consistency import with_weights
from auditor.storage.database import Database
from auditor.storage.tallies import AttemptTally, CallTally, JudgeTally, OutcomeTally, RepairTally, RulingTally

Floats = NDArray[np.float64]
METHOD_ORDER = tuple(m.value for m in Method)


@dataclass(frozen=True)
class Source:
    """An audit as stored.

    Attributes:
        config: None for an audit of imported scores.
        fair_judges: as `judges`, without verdicts that an adaptive panel asked for only on disputed traces.
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
    attempts: Sequence[AttemptTally] = ()
    lost: Sequence[AttemptTally] = ()
    conflicts: Sequence[Conflict] = field(default=(), repr=False)
    ratings: Sequence[Rating] = field(default=(), repr=False)
    contrasts: Sequence[OutcomeTally] = ()
    fair_judges: Sequence[JudgeTally] = ()
    ballots: Sequence[Ballot] = field(default=(), repr=False)
    guesses: Sequence[Guess] = field(default=(), repr=False)
    trials: Sequence[Trial] = field(default=(), repr=False)
    contests: Sequence[Contest] = field(default=(), repr=False)
    repairs: Sequence[RepairTally] = ()

    answering: Sequence[str] = ()
    """Models that answered moral questions."""

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
        """What there are scores of: (method, model), method by method; empty until anything is measured."""
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
        """The survey's cells in its order, then any that only a model has."""
        known = [c.cell for c in self.survey.cells]
        return [*known, *sorted({s.cell for s in self.scores}.difference(known))]

    @cached_property
    def truth(self) -> Floats:
        """What people say, shape (cells,); nan where they were not asked."""
        scores = self.survey.scores
        return np.array([scores.get(cell, np.nan) for cell in self.cells], dtype=float)

    @cached_property
    def countries(self) -> list[str]:
        return list(dict.fromkeys(c.country for c in self.cells))

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

    def _read(self, name: str) -> Floats:
        column = {c: i for i, c in enumerate(self.columns)}
        row = {c: i for i, c in enumerate(self.cells)}
        table = np.full((len(column), len(row)), np.nan)
        for score in self.scores:
            value = getattr(score, name)
            if value is not None:
                table[column[score.method, score.model], row[score.cell]] = value
        return table


def load(db: Database, name: str) -> Source:
    """Read all that a report needs of an audit.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get(db, name)
    config = None if audit.config is None else AuditConfig.model_validate_json(audit.config)
    return Source(
        audit=audit,
        config=None if config is None else with_weights(db, audit.id, config),
        survey=audits.survey_of(db, audit),
        scores=results.scores(db, audit.id),
        traces=tallies.trace_tallies(db, audit.id),
        contrasts=tallies.contrast_tallies(db, audit.id),
        repairs=tallies.repair_tallies(db, audit.id),
        verdicts=tallies.verdict_tallies(db, audit.id),
        judges=tallies.judge_tallies(db, audit.id),
        fair_judges=tallies.judge_tallies(db, audit.id, always=True),
        rulings=tallies.ruling_tallies(db, audit.id),
        calls=tallies.call_tallies(db, audit.id),
        attempts=tallies.attempt_tallies(db, audit.id),
        lost=tallies.lost_tallies(db, audit.id),
        conflicts=results.conflicts(db, audit.id),
        ratings=results.ratings(db, audit.id),
        answering=moral.answering_models(db, audit.id),
        ballots=ballots(db, audit.id),
        guesses=trials.guesses(db, audit.id),
        trials=trials.trials(db, audit.id),
        contests=trials.contests(db, audit.id),
    )


def _rank(method: str) -> int:
    return METHOD_ORDER.index(method) if method in METHOD_ORDER else len(METHOD_ORDER)


def _index(values: Sequence[str], order: Sequence[str]) -> NDArray[np.intp]:
    position = {value: i for i, value in enumerate(order)}
    return np.array([position[value] for value in values], dtype=np.intp)
