"""Counts of planned and recorded answers and verdicts by stage: their schema, and versions of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import Field

from auditor.config import AuditConfig
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Cell, Method, Outcome
from auditor.domain.audit_records import AnswerSelection
from auditor.reports.data.report_model import FlatRow, ReportModel, publish
from auditor.storage.costs import AnswerVersion, CallCounts
from auditor.storage.count_queries import OutcomeCount


class CoverageRow(ReportModel):
    """Planned and recorded items of one group. Planned = ok + all losses + missing."""

    stage: Annotated[str, Field(json_schema_extra={"examples": ["direct", "review", *list_built_in_names()]})]
    """`direct`: samples of scores, or comparisons of log-probabilities. `review`: verdicts. `semantic`: answers to
    questions, rules of thumb, and judgements of pairs. `logic`: comparisons of items. Any other: the answers of the
    probe of this name, from another package."""
    method: str | None
    """Method of scores; `answers`, `rules` or `judgements` (of pairs) for the probe `semantic`; null for verdicts and
    comparisons of items."""
    name: str | None
    """The model, country, topic or judge; null for the total."""
    planned: int
    ok: int
    losses: dict[str, int]
    """Lost items by outcome; only outcomes that occurred. Items that were asked for again count by their first
    outcome."""
    missing: int
    """Items neither ok nor lost for a recorded cause: not asked yet, or absent from an import."""
    asked_again: int = 0
    """Lost items that were asked for again, once each (`auditor run --ask-again`)."""
    answered_again: int = 0
    """Those of them with a usable second answer. Figures use it, although the item counts as lost here."""

    @property
    def never_asked(self) -> int:
        """Items that were not asked for: the run ended before, or its budget did not allow it."""
        return self.missing + self.losses.get(Outcome.OVER_BUDGET, 0)

    @property
    def lost_requests(self) -> int:
        """Items whose requests got no answer, such as from a server that is down. The model did not cause this."""
        return sum(n for outcome, n in self.losses.items() if Outcome(outcome).is_lost_request)

    @property
    def is_incomplete(self) -> bool:
        """Whether more than 5% of the items were never asked for, or more than 10% got no answer for any reason."""
        too_few_asked = self.never_asked > MAX_NEVER_ASKED_SHARE * self.planned
        return too_few_asked or self.never_asked + self.lost_requests > MAX_UNANSWERED_SHARE * self.planned

    @property
    def counted_label(self) -> str:
        """Name of the counted items, in the plural."""
        if self.stage == "direct":
            return f"{self.method} comparisons" if self.method == Method.LOGPROB else "answers"
        if self.stage == "review":
            return "verdicts"
        if self.stage in list_built_in_names():
            return load_built_in(self.stage).counted_labels[self.method]
        return f"{self.stage} answers"


MAX_NEVER_ASKED_SHARE = 0.05
MAX_UNANSWERED_SHARE = 0.1
"""Shares of planned items above which an audit is not complete; the second counts lost requests too."""
ASK_UNANSWERED_ADVICE = (
    "To ask for them, run `auditor run CONFIG` again; recorded answers cost nothing. If the budget ended the run, "
    "raise limits.budget_usd first"
)


def describe_unanswered(row: CoverageRow) -> str:
    """Which items of a row were never asked for or got no answer, and why, such as "19 of 50 answers of gpt …"."""
    causes = {"never asked for": row.never_asked, "lost with their requests": row.lost_requests}
    counts = " and ".join(f"{n} {'was' if n == 1 else 'were'} {cause}" for cause, n in causes.items() if n)
    outcomes = [f"{n} {outcome}" for outcome, n in row.losses.items() if not Outcome(outcome).is_answer]
    outcomes += [f"{row.missing} not recorded"] if row.missing else []
    return f"of {row.planned} {row.counted_label} of {row.name or 'the audit'}, {counts} ({', '.join(outcomes)})"


class FinishReasonRow(ReportModel):
    """Answers of one model with one undocumented finish reason."""

    name: str
    reason: str
    """Finish reason as the provider wrote it."""
    answers: int


class ExclusionRow(FlatRow):
    """Answers that a person declared invalid. They are in no figure, and count as lost."""

    id: int
    selection: Annotated[AnswerSelection, publish("model", "country", "topic", "sample", "probe")]
    """Null where it is all models, countries, topics, samples, or probes; the probe `direct` has the direct answers."""
    reason: str
    excluded_at: str
    answers: int
    """Recorded answers that are excluded."""


class CoverageReport(ReportModel):
    """Coverage in total, and by model, country, topic and judge."""

    total: list[CoverageRow]
    models: list[CoverageRow]
    """Coverage by model; for verdicts, the model whose traces were judged."""
    countries: list[CoverageRow]
    """Moral questions and comparisons of items belong to no country or topic, so they are left out here."""
    topics: list[CoverageRow]
    judges: list[CoverageRow]
    undocumented_finish_reasons: list[FinishReasonRow]
    """Finish reasons that are not documented. Such an answer is usable only where it could be read in full."""
    unplanned_cells: int = 0
    """Cells of the configured countries and topics that are not asked about, because of `limits.max_cells`. They are
    not planned, so they are not missing."""
    exclusions: list[ExclusionRow] = Field(default_factory=list)
    """Declarations in force, the oldest first."""
    excluded_before_import: int = 0
    """Answers of an imported file that had been declared invalid before; the file does not say why."""
    shortened_traces: dict[str, int]
    """Traces longer than `probes.review.max_trace_chars`, by model; judges saw their beginning and end. Only models
    with such traces are listed."""
    addressing_traces: dict[str, int] = Field(default_factory=dict)
    """Usable traces that address their judge, by model, in audits with verdicts. Only models with such traces are
    listed."""


OK = Outcome.OK.value


class CoverageUnit(NamedTuple):
    """Smallest unit of coverage: a model's (or judge's) name, a country and a topic; empty where not applicable."""

    name: str
    country: str
    topic: str


class UnitOutcomeCount(NamedTuple):
    """Samples or verdicts of one unit that ended in one outcome."""

    unit: CoverageUnit
    outcome: str
    n: int


class UnitRepeatCount(NamedTuple):
    """Items of one unit that were asked for again since their first answer had one outcome.

    `answered` of the `n` items had a usable second answer.
    """

    unit: CoverageUnit
    first_outcome: str
    n: int
    answered: int


@dataclass(frozen=True)
class StageCoverage:
    """Planned and recorded items of one stage and method, by unit.

    Attributes:
        recorded: by outcome; items that were asked for again count by their first outcome.
        repeats: the items that were asked for again.
        max_planned: the most items of each unit that may be asked for, if answers decide how many; None if `planned`.
    """

    stage: str
    method: str | None
    planned: Mapping[CoverageUnit, int]
    recorded: Sequence[UnitOutcomeCount]
    repeats: Sequence[UnitRepeatCount] = ()
    max_planned: Mapping[CoverageUnit, int] | None = None

    @classmethod
    def of_first_outcomes(
        cls,
        stage: str,
        method: str | None,
        planned: Mapping[CoverageUnit, int],
        recorded: Iterable[UnitOutcomeCount],
        repeats: Sequence[UnitRepeatCount],
        max_planned: Mapping[CoverageUnit, int] | None = None,
    ) -> StageCoverage:
        """Coverage of a stage whose items, as `recorded` counts them, may have been asked for again."""
        counts = Counter[tuple[CoverageUnit, str]]()
        for unit, outcome, n in recorded:
            counts[unit, outcome] += n
        for repeat in repeats:
            counts[repeat.unit, OK] -= repeat.answered
            counts[repeat.unit, repeat.first_outcome] += repeat.answered
        outcome_counts = [UnitOutcomeCount(unit, outcome, n) for (unit, outcome), n in counts.items() if n]
        return cls(stage, method, planned, outcome_counts, repeats, max_planned)

    @cached_property
    def usable(self) -> Mapping[CoverageUnit, int]:
        """Items of each unit with a usable answer, be it the second one."""
        usable = Counter[CoverageUnit]({unit: n for unit, outcome, n in self.recorded if outcome == OK})
        for repeat in self.repeats:
            usable[repeat.unit] += repeat.answered
        return usable

    @classmethod
    def by_model(
        cls, stage: str, method: str | None, rows: Iterable[tuple[str, int, int, Mapping[str, int]]]
    ) -> StageCoverage:
        """Coverage of a probe whose answers belong to no cell.

        Args:
            stage: name of the probe.
            method: key of `BuiltInProbe.counted_labels`.
            rows: of each model, its name, and the numbers of planned, usable, and lost answers; the last by outcome.
        """
        planned, recorded = {}, []
        for name, n_planned, n_ok, losses in rows:
            unit = CoverageUnit(name, "", "")
            planned[unit] = n_planned
            recorded += [UnitOutcomeCount(unit, outcome, n) for outcome, n in {OK: n_ok, **losses}.items() if n]
        return cls(stage, method, planned, recorded)

    @cached_property
    def planned_totals(self) -> Mapping[CoverageUnit, int]:
        """Planned items of each unit, at least as many as are recorded."""
        recorded = Counter[CoverageUnit]()
        for unit, _, n in self.recorded:
            recorded[unit] += n
        return {unit: max(self.planned.get(unit, 0), recorded[unit]) for unit in {**self.planned, **recorded}}


def count_planned_verdicts(
    config: AuditConfig,
    traces: Iterable[OutcomeCount],
    scored_traces: Iterable[tuple[str, Cell, int]] = (),
    *,
    guaranteed_only: bool = True,
) -> dict[CoverageUnit, int]:
    """Count verdicts by unit: those that are certain to be asked for, of an adaptive panel the smallest majority.

    Without `guaranteed_only`, count the most that may be asked for.

    Args:
        traces: counts of traces by outcome.
        scored_traces: keys of the traces with a score; used only where the review depends on which they are.
    """
    verdicts_per_trace = {model.name: config.panel_size(model.name) for model in config.models}
    if config.panel.adaptive and guaranteed_only:
        from auditor.metrics.judges.votes import min_majority

        verdicts_per_trace = {model: min_majority(n) for model, n in verdicts_per_trace.items()}
    n_traces_by_unit = count_reviewable_traces(config, traces, scored_traces)
    return {
        unit: n * verdicts_per_trace[unit.name]
        for unit, n in n_traces_by_unit.items()
        if verdicts_per_trace.get(unit.name)
    }


def count_reviewable_traces(
    config: AuditConfig | None, traces: Iterable[OutcomeCount], scored_traces: Iterable[tuple[str, Cell, int]] = ()
) -> dict[CoverageUnit, int]:
    """Count the traces of each model and cell that judges review: those with a score, up to `probes.review.traces`.

    Args:
        traces: counts of traces by outcome.
        scored_traces: keys of the traces with a score; used only where the review depends on which they are.
    """
    if config is not None and config.review_varies_by_trace:
        from auditor.panel_assignment import TraceKey, select_reviewed

        return Counter(
            CoverageUnit(trace.model, *trace.cell)
            for trace in select_reviewed(config, (TraceKey(*key) for key in scored_traces))
        )
    limit = config.probes.review.traces if config else "all"
    scored = {CoverageUnit(count.model, count.country, count.topic): count.n for count in traces if count.outcome == OK}
    return {unit: n if limit == "all" else min(n, limit) for unit, n in scored.items()}


class ModelVersionRow(FlatRow):
    """Answers of one model with the same reported version, altered parameters and form of structured answers."""

    version: Annotated[AnswerVersion, publish(*AnswerVersion._fields)]
    answers: int
    first_at: str
    last_at: str


def build_model_version_rows(call_counts: Iterable[CallCounts]) -> list[ModelVersionRow]:
    """Group answers by model, reported version, altered parameters and form; sorted by model, then earliest answer."""
    counts_by_version: dict[AnswerVersion, list[CallCounts]] = {}
    for counts in call_counts:
        if counts.sums.answers and counts.is_current:
            counts_by_version.setdefault(counts.version, []).append(counts)
    rows = [
        ModelVersionRow(
            version=version,
            answers=sum(counts.sums.answers for counts in group),
            first_at=min(counts.first_at or "" for counts in group),
            last_at=max(counts.last_at or "" for counts in group),
        )
        for version, group in counts_by_version.items()
    ]
    return sorted(rows, key=lambda row: (row.version.name, row.first_at, *(field or "" for field in row.version)))


def count_versions_by_model(rows: Iterable[ModelVersionRow]) -> dict[str, int]:
    """Count the reported versions of each model; 0 where its provider reports none."""
    versions_by_model: dict[str, set[tuple[str | None, str | None]]] = {}
    for version in (row.version for row in rows):
        reported = (
            {(version.served_model, version.fingerprint)} if version.served_model or version.fingerprint else set()
        )
        versions_by_model.setdefault(version.name, set()).update(reported)
    return {name: len(versions) for name, versions in sorted(versions_by_model.items())}


def find_models_with_version_changes(rows: Iterable[ModelVersionRow]) -> list[str]:
    """List the models with more than one reported version."""
    return [name for name, n in count_versions_by_model(rows).items() if n > 1]
