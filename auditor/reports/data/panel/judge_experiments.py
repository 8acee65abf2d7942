"""Experiments on stored verdicts: drift of judges between two audits, and prediction of alignment by peer agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from auditor.domain import Task
from auditor.errors import UsageError
from auditor.metrics.holdout import PeerHoldout, cross_validate_peer_agreement
from auditor.reports.data.panel.judge_tests import compare_verdict_pairs
from auditor.reports.data.panel.schema import RestatementShiftRow
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix, find_family
from auditor.reports.data.report_model import FlatRow, publish
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import sampling_units
from auditor.reports.data.source_loading import load_source
from auditor.reports.data.task.build import select_model_answers
from auditor.reports.document import Column
from auditor.reports.number_format import describe_estimate
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.votes import TraceKey


class HoldoutRow(FlatRow):
    """How well peer agreement predicts agreement with people on held-out cells and models, by one method of scoring."""

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

    Traces are the same if model, cell, sample and text are equal; traces without a text are left out. Verdicts that
    an adaptive panel requested on disputed traces only are left out.

    Raises:
        StorageError: there is no such audit.
    """
    first, second = (
        build_verdict_matrix(load_source(first_db, first_audit)),
        build_verdict_matrix(load_source(second_db, second_audit)),
    )
    texts_by_audit = [  # of the first audit, of the second
        _load_trace_texts(first_db, first_audit),
        _load_trace_texts(second_db, second_audit),
    ]
    second_traces = set(second.traces)
    shared_traces = [
        key
        for key in first.traces
        if key in second_traces and texts_by_audit[0].get(key) and texts_by_audit[0][key] == texts_by_audit[1].get(key)
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


def _load_trace_texts(db: Database, audit_name: str) -> dict[TraceKey, str | None]:
    """Text of each trace of an audit by (model, country, topic, sample); None where no text is stored."""
    traces = results.load_traces(db, audits.get_audit(db, audit_name).id)
    return {(trace.model, trace.cell.country, trace.cell.topic, trace.sample): trace.text for trace in traces}


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
        return [_build_holdout_row("accuracy", prediction, "accuracy", "items")]
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
            f"({describe_estimate('r', r)}; {prediction.models} models)."
        )
    figures = f"{describe_estimate('r', r)}, {prediction.models} models"
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
