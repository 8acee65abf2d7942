"""Traces whose truth is known: answers to a task, and traces with a planted fault.

What people decide on conflicts is no such label: it compares two sides, conflicts are no random sample of the traces,
and the queue puts first what the judges disagree on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell, Outcome, Ruling
from auditor.reports.data.panel.copying_schema import LabelSource
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import Units, sampling_units
from auditor.reports.data.task.build import select_model_answers


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
    units: Units
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
