"""Input of a report: the stored records of an audit, how they are read, its scores as arrays, and their units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig, load_stored_config
from auditor.domain import AlteredTraceVerdict, Cell, CellScore, Conflict, Contest, Guess, Method, Survey
from auditor.domain.audit_records import DesignAnswer, Exclusion, PlannedRun
from auditor.domain.labels import Label, LabelKind, LabelUnit, UnitToLabel
from auditor.errors import UsageError
from auditor.metrics.intervals.two_way import UnitLabels
from auditor.panel_assignment import TraceKey, assign_panels, select_reviewed
from auditor.prompts.language_data import addresses_judge
from auditor.storage import audits, costs, count_queries, results
from auditor.storage.audits import Audit
from auditor.storage.batches import UnreadBatch, load_unread_batches
from auditor.storage.call_records import StoredCapability
from auditor.storage.costs import CallCounts, UnreturnedCallCount
from auditor.storage.count_queries import (
    JudgeVerdictCounts,
    OutcomeCount,
    ProbeRepeatCount,
    RepeatCount,
)
from auditor.storage.database import Database
from auditor.storage.exclusions import count_excluded_before_import, load_exclusions
from auditor.storage.labels import load_label_frame, load_label_sample, load_labels
from auditor.storage.probe_results import apply_vote_weights, list_answering_models
from auditor.storage.records import load_records
from auditor.storage.review_queue import ReviewedConflict, load_reviewed_conflicts
from auditor.storage.votes import VoteArrays, load_votes
from auditor.surveys.regions import get_zones

if TYPE_CHECKING:
    from auditor.reports.data.coverage.lost_samples import SampleCounts

CHANGED_REASON = (
    "traces were added, removed or changed since the random sample was drawn, so it is no random sample of them. "
    "Draw a new one with `auditor review AUDIT --sample N --redraw`; labels of unchanged traces are kept"
)


@dataclass(frozen=True)
class LabelRecords:
    """A random sample of traces and people's labels.

    Attributes:
        sample: empty unless one was drawn or imported.
        labels: in force.
        frame: the traces that could be drawn, with the stratum of each; empty if they were in no strata.
        reason: why the labels cannot be used; None if they can, or if there are none.
    """

    sample: Sequence[UnitToLabel] = ()
    labels: Sequence[Label] = ()
    frame: Sequence[tuple[LabelUnit, tuple[str, ...]]] = ()
    reason: str | None = None

    @property
    def is_imported(self) -> bool:
        """Whether the sample was drawn elsewhere: then it has no strata."""
        return any(row.stratum == () for row in self.sample)


def load_label_records(db: Database, audit_id: int) -> LabelRecords:
    """Load the labels of traces. Of a sample that was drawn here, all traces must be as they were at the draw."""
    labels = load_labels(db, audit_id, LabelKind.TRACE)
    frame = load_label_frame(db, audit_id, LabelKind.TRACE)
    if frame is None:
        return LabelRecords(labels=labels)
    sample = load_label_sample(db, audit_id, LabelKind.TRACE)
    return LabelRecords(sample, labels, frame.units, CHANGED_REASON if frame.is_outdated else None)


Units = dict[str, Sequence[str]]
"""For each kind of unit, such as `country`, the unit of each observation."""
MIN_ZONES = 6
"""Fewest cultural zones by which countries are clustered; with fewer, intervals take countries as independent."""


def cluster_countries(
    countries: Sequence[str], zone_by_country: Mapping[str, str], included: NDArray[np.bool_]
) -> UnitLabels:
    """Cluster countries by cultural zone if the included cells are in at least six zones, else by country.

    A country in no zone is a zone of its own and does not count towards the six.

    Args:
        countries: of each cell.
        included: whether a figure uses the cell, shape (cells,).

    Returns:
        Labels of all cells, shape (cells,).
    """
    names = np.array(countries, dtype=np.str_)
    included_countries = {str(country) for country in np.unique(names[included])}
    zones = {zone_by_country[country] for country in included_countries if country in zone_by_country}
    if len(zones) < MIN_ZONES:
        return UnitLabels(names)
    # A country may have the name of a zone.
    labels = [f"zone {zone_by_country[name]}" if name in zone_by_country else name for name in countries]
    return UnitLabels(np.array(labels, dtype=np.str_), "zone")


def sampling_units(countries: Sequence[str], topics: Sequence[str]) -> Units:
    """The units of observations in cells: countries and topics, or the items of a task.

    Args:
        countries, topics: of the cell of each observation; the countries are empty for a task.
    """
    if any(countries):
        return {"country": countries, "topic": topics}
    return {"item": topics}


def cell_units(cells: Iterable[Cell]) -> Units:
    """The units of observations that are in these cells, in their order."""
    places = [(cell.country, cell.topic) for cell in cells]
    return sampling_units([country for country, _ in places], [topic for _, topic in places])


RESCALED_SCORES_REASON = (
    "log-probability scores are rescaled to the full scale within each model, so their distance from people has no "
    "meaning"
)


def has_rescaled_scores(method: str) -> bool:
    """Whether scores by a method are rescaled within each model, so that they can be ranked but not subtracted.

    A log-probability score depends on all other cells of its model, so its distance from people's score means nothing.
    """
    return method == Method.LOGPROB


FloatArray = NDArray[np.float64]
METHOD_ORDER = tuple(m.value for m in Method)


@dataclass(frozen=True)
class ReportSource:
    """The stored records of an audit that its report is computed from.

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
    trace_repeats: Sequence[RepeatCount] = ()
    verdict_repeats: Sequence[RepeatCount] = ()
    sentence_pair_repeats: Sequence[RepeatCount] = ()
    probe_repeats: Sequence[ProbeRepeatCount] = ()
    exclusions: Sequence[Exclusion] = ()
    n_excluded_before_import: int = 0
    call_counts: Sequence[CallCounts] = ()
    failed_attempt_counts: Sequence[UnreturnedCallCount] = ()
    unread_batches: Sequence[UnreadBatch] = ()
    reviewed_conflicts: Sequence[ReviewedConflict] = field(default=(), repr=False)
    sentence_pair_counts: Sequence[OutcomeCount] = ()
    votes: VoteArrays = field(default_factory=VoteArrays.empty, repr=False)
    missing_votes: Sequence[results.JudgeRuling] = field(default=(), repr=False)
    """Verdicts without a ruling: of judges that failed, or abstained in an imported file."""
    author_guesses: Sequence[Guess] = field(default=(), repr=False)
    judge_tests: Sequence[AlteredTraceVerdict] = field(default=(), repr=False)
    position_tests: Sequence[Contest] = field(default=(), repr=False)
    n_shortened_traces: Mapping[str, int] = field(default_factory=dict)
    """Number of traces that were too long for a judge and were shortened, by model."""

    task_answers: Mapping[tuple[str, Cell, int], str] = field(default_factory=dict, repr=False)
    """Answers to the items of a task, people's included, by model or person, item and sample."""
    probe_models: Sequence[str] = ()
    """Models that answered as audited models, not as judges, in probes with a stage of their own."""

    capability_history: Sequence[StoredCapability] = ()
    """What servers were found to accept, the oldest of each model first."""

    label_records: LabelRecords = field(default_factory=LabelRecords, repr=False)
    """People's labels on a random sample of traces."""

    sample_scores: Sequence[tuple[str, Cell, int, float | None]] = field(default=(), repr=False)
    """Model, cell, number and score of each sample; empty unless questions were asked in several wordings."""

    design_runs: Sequence[PlannedRun] = field(default=(), repr=False)
    """Combinations of choices of the experiment `robustness`; empty where it was not run."""

    design_answers: Sequence[DesignAnswer] = field(default=(), repr=False)
    """Answers in these runs."""

    scored_traces: Sequence[tuple[str, Cell, int]] = field(default=(), repr=False)
    """Model, cell and sample of the traces that have a score; empty unless the review varies by trace."""

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """Conflicts of all kinds as the judges' votes left them."""
        return [reviewed.conflict for reviewed in self.reviewed_conflicts]

    @cached_property
    def reviewed_traces(self) -> list[TraceKey]:
        """Traces that were sent to judges; empty unless `scored_traces` was read."""
        return select_reviewed(self.config, (TraceKey(*key) for key in self.scored_traces)) if self.config else []

    @cached_property
    def judges_by_trace(self) -> dict[TraceKey, list[str]] | None:
        """Names of the judges assigned to each reviewed trace; None where every eligible judge reviews every trace."""
        if self.config is None or self.config.panel.judges_per_trace is None:
            return None
        panels = assign_panels(self.config, self.survey)
        return {trace: [judge.name for judge in panels.panel(trace)] for trace in self.reviewed_traces}

    @property
    def seed(self) -> int:
        """Seed of all resampling; 0 for imported scores."""
        return self.config.seed if self.config else 0

    @cached_property
    def models(self) -> list[str]:
        """Audited models: those of the config in its order, then any others by name."""
        configured = [model_config.name for model_config in self.config.models] if self.config else []
        recorded = (
            {score.model for score in self.scores}
            | {count.model for count in self.trace_counts}
            | set(self.probe_models)
        )
        return [*configured, *sorted(recorded.difference(configured))]

    @cached_property
    def judge_names(self) -> list[str]:
        """Judges: those of the config in its order, then any others by name."""
        configured = [judge_config.name for judge_config in self.config.judge_models] if self.config else []
        return [*configured, *sorted({count.judge for count in self.judge_counts}.difference(configured))]

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """The series of scores that are compared with people's: (method, model), sorted by method.

        Empty until a score is recorded, and for a task, whose answers are scored separately.
        """
        if self.survey.task is not None:
            return []
        columns = {(score.method, score.model) for score in self.scores}
        # Models that were asked directly have a series even without a usable answer.
        columns |= {
            (Method.DIRECT.value, name)
            for name in self.models
            if self.scores and self.config and self.config.probes.direct
        }
        rank = {name: i for i, name in enumerate(self.models)}
        # column: method, model
        return sorted(columns, key=lambda column: (_method_rank(column[0]), column[0], rank[column[1]]))

    @cached_property
    def cells(self) -> list[Cell]:
        """The survey's cells in its order, then those that only a model has a score for.

        Where sampling stops once r is precise enough, cells that no model was asked about are left out.
        """
        survey_cells = [survey_cell.cell for survey_cell in self.survey.cells]
        if self.config is not None and self.config.direct.target_width is not None:
            asked_cells = {Cell(count.country, count.topic) for count in self.trace_counts}
            survey_cells = [
                survey_cell.cell
                for survey_cell in self.survey.cells
                if survey_cell.score is None or survey_cell.cell in asked_cells
            ]
        return [*survey_cells, *sorted({score.cell for score in self.scores}.difference(survey_cells))]

    @cached_property
    def survey_scores(self) -> FloatArray:
        """People's scores, shape (cells,); nan where people were not asked."""
        score_by_cell = self.survey.scores
        return np.array([score_by_cell.get(cell, np.nan) for cell in self.cells], dtype=float)

    @cached_property
    def countries(self) -> list[str]:
        """Countries of `cells`, in order of first appearance; a task has one empty name."""
        return list(dict.fromkeys(cell.country for cell in self.cells))

    @property
    def named_countries(self) -> list[str]:
        """Countries; none for a task, whose items belong to no country."""
        return [country for country in self.countries if country]

    @cached_property
    def topics(self) -> list[str]:
        """Topics of `cells`, in order of first appearance."""
        return list(dict.fromkeys(cell.topic for cell in self.cells))

    @cached_property
    def country_index(self) -> NDArray[np.intp]:
        """Index into `countries` of each cell's country, shape (cells,)."""
        return _positions([cell.country for cell in self.cells], self.countries)

    @cached_property
    def wording_scores(self) -> FloatArray | None:
        """Mean scores in each wording, shape (wordings, models, cells), nan without any; None for one wording."""
        if self.config is None or not self.sample_scores:
            return None
        model_index = {name: i for i, name in enumerate(self.models)}
        cell_index = {cell: i for i, cell in enumerate(self.cells)}
        sums = np.zeros((self.survey.n_wordings, len(model_index), len(cell_index)))
        counts = np.zeros_like(sums)
        for model, cell, sample, score in self.sample_scores:
            if score is not None and cell in cell_index and model in model_index:
                wording = self.config.direct.split_sample(sample)[1] % self.survey.n_wordings
                position = (wording, model_index[model], cell_index[cell])
                sums[position] += score
                counts[position] += 1
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def scores_by_wording(self, column: int) -> FloatArray | None:
        """Mean scores of one series in each wording, shape (wordings, cells); None if it was asked in one wording."""
        method, model = self.columns[column]
        if self.wording_scores is None or method != Method.DIRECT.value:
            return None
        scores: FloatArray = self.wording_scores[:, self.models.index(model)]
        return scores

    @cached_property
    def zone_by_country(self) -> Mapping[str, str]:
        """Cultural zone by country, of the countries that have one."""
        return get_zones(self.survey)

    def cluster_countries(self, *values: FloatArray) -> UnitLabels:
        """The units that intervals resample in the place of countries: cultural zones, or countries if these are few.

        Args:
            values: arrays of shape (cells,), of which a figure uses the cells in which none is nan.
        """
        included: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(array) for array in values])
        compared = frozenset(self.country_index[included].tolist())
        if compared not in self._clusters:
            countries = [cell.country for cell in self.cells]
            self._clusters[compared] = cluster_countries(countries, self.zone_by_country, included)
        return self._clusters[compared]

    @cached_property
    def _clusters(self) -> dict[frozenset[int], UnitLabels]:
        """What `cluster_countries` returned so far, by the indices of the countries that the figure uses."""
        return {}

    @cached_property
    def topic_index(self) -> NDArray[np.intp]:
        """Index into `topics` of each cell's topic, shape (cells,)."""
        return _positions([cell.topic for cell in self.cells], self.topics)

    @cached_property
    def score_matrix(self) -> FloatArray:
        """Models' scores, shape (columns, cells); nan where there is none."""
        return self._matrix("score")

    @cached_property
    def variance_matrix(self) -> FloatArray:
        """Variances of the samples' scores, shape (columns, cells); nan where there is none."""
        return self._matrix("variance")

    @cached_property
    def self_consistency_matrix(self) -> FloatArray:
        """Self-consistency of the samples, shape (columns, cells); nan where there is none."""
        return self._matrix("self_consistency")

    def column_values(self, field_name: str, column: int) -> FloatArray:
        """One field of `CellScore` for one series of scores, shape (cells,); nan where it is missing.

        Args:
            field_name: a numeric field of `CellScore`.
            column: index into `columns`.
        """
        values: FloatArray = self._matrix(field_name)[column]
        return values

    @cached_property
    def sample_counts(self) -> list[SampleCounts]:
        """Samples of each series of scores, in the order of `columns`."""
        from auditor.reports.data.coverage.lost_samples import count_samples  # needs this class

        return count_samples(self)

    @cached_property
    def _matrices(self) -> dict[str, FloatArray]:
        """Matrices that `_matrix` has built so far, by field name."""
        return {}

    def _matrix(self, field_name: str) -> FloatArray:
        """One field of `CellScore` as a matrix, shape (columns, cells); built at the first call and kept."""
        if field_name not in self._matrices:
            self._matrices[field_name] = self._build_matrix(field_name)
        return self._matrices[field_name]

    def _build_matrix(self, field_name: str) -> FloatArray:
        """Arrange one numeric field of `CellScore` as a matrix, shape (columns, cells); nan where it is missing."""
        column_index = {column: i for i, column in enumerate(self.columns)}
        cell_index = {cell: i for i, cell in enumerate(self.cells)}
        matrix = np.full((len(column_index), len(cell_index)), np.nan)
        for score in self.scores:
            value = getattr(score, field_name)
            if value is not None:
                matrix[column_index[score.method, score.model], cell_index[score.cell]] = value
        return matrix


def require_survey_audit(
    audit_name: str, survey: Survey, feature: str, how_to_fix: str = "Name an audit of a survey."
) -> None:
    """Check that an audit is of a survey, for a feature that compares scores with people's.

    Args:
        feature: what needs people's answers, as the subject of a sentence.
        how_to_fix: advice for the user, in the error.

    Raises:
        UsageError: the audit is of a task.
    """
    if survey.task is not None:
        raise UsageError(
            f"audit '{audit_name}' has a task instead of a survey, but {feature} needs people's answers.", how_to_fix
        )


def _method_rank(method: str) -> int:
    """Sort key of a method: known methods in their defined order, then others."""
    return METHOD_ORDER.index(method) if method in METHOD_ORDER else len(METHOD_ORDER)


def _positions(values: Sequence[str], ordered_values: Sequence[str]) -> NDArray[np.intp]:
    """Index of each value in `ordered_values`, shape (values,)."""
    position = {value: i for i, value in enumerate(ordered_values)}
    return np.array([position[value] for value in values], dtype=np.intp)


def count_addressing_traces(db: Database, source: ReportSource) -> dict[str, int]:
    """Count each model's usable traces that address their judge; none in an audit without verdicts.

    It reads all texts, so that only the report does it, and not what else loads a source.
    """
    if not source.verdict_counts:
        return {}
    texts = results.iterate_trace_texts(db, source.audit.id, usable_only=True)
    return dict(Counter(row.model for row in texts if addresses_judge(row.text, row.language)))


MAX_CONCURRENT_QUERIES = 2
"""Database queries that run at the same time; more would need too much memory at once."""
SOURCE_QUERIES: Mapping[str, Callable[[Database, int], Any]] = {
    "call_counts": costs.count_calls,  # the slowest queries start first
    "votes": load_votes,
    "judge_counts": count_queries.count_judge_verdicts,
    "reviewed_conflicts": load_reviewed_conflicts,
    "missing_votes": results.load_missing_votes,
    "verdict_counts": count_queries.count_verdicts,
    "scores": partial(load_records, record_class=CellScore),
    "trace_counts": count_queries.count_traces,
    "exclusions": load_exclusions,
    "trace_repeats": count_queries.count_trace_repeats,
    "verdict_repeats": count_queries.count_verdict_repeats,
    "sentence_pair_repeats": count_queries.count_sentence_pair_repeats,
    "probe_repeats": count_queries.count_probe_repeats,
    "sentence_pair_counts": count_queries.count_sentence_pairs,
    "failed_attempt_counts": costs.count_unreturned_calls,
    "unread_batches": load_unread_batches,
    "probe_models": list_answering_models,
    "author_guesses": partial(load_records, record_class=Guess),
    "judge_tests": partial(load_records, record_class=AlteredTraceVerdict),
    "position_tests": partial(load_records, record_class=Contest),
    "capability_history": partial(load_records, record_class=StoredCapability),
    "label_records": load_label_records,
    "design_runs": partial(load_records, record_class=PlannedRun),
    "design_answers": results.load_design_answers,
}
"""Database query that fills each field of `ReportSource`."""


def load_source(db: Database, audit_name: str, left_out: Collection[str] = ()) -> ReportSource:
    """Read all records that the report of an audit needs.

    Args:
        db: the database.
        audit_name: the audit's name.
        left_out: names of fields that are not read and stay empty, for what does not use them.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get_audit(db, audit_name)
    config = load_stored_config(audit.config)
    survey = audits.load_audit_survey(db, audit)
    queries = dict(SOURCE_QUERIES)
    if survey.task:
        queries["task_answers"] = audits.load_answers
    if survey.n_wordings > 1:
        queries["sample_scores"] = results.load_sample_scores
    if config and config.review_varies_by_trace:
        queries["scored_traces"] = results.load_scored_trace_keys
    if config is None:
        queries["n_excluded_before_import"] = count_excluded_before_import
    else:
        max_trace_chars = config.probes.review.max_trace_chars
        queries["n_shortened_traces"] = lambda db, audit_id: count_queries.count_shortened_traces(
            db, audit_id, max_trace_chars
        )
    queries = {field_name: query for field_name, query in queries.items() if field_name not in left_out}
    with ThreadPoolExecutor(MAX_CONCURRENT_QUERIES) as executor:  # a running query releases the GIL
        futures = {field_name: executor.submit(query, db, audit.id) for field_name, query in queries.items()}
        records = {field_name: future.result() for field_name, future in futures.items()}
    records |= {field_name: () for field_name in left_out if field_name in SOURCE_QUERIES}
    if survey.task and survey.task.people:
        people = set(survey.task.people)
        records["trace_counts"] = [count for count in records["trace_counts"] if count.model not in people]
    return ReportSource(
        audit=audit,
        config=None if config is None else apply_vote_weights(db, audit.id, config),
        survey=survey,
        **records,
    )
