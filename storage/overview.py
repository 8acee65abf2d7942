"""Overview of the audits of a database: stage, progress, usable share, cost and conflicts of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from auditor.config import AuditConfig, load_stored_config
from auditor.domain import SurveyCell, Trace, Verdict
from auditor.errors import ConfigError, format_count
from auditor.storage import costs
from auditor.storage.audits import FINAL_STAGES, Audit, load_audits
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database, find_runner
from auditor.storage.probe_results import AnswerCount, count_answers, count_probe_answers, name_answers
from auditor.storage.review_queue import ConflictQueue
from auditor.storage.row_classes import table_of


@dataclass(frozen=True, slots=True)
class AuditOverview:
    """Summary of one audit.

    Attributes:
        audit: the audit as stored.
        title: of the survey, or the source of the task.
        runner: process that runs it now, as `process 42 on host`; None if there is none, or it is not known.
        is_simulated: whether its models are simulated; False without a config that this version can read.
        models: number of models audited; 0 without a config that this version can read.
        planned_samples: number of samples that the config asks for; the maximum as long as adaptive sampling goes on.
            None for imported scores, and without a config that this version can read.
        traces, verdicts: recorded so far.
        probe_answers: recorded answers of the other probes, by the probe's name; of every probe, if only zero.
        cost_usd: sum of the known costs in US dollars; None if none is known.
        unpriced: number of calls that were answered at an unknown price.
        conflicts: number of conflicts by status, people's decisions included.
    """

    audit: Audit
    title: str
    runner: str | None
    is_simulated: bool
    models: int
    planned_samples: int | None
    traces: AnswerCount
    verdicts: AnswerCount
    probe_answers: dict[str, AnswerCount]
    cost_usd: float | None
    unpriced: int
    conflicts: dict[ConflictStatus, int]

    @property
    def is_finished(self) -> bool:
        return self.audit.stage in FINAL_STAGES

    @property
    def progress(self) -> float | None:
        """Share of the planned samples that were collected, in [0, 1]; None if none were planned."""
        return min(self.traces.n / self.planned_samples, 1.0) if self.planned_samples else None

    @property
    def usable_share(self) -> float | None:
        """Share of the samples and the answers of other probes whose outcome is `ok`, in [0, 1]; None without any."""
        counts = [self.traces, *self.probe_answers.values()]
        n_collected = sum(count.n for count in counts)
        return sum(count.ok for count in counts) / n_collected if n_collected else None

    def describe_probe_answers(self) -> list[str]:
        """Name the number of answers of each probe that has some, such as "1 200 comparisons"."""
        return [
            f"{format_count(count.n)} {name_answers(name)}{'' if count.n == 1 else 's'}"
            for name, count in self.probe_answers.items()
            if count.n
        ]

    @property
    def n_conflicts(self) -> int:
        """Number of conflicts of any status."""
        return sum(self.conflicts.values())


def load_overviews(db: Database) -> list[AuditOverview]:
    """Load an overview of every audit, newest first. Only reads, so that it does not block a running audit."""
    return [_load_overview(db, audit) for audit in reversed(load_audits(db))]


def _load_overview(db: Database, audit: Audit) -> AuditOverview:
    """Load the overview of one audit."""
    config = _load_readable_config(audit)
    survey = json.loads(audit.survey)
    with db.read() as connection:
        traces, verdicts = (count_answers(connection, audit.id, row_class) for row_class in (Trace, Verdict))
        probe_answers = count_probe_answers(connection, audit.id)
        of_task = survey.get("task") is not None
        c = table_of(SurveyCell).c
        query = sa.select(c.country, sa.func.count()).where(c.audit_id == audit.id).group_by(c.country)
        query = query if of_task else query.where(c.score.is_not(None))
        cells = {country: int(n) for country, n in connection.execute(query)}
    cost = costs.sum_audit_cost(db, audit.id)
    return AuditOverview(
        audit=audit,
        title=survey["task"]["source"] if survey.get("task") else survey["title"],
        runner=find_runner(db, audit.name),
        is_simulated=config is not None and config.is_simulated,
        models=len(config.models) if config else 0,
        planned_samples=_count_planned_samples(
            config, cells, survey.get("native", {}), traces.n if audit.stage in FINAL_STAGES else None
        )
        if config
        else None,
        traces=traces,
        verdicts=verdicts,
        probe_answers=probe_answers,
        cost_usd=cost.usd,
        unpriced=cost.unpriced,
        conflicts=ConflictQueue(db, audit.id, rater="").count_by_status(),
    )


def _load_readable_config(audit: Audit) -> AuditConfig | None:
    """The audit's configuration; None for imported scores, and if another version stored it in a form unknown here.

    The other audits are listed all the same; opening this one explains the problem.
    """
    try:
        return load_stored_config(audit.config)
    except ConfigError:
        return None


def _count_planned_samples(
    config: AuditConfig,
    cells_by_country: Mapping[str, int],
    native_languages: Mapping[str, Sequence[str]],
    n_taken: int | None,
) -> int:
    """Maximum number of samples; if sampling could stop early and has ended, the number that was taken."""
    if config.direct.is_open_ended and n_taken is not None:
        return n_taken
    samples_per_model = sum(
        n * config.samples_per_cell(native_languages.get(country, ())) for country, n in cells_by_country.items()
    )
    return len(config.models) * samples_per_model
