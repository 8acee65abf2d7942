"""Tests of judges: blinding, injected faults, position bias, their own traces, drift, and prediction of alignment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from typing import Annotated

import numpy as np

from auditor.domain import AlteredTraceVerdict, Cell, Contest, Guess, HarmlessAlteration, Outcome, Ruling, Task
from auditor.errors import UsageError, pluralize
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.jackknife_interval import Labels
from auditor.metrics.intervals.paired import PairedTable, pair_verdicts, paired_differences_over_units
from auditor.metrics.intervals.unit_means import ShareTable, compare_shares, shares_over_units
from auditor.metrics.people.holdout import PeerHoldout, cross_validate_peer_agreement
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.panel.judge_statistics import estimate_self_preferences
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    ObedienceRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
)
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix, find_family
from auditor.reports.data.report_model import FlatRow, publish
from auditor.reports.data.report_source import FloatArray, ReportSource, Units, load_source, sampling_units
from auditor.reports.data.task import select_model_answers
from auditor.reports.document import Column
from auditor.reports.number_format import describe_estimate
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.votes import TraceKey

NO_PREFERENCE = 0.5
"""Share of answers for the side shown first without a position bias."""
SampleKey = tuple[str, Cell, int]
"""Model, cell and sample number of a trace."""


def build_blinding_rows(judges: Sequence[str], guesses: Iterable[Guess]) -> list[BlindingCheckRow]:
    """Build one row per judge and masked attribute (country, topic, author): share of hits, and share by chance.

    The share by chance is the mean of 1 / the number of options that a guess could choose from.
    """
    by_judge: dict[str, list[Guess]] = defaultdict(list)
    for guess in guesses:
        if guess.outcome is Outcome.OK:
            by_judge[guess.judge].append(guess)
    rows = []
    for attribute, hit_field, size_field in (
        ("country", "hit_country", "countries"),
        ("topic", "hit_topic", "topics"),
        ("author", "hit_author", "authors"),
    ):
        scored_guesses = {
            judge: [guess for guess in by_judge[judge] if getattr(guess, hit_field) is not None]
            for judge in judges
            if judge in by_judge
        }
        tested_judges = [judge for judge, judge_guesses in scored_guesses.items() if judge_guesses]
        tables = [
            _share_table([getattr(guess, hit_field) for guess in scored_guesses[judge]], scored_guesses[judge])
            for judge in tested_judges
        ]
        chances = [
            float(np.mean([1 / getattr(guess, size_field) for guess in scored_guesses[judge]]))
            for judge in tested_judges
        ]
        rows += [
            BlindingCheckRow(judge=judge, what=attribute, hits=hits, chance=chance)
            for judge, hits, chance in zip(tested_judges, compare_shares(tables, chances), chances, strict=True)
        ]
    # A stable order: a judge's attributes keep theirs.
    return adjust_rows(sorted(rows, key=lambda row: judges.index(row.judge)), "hits", "guesses of judges")


def build_restatement_rows(
    matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]
) -> list[RestatementShiftRow]:
    """Compare each judge's verdicts on original and restated traces, over traces with both verdicts."""
    restated_verdicts = _verdicts_by_judge(
        test for test in judge_tests if test.alteration == HarmlessAlteration.NEUTRAL
    )
    pairs_by_judge: dict[str, tuple[FloatArray, FloatArray]] = {}
    for i, judge in enumerate(matrix.judges):
        if judge in restated_verdicts:  # skip the search through all traces, since most audits restate none
            restated = restated_verdicts[judge]
            after = [
                restated.get((model, Cell(country, topic), sample), nan)
                for model, country, topic, sample in matrix.traces
            ]
            pairs_by_judge[judge] = matrix.all_verdicts[i], np.array(after, dtype=np.float64)
    return compare_verdict_pairs(pairs_by_judge, matrix.units)


def compare_verdict_pairs(
    pairs_by_judge: Mapping[str, tuple[FloatArray, FloatArray]], units: Labels
) -> list[RestatementShiftRow]:
    """Compare each judge's verdicts before and after a change, over the traces with both; judges without are left out.

    Args:
        pairs_by_judge: verdicts before and after, shape (traces,) each: 1 VALID, 0 INVALID, nan without a verdict.
        units: of the traces.
    """
    is_paired = {judge: ~np.isnan(before) & ~np.isnan(after) for judge, (before, after) in pairs_by_judge.items()}
    judges = [judge for judge, paired in is_paired.items() if paired.any()]

    def estimate_shares(select: Callable[[FloatArray, FloatArray], FloatArray]) -> list[ShareEstimate]:
        """Estimate the share of traces, by judge, for which a function of both verdicts is 1."""
        return shares_over_units(
            [
                ShareTable(np.where(is_paired[judge], select(*pairs_by_judge[judge]), 0.0), is_paired[judge], units)
                for judge in judges
            ]
        )

    columns = zip(
        judges,
        estimate_shares(lambda before, _: before),
        estimate_shares(lambda _, after: after),
        paired_differences_over_units([pair_verdicts(*pairs_by_judge[judge], units) for judge in judges]),
        estimate_shares(lambda before, after: (before != after).astype(np.float64)),
        strict=True,
    )
    rows = [
        RestatementShiftRow(judge=judge, valid=valid, restated=restated, shift=shift, changed=changed)
        for judge, valid, restated, shift, changed in columns
    ]
    return adjust_rows(rows, "shift", "judges on changed traces")


def build_fault_rows(judges: Sequence[str], judge_tests: Sequence[AlteredTraceVerdict]) -> list[FaultDetectionRow]:
    """Build one row for each fault and judge, over traces judged both with the fault and without it."""
    unaltered_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == HarmlessAlteration.NONE)
    faults = dict.fromkeys(test.alteration for test in judge_tests if test.has_fault)
    keys: list[tuple[str, str]] = []  # fault and judge
    tables: list[tuple[ShareTable, ShareTable, PairedTable]] = []  # objections with the fault, without it, and paired
    for fault in faults:
        altered_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == fault)
        for judge in judges:
            controls, altered = unaltered_verdicts.get(judge, {}), altered_verdicts.get(judge, {})
            common_traces = [trace for trace in altered if trace in controls]
            if common_traces:
                objects_with, objects_without = (
                    np.array([1.0 - verdicts[trace] for trace in common_traces]) for verdicts in (altered, controls)
                )
                units = _trace_units(common_traces)
                is_counted = np.ones(len(common_traces))
                keys.append((fault, judge))
                tables.append(
                    (
                        ShareTable(objects_with, is_counted, units),
                        ShareTable(objects_without, is_counted, units),
                        pair_verdicts(objects_without, objects_with, units),
                    )
                )
    columns = zip(
        keys,
        shares_over_units([with_fault for with_fault, _, _ in tables]),
        shares_over_units([without_fault for _, without_fault, _ in tables]),
        paired_differences_over_units([paired for _, _, paired in tables]),
        strict=True,
    )
    rows = [
        FaultDetectionRow(judge=judge, fault=fault, detected=detected, false_alarms=false_alarms, difference=difference)
        for (fault, judge), detected, false_alarms, difference in columns
    ]
    return adjust_rows(rows, "difference", "injected faults")


def build_obedience_rows(judges: Sequence[str], judge_tests: Sequence[AlteredTraceVerdict]) -> list[ObedienceRow]:
    """Measure how often each judge obeys instructions in traces, of those that demand what it did not answer without.

    Comparisons with a planted preference are asked only where the judge preferred the other trace without it.
    """
    unaltered = _verdicts_by_judge(test for test in judge_tests if test.alteration == HarmlessAlteration.NONE)
    obeyed: dict[HarmlessAlteration, dict[str, dict[SampleKey, int]]] = {}
    for alteration, demanded in (
        (HarmlessAlteration.DEMANDS_VALID, 1),
        (HarmlessAlteration.DEMANDS_INVALID, 0),
        (HarmlessAlteration.DEMANDS_PREFERENCE, None),
    ):
        altered = _verdicts_by_judge(test for test in judge_tests if test.alteration == alteration)
        obeyed[alteration] = {
            judge: {
                trace: int(verdict == 1 if demanded is None else verdict == demanded)
                for trace, verdict in by_trace.items()
                if demanded is None or unaltered.get(judge, {}).get(trace) == 1 - demanded
            }
            for judge, by_trace in altered.items()
        }
    tested_judges = [judge for judge in judges if any(by_judge.get(judge) for by_judge in obeyed.values())]

    def estimate_rates(*alterations: HarmlessAlteration) -> list[ShareEstimate]:
        """Estimate the share of obeyed instructions of some kinds, by judge."""
        tables = []
        for judge in tested_judges:
            cases = [case for kind in alterations for case in obeyed[kind].get(judge, {}).items()]
            hits = np.array([hit for _, hit in cases], dtype=np.float64)
            tables.append(ShareTable(hits, np.ones(len(cases)), _trace_units(trace for trace, _ in cases)))
        return shares_over_units(tables, empty_reason="no instruction that differs from its answer without it")

    demands = (HarmlessAlteration.DEMANDS_VALID, HarmlessAlteration.DEMANDS_INVALID)
    columns = zip(
        tested_judges,
        estimate_rates(*demands),
        *(estimate_rates(demand) for demand in demands),
        estimate_rates(HarmlessAlteration.DEMANDS_PREFERENCE),
        strict=True,
    )
    return [
        ObedienceRow(judge=judge, verdicts=verdicts, valid=valid, invalid=invalid, preferences=preferences)
        for judge, verdicts, valid, invalid, preferences in columns
    ]


def build_position_rows(judges: Sequence[str], contests: Iterable[Contest]) -> list[PositionBiasRow]:
    """Measure each judge's preference for the side shown first, over pairs compared in both orders."""
    # By judge, then by pair of traces, then by order (whether the sides were swapped): is the first side preferred?
    pairs: dict[str, dict[tuple[Cell, str, str], dict[bool, bool]]] = defaultdict(lambda: defaultdict(dict))
    for contest in contests:
        if contest.prefers_first is not None:
            pairs[contest.judge][contest.cell, contest.left, contest.right][contest.swapped] = contest.prefers_first
    complete_pairs = {
        judge: {pair: orders for pair, orders in pairs[judge].items() if len(orders) == 2} for judge in judges
    }
    tested_judges = [judge for judge in judges if complete_pairs[judge]]
    first_tables, stable_tables = [], []
    for judge in tested_judges:
        cells = [cell for cell, _, _ in complete_pairs[judge]]
        units = sampling_units([cell.country for cell in cells], [cell.topic for cell in cells])
        orders_by_pair, n_pairs = list(complete_pairs[judge].values()), len(cells)
        n_first = [sum(orders.values()) for orders in orders_by_pair]
        # Preferring the same trace in both orders means preferring the first side in one order only.
        is_stable = [orders[False] != orders[True] for orders in orders_by_pair]
        first_tables.append(ShareTable(n_first, np.full(n_pairs, 2), units, np.ones(n_pairs)))
        stable_tables.append(ShareTable(is_stable, np.ones(n_pairs), units))
    columns = zip(
        tested_judges, compare_shares(first_tables, NO_PREFERENCE), shares_over_units(stable_tables), strict=True
    )
    rows = [PositionBiasRow(judge=judge, first=first, stable=stable) for judge, first, stable in columns]
    return adjust_rows(rows, "first", "position bias of judges")


def build_self_review_rows(matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]) -> list[SelfReviewRow]:
    """Compare judges' verdicts on their own traces with the other judges' verdicts on these; one row per judge."""
    self_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == HarmlessAlteration.SELF)
    if not self_verdicts:
        return []
    verdicts, is_own_trace = (
        matrix.unconditional_verdicts.copy(),
        np.zeros(matrix.unconditional_verdicts.shape, dtype=np.bool_),
    )
    for i, judge in enumerate(matrix.judges):
        for j, (model, country, topic, sample) in enumerate(matrix.traces):
            if model == judge:
                is_own_trace[i, j] = True
                verdicts[i, j] = self_verdicts.get(judge, {}).get((model, Cell(country, topic), sample), np.nan)
    preferences = estimate_self_preferences(matrix, verdicts, is_own_trace)
    reviewing_judges = [judge for judge in matrix.judges if judge in self_verdicts]
    valid_shares = shares_over_units(
        [
            ShareTable(list(by_trace.values()), np.ones(len(by_trace)), _trace_units(by_trace))
            for by_trace in (self_verdicts[judge] for judge in reviewing_judges)
        ]
    )
    return [
        SelfReviewRow(judge=judge, valid=valid_share, preference=preferences[matrix.judges.index(judge)])
        for judge, valid_share in zip(reviewing_judges, valid_shares, strict=True)
    ]


def _verdicts_by_judge(judge_tests: Iterable[AlteredTraceVerdict]) -> Mapping[str, dict[SampleKey, int]]:
    """Valid verdicts by judge and trace: 1 for VALID, 0 for INVALID."""
    verdicts: dict[str, dict[SampleKey, int]] = defaultdict(dict)
    for test in judge_tests:
        if test.outcome is Outcome.OK and test.ruling is not None:
            verdicts[test.judge][test.model, test.cell, test.sample] = int(test.ruling is Ruling.VALID)
    return dict(verdicts)


def _share_table(hits: Sequence[bool], guesses: Sequence[Guess]) -> ShareTable:
    """The arguments of a share of guesses that are hits."""
    units = sampling_units([guess.cell.country for guess in guesses], [guess.cell.topic for guess in guesses])
    return ShareTable(np.array(hits, dtype=np.float64), np.ones(len(guesses)), units)


def _trace_units(traces: Iterable[SampleKey]) -> Units:
    """The countries and topics of traces, or the items of a task."""
    cells = [cell for _, cell, _ in traces]
    return sampling_units([cell.country for cell in cells], [cell.topic for cell in cells])


ACCURACY = "accuracy"
"""What stands as the method of a task's row."""


class HoldoutRow(FlatRow):
    """How well peer agreement predicts agreement with people on held-out cells and models, by one method of scoring.

    For a task: accuracy on held-out items and models.
    """

    method: Annotated[str, Column("Method", "name")]
    prediction: Annotated[
        PeerHoldout,
        publish("models", "splits", "unseen_cells", "error_of_mean", "error"),
        Column("Models", part="models"),
        Column("Splits", part="splits"),
        Column("r on unseen cells", part="unseen_cells", show_n=False),
        Column("Error of the mean", part="error_of_mean", show_n=False),
        Column("Error of the share of VALID", part="error", show_n=False),
    ]
    sentence: str


def measure_judge_drift(
    first_db: Database, first_audit: str, second_db: Database, second_audit: str
) -> list[RestatementShiftRow]:
    """Compare each judge's verdicts in two audits, over the traces that both have; `restated` is the later audit.

    Traces are the same if model, cell, sample, text, and score or answer are equal; traces without a text are left out.
    Verdicts that an adaptive panel requested on disputed traces only are left out.

    Raises:
        StorageError: there is no such audit.
    """
    first, second = (
        build_verdict_matrix(load_source(first_db, first_audit)),
        build_verdict_matrix(load_source(second_db, second_audit)),
    )
    first_texts, second_texts = _load_judged_texts(first_db, first_audit), _load_judged_texts(second_db, second_audit)
    second_traces = set(second.traces)
    shared_traces = [
        key
        for key in first.traces
        if key in second_traces and key in first_texts and first_texts[key] == second_texts.get(key)
    ]
    pairs_by_judge = {
        judge: (_judge_verdicts_on(first, judge, shared_traces), _judge_verdicts_on(second, judge, shared_traces))
        for judge in first.judges
        if judge in second.judges
    }
    units = sampling_units([key[1] for key in shared_traces], [key[2] for key in shared_traces])
    return compare_verdict_pairs(pairs_by_judge, units)


def _judge_verdicts_on(
    matrix: VerdictMatrix, judge: str, trace_keys: Sequence[tuple[str, str, str, int]]
) -> FloatArray:
    """One judge's verdicts on the given traces, shape (traces,): 1 for VALID, 0 for INVALID, nan for none."""
    trace_index = {key: i for i, key in enumerate(matrix.traces)}
    verdicts: FloatArray = matrix.unconditional_verdicts[matrix.judges.index(judge)]
    return verdicts[[trace_index[key] for key in trace_keys]]


def _load_judged_texts(db: Database, audit_name: str) -> dict[TraceKey, tuple[str, float | None, str | None]]:
    """What judges are shown of each trace that has a text, by (model, country, topic, sample): it, score and answer."""
    traces = results.load_traces(db, audits.get_audit(db, audit_name).id)
    return {
        (trace.model, *trace.cell, trace.sample): (trace.text, trace.score, trace.answer)
        for trace in traces
        if trace.text
    }


def cross_validate_peers(source: ReportSource, n_splits: int) -> list[HoldoutRow]:
    """Cross-validate how well peer agreement predicts agreement with people; one row for each method of scoring.

    Args:
        source: of a survey; or of a task, where accuracy on its items takes the place of r with people.

    Raises:
        UsageError: the right answers of a task are not known.
    """
    valid_counts, verdict_counts = _count_verdicts_by_cell(source)
    if source.survey.task is not None:
        families = [find_family(source.config, model) for model in source.models]
        accuracy = _measure_accuracy_by_item(source, source.survey.task)
        prediction = cross_validate_peer_agreement(
            valid_counts, verdict_counts, accuracy, None, families=families, n_splits=n_splits, seed=source.seed
        )
        return [_build_holdout_row(ACCURACY, prediction, "accuracy", "items")]
    return [
        _build_holdout_row(
            method,
            cross_validate_peer_agreement(
                valid_counts,
                verdict_counts,
                source.score_matrix[rows],
                source.survey_scores,
                families=[find_family(source.config, model) for model in source.models],
                n_splits=n_splits,
                seed=source.seed,
            ),
        )
        for method, rows in _rows_by_method(source).items()
    ]


def _count_verdicts_by_cell(source: ReportSource) -> tuple[FloatArray, FloatArray]:
    """Number of VALID verdicts and of all verdicts by judged model and cell, shape (models, cells) each.

    Verdicts that an adaptive panel requested on disputed traces only are left out: `votes.always` is False for them.
    """
    cell_index = {(cell.country, cell.topic): i for i, cell in enumerate(source.cells)}
    model_index = {name: i for i, name in enumerate(source.models)}
    valid_counts = np.zeros((len(model_index), len(cell_index)))
    verdict_counts = np.zeros_like(valid_counts)
    votes, is_unconditional = source.votes, source.votes.always
    # Row (model) and column (cell) of each trace, then of each vote.
    positions = np.array(
        [(model_index[model], cell_index[country, topic]) for model, country, topic, _ in votes.traces], dtype=np.intp
    )
    vote_positions = tuple(positions.reshape(-1, 2)[votes.trace_index[is_unconditional]].T)
    np.add.at(valid_counts, vote_positions, votes.valid[is_unconditional])
    np.add.at(verdict_counts, vote_positions, 1)
    return valid_counts, verdict_counts


def _measure_accuracy_by_item(source: ReportSource, task: Task) -> FloatArray:
    """Share of right answers by model and item, shape (models, items); nan without a usable answer."""
    answers = select_model_answers(source, task)
    if answers.accuracy_missing_reason is not None:
        raise UsageError(
            f"the experiment `holdout` needs right answers, but {answers.accuracy_missing_reason}.",
            "Name an audit of items with the column truth; of scores, also with task.tolerance.",
        )
    item_index = {(cell.country, cell.topic): i for i, cell in enumerate(source.cells)}
    model_index = {name: i for i, name in enumerate(source.models)}
    n_right, n_answers = np.zeros((2, len(model_index), len(item_index)))
    for (model, cell, _), is_right in answers.correctness.items():
        position = model_index[model], item_index[cell.country, cell.topic]
        n_right[position] += is_right
        n_answers[position] += 1
    return np.where(n_answers > 0, n_right / np.maximum(n_answers, 1), np.nan)


def _rows_by_method(source: ReportSource) -> dict[str, list[int]]:
    """For each method with scores of all models, the models' row indices in the score matrix, in the models' order."""
    rows_by_method: dict[str, list[int]] = {}
    for method in dict.fromkeys(column_method for column_method, _ in source.columns):
        column_by_model = {
            model: column for column, (column_method, model) in enumerate(source.columns) if column_method == method
        }
        if all(model in column_by_model for model in source.models):
            rows_by_method[method] = [column_by_model[model] for model in source.models]
    return rows_by_method


def _build_holdout_row(
    method: str, prediction: PeerHoldout, quality: str = "agreement with people", cells: str = "cells"
) -> HoldoutRow:
    """Convert the result of a cross-validation to a row of the report, with its summary in words."""
    sentence = _holdout_sentence(prediction, quality, cells)
    return HoldoutRow(method=method, prediction=prediction, sentence=sentence)


def _holdout_sentence(prediction: PeerHoldout, quality: str, cells: str) -> str:
    """State whether the share of VALID predicts a quality on held-out cells or items, and then of held-out models."""
    r = prediction.unseen_cells
    if r.value is None:
        return f"It is not known whether the share of VALID predicts {quality} on unseen {cells}: {r.reason}."
    if r.ci_low is None or r.ci_high is None:
        return (
            f"It is not known whether the share of VALID predicts {quality} on unseen {cells} "
            f"({describe_estimate('r', r)}; {pluralize(prediction.models, 'model')})."
        )
    figures = f"{describe_estimate('r', r)}, {pluralize(prediction.models, 'model')}"
    if r.ci_low > 0:
        cells_sentence = f"The share of VALID predicts {quality} on unseen {cells} ({figures})."
    elif r.ci_high < 0:
        cells_sentence = f"The share of VALID predicts the opposite of {quality} on unseen {cells} ({figures})."
    else:
        cells_sentence = f"The share of VALID is not shown to predict {quality} on unseen {cells} ({figures})."
    # Error of predicting the mean of the other models, minus the error of predicting from peer agreement.
    gain = prediction.gain
    if gain.value is None or gain.ci_low is None or gain.ci_high is None:
        return f"{cells_sentence} The comparison on unseen models is not available: {gain.reason}."
    comparison = (
        "predicts better" if gain.ci_low > 0 else "predicts worse" if gain.ci_high < 0 else "is not shown to be better"
    )
    return (
        f"{cells_sentence} On unseen models it {comparison} than the mean of the other models (mean absolute error "
        f"lower by {describe_estimate('', gain)})."
    )
