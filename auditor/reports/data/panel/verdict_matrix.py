"""Verdicts as matrices of judges by traces, votes on traces, and their outcome under several voting rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, Ruling
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.jackknife_interval import Labels, UnitIndex, number_labels
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.metrics.judges.copying import split_weights
from auditor.metrics.judges.votes import agreement_with_others, dawid_skene
from auditor.reports.data.panel.schema import LabelSource, VotingRuleRow
from auditor.reports.data.report_source import FloatArray, ReportSource, sampling_units
from auditor.reports.data.task import select_model_answers
from auditor.storage.votes import TraceKey, VoteArrays


@dataclass(frozen=True)
class VerdictMatrix:
    """Verdicts of an audit; matrices have shape (judges, traces).

    Attributes:
        config: None for an audit of imported scores.
        judges: names, in the order of the rows.
        votes: verdicts; its `traces` are the columns.
        assignments: the judges assigned to each trace; None where all judges that may judge its author are.
        missing_votes: judge and trace of the verdicts without a ruling.
    """

    config: AuditConfig | None
    judges: list[str]
    votes: VoteArrays
    assignments: Mapping[TraceKey, Sequence[str]] | None = None
    missing_votes: Sequence[tuple[str, TraceKey]] = ()

    @property
    def traces(self) -> Sequence[TraceKey]:
        """Keys of the traces, in the order of the columns."""
        return self.votes.traces

    @property
    def is_adaptive(self) -> bool:
        """Whether judges were asked one after another, so that some assigned ones were not asked."""
        return self.config is not None and self.config.panel.adaptive

    @cached_property
    def n_unjudged(self) -> int:
        """Number of traces that no judge gave a verdict on, though some were asked; they have no column."""
        return len({trace for _, trace in self.missing_votes}.difference(self.traces))

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
    def has_failed(self) -> NDArray[np.bool_]:
        """Whether each judge was asked about each trace and gave no ruling, shape (judges, traces)."""
        has_failed = np.zeros((len(self.judges), len(self.traces)), dtype=np.bool_)
        row_by_judge = {name: row for row, name in enumerate(self.judges)}
        column_by_trace = {key: column for column, key in enumerate(self.traces)}
        for judge, key in self.missing_votes:
            if key in column_by_trace and judge in row_by_judge:
                has_failed[row_by_judge[judge], column_by_trace[key]] = True
        return has_failed

    @cached_property
    def is_assigned(self) -> NDArray[np.bool_]:
        """Whether each judge is assigned to each trace, shape (judges, traces); for imports, whether the file says so.

        For traces of no configured model, the judges with a verdict are taken as assigned.
        """
        is_assigned = ~np.isnan(self.all_verdicts)
        if self.config is None:
            return is_assigned | self.has_failed
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
    def units(self) -> UnitIndex:
        """Numbers of the traces' countries and topics, or items of a task: the units that intervals are over."""
        units = sampling_units([key[1] for key in self.traces], [key[2] for key in self.traces])
        return {unit: number_labels(labels) for unit, labels in units.items()}

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
    missing_votes = [(row.judge, (row.model, *row.cell, row.sample)) for row in source.missing_votes]
    return VerdictMatrix(source.config, source.judge_names, source.votes, assignments, missing_votes)


@dataclass(frozen=True)
class LabelledVerdicts:
    """Verdicts on traces, of which some have a known truth.

    Attributes:
        source: None without labelled traces.
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan without a verdict.
        truth: shape (traces,): 1, 0, or nan where unknown.
        units: of the traces.
        kinds: the planted fault of each trace; None for a task.
    """

    source: LabelSource | None
    verdicts: FloatArray
    truth: FloatArray
    units: Labels
    kinds: NDArray[np.str_] | None = None

    @property
    def n_labels(self) -> int:
        """Number of labelled traces with a verdict."""
        return int((~np.isnan(self.truth) & (~np.isnan(self.verdicts)).any(axis=0)).sum())


def load_labelled_verdicts(source: ReportSource, matrix: VerdictMatrix) -> LabelledVerdicts:
    """Collect the labelled traces of an audit: the answers to its task, or its traces with a planted fault."""
    if source.survey.task is None:
        return _collect_planted_faults(source)
    truth = load_task_truth(source, matrix)
    label_source: LabelSource | None = None if np.isnan(truth).all() else "truth of the task"
    return LabelledVerdicts(label_source, matrix.unconditional_verdicts, truth, matrix.units)


def load_task_truth(source: ReportSource, matrix: VerdictMatrix) -> FloatArray:
    """Whether the answer of each trace is right, shape (traces,): 1, 0, or nan where unknown, as in a survey."""
    truth = np.full(len(matrix.traces), np.nan)
    if source.survey.task is None:
        return truth
    answers = select_model_answers(source, source.survey.task)
    if answers.accuracy_missing_reason is None:
        for column, (model, country, topic, sample) in enumerate(matrix.traces):
            is_right = answers.correctness.get((model, Cell(country, topic), sample))
            truth[column] = np.nan if is_right is None else float(is_right)
    return truth


def _collect_planted_faults(source: ReportSource) -> LabelledVerdicts:
    """Collect the verdicts on traces with a planted fault, whose truth is INVALID."""
    tests = [
        test for test in source.judge_tests if test.has_fault and test.outcome is Outcome.OK and test.ruling is not None
    ]
    traces = sorted({(test.alteration, test.model, test.cell, test.sample) for test in tests})
    columns = {key: column for column, key in enumerate(traces)}
    rows = {judge: row for row, judge in enumerate(source.judge_names)}
    verdicts = np.full((len(rows), len(traces)), np.nan)
    for test in tests:
        if test.judge in rows:
            column = columns[test.alteration, test.model, test.cell, test.sample]
            verdicts[rows[test.judge], column] = float(test.ruling is Ruling.VALID)
    cells = [cell for _, _, cell, _ in traces]
    return LabelledVerdicts(
        "planted faults" if traces else None,
        verdicts,
        np.zeros(len(traces)),
        sampling_units([cell.country for cell in cells], [cell.topic for cell in cells]),
        np.array([fault for fault, *_ in traces], dtype=np.str_),
    )


def decide_by_weight(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """Weighted majority of each trace, shape (traces,): 1 VALID, 0 INVALID, nan if neither has over half the weight.

    Args:
        weights: shape (judges, traces), or (judges, 1); those of all assigned judges are in the denominator.
    """
    verdicts = matrix.all_verdicts
    weight_by_side = [(weights * (verdicts == ruling)).sum(axis=0) for ruling in (1, 0)]
    total = (weights * matrix.is_assigned).sum(axis=0)
    # The factor absorbs rounding: half is no majority.
    return np.where(
        weight_by_side[0] > total / 2 * (1 + 1e-12),
        1.0,
        np.where(weight_by_side[1] > total / 2 * (1 + 1e-12), 0.0, np.nan),
    )


def share_weights(matrix: VerdictMatrix, groups: Sequence[Sequence[int]], weights: FloatArray) -> FloatArray:
    """Weights, shape (judges, traces), where the members of a group that are assigned to a trace share one vote.

    Args:
        groups: judges that share one vote; together they have all judges.
        weights: shape (judges,).
    """
    is_assigned = matrix.is_assigned
    shared = np.repeat(weights[:, None], is_assigned.shape[1], axis=1)
    for group in groups:
        members = list(group)
        shared[members] /= np.maximum(is_assigned[members].sum(axis=0), 1)
    return shared


Groups = Sequence[Sequence[int]]
REFERENCE_REASON = "it is the reference for the other rules"
ADAPTIVE_REASON = "an adaptive panel asks no more judges than its own rule needs"


def build_vote_rows(source: ReportSource, matrix: VerdictMatrix, groups: Groups) -> list[VotingRuleRow]:
    """Apply each voting rule to the traces, one row per rule; the majority of the assigned judges comes first.

    The others are the majority where each group has one vote (only if there are groups), votes weighted by agreement
    with the rest, weighted as configured, and Dawid and Skene's model. Empty without verdicts.

    Args:
        groups: positions of judges that share one vote; together they have all judges.
    """
    if not matrix.traces:
        return []
    ones = np.ones(len(matrix.judges))
    majority = decide_by_weight(matrix, ones[:, None])
    majority_row = _build_vote_row("majority", majority, majority, {}, matrix.units)
    rows = [majority_row.model_copy(update={"differs": ShareEstimate(None, 0, reason=REFERENCE_REASON)})]
    if len(groups) < len(matrix.judges):
        split = None if matrix.is_adaptive else decide_by_weight(matrix, share_weights(matrix, groups, ones))
        weights = dict(zip(matrix.judges, split_weights(groups).tolist(), strict=True))
        rows.append(_build_vote_row("copies split", split, majority, weights, matrix.units, ADAPTIVE_REASON))
    rows.append(_build_agreement_row(matrix, majority, groups))
    if source.config is not None and source.config.panel.weights:
        configured = np.array([source.config.panel.weights.get(name, 1.0) for name in matrix.judges])
        single_judges = [[judge] for judge in range(len(matrix.judges))]
        rows.append(_build_weighted_vote_row(matrix, majority, "weighted as configured", configured, single_judges))
    return [*rows, _build_latent_model_row(matrix, majority, groups)]


def _build_agreement_row(matrix: VerdictMatrix, majority: FloatArray, groups: Groups) -> VotingRuleRow:
    """Weight votes by agreement with the judges outside the own group; the members of a group share its weight."""
    agreement_shares = agreement_with_others(matrix.unconditional_verdicts, matrix.units, groups)
    log_odds_weights = [_log_odds_weight(round((share.value or 0) * share.n), share.n) for share in agreement_shares]
    rule = "weighted by agreement with the rest"
    return _build_weighted_vote_row(matrix, majority, rule, np.array(log_odds_weights), groups)


def _build_latent_model_row(matrix: VerdictMatrix, majority: FloatArray, groups: Groups) -> VotingRuleRow:
    """Apply Dawid and Skene's model, in which a group is one witness."""
    latent_model = dawid_skene(matrix.all_verdicts, groups=groups)
    if latent_model.reason is not None:
        return _build_vote_row("dawid-skene", None, majority, {}, matrix.units, latent_model.reason)
    accuracy = {
        name: float(judge_accuracy)
        for name, judge_accuracy in zip(matrix.judges, latent_model.accuracy, strict=True)
        if not np.isnan(judge_accuracy)
    }
    return _build_vote_row("dawid-skene", latent_model.labels(), majority, accuracy, matrix.units)


def _log_odds_weight(n_agreed: int, n_traces: int) -> float:
    """Optimal weight of an independent judge (Nitzan and Paroush 1982), log(p / (1 - p)), never below 0.

    p is the share of traces on which the judge agrees with the others, smoothed by one success and one failure.
    """
    p = (n_agreed + 1) / (n_traces + 2)
    return max(log(p / (1 - p)), 0.0)


def _build_weighted_vote_row(
    matrix: VerdictMatrix, majority: FloatArray, rule: str, weights: FloatArray, groups: Groups
) -> VotingRuleRow:
    """Apply a weighted majority, with weights, shape (judges,), that the members of a group share.

    The weights in the row are those of a trace with all judges, scaled to a mean of 1.
    """
    if matrix.is_adaptive or not weights.sum() > 0:
        reason = ADAPTIVE_REASON if matrix.is_adaptive else "no judge has any weight"
        return _build_vote_row(rule, None, majority, {}, matrix.units, reason)
    split = weights * split_weights(groups)
    weights_by_judge = dict(zip(matrix.judges, (split / split.mean()).tolist(), strict=True))
    decisions = decide_by_weight(matrix, share_weights(matrix, groups, weights))
    return _build_vote_row(rule, decisions, majority, weights_by_judge, matrix.units)


def _build_vote_row(
    rule: str,
    decisions: FloatArray | None,
    majority: FloatArray,
    weights: Mapping[str, float],
    units: Labels,
    reason: str | None = None,
) -> VotingRuleRow:
    """Summarise one voting rule.

    Args:
        decisions: 1 VALID, 0 INVALID, nan open, shape (traces,); None where the rule cannot be applied.
        majority: decisions of the plain majority.
        units: of the traces.
        reason: why `decisions` is None.
    """
    if decisions is None:
        return VotingRuleRow(
            rule=rule,
            valid=0,
            invalid=0,
            open=len(majority),
            differs=ShareEstimate(None, 0, reason=reason or "not available"),
            weights={},
            reason=reason,
        )
    both_decide = ~np.isnan(decisions) & ~np.isnan(majority)
    return VotingRuleRow(
        rule=rule,
        valid=int((decisions == 1).sum()),
        invalid=int((decisions == 0).sum()),
        open=int(np.isnan(decisions).sum()),
        differs=share_over_units(both_decide & (decisions != majority), both_decide, units),
        weights=dict(weights),
    )
