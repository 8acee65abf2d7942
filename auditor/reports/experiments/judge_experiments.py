"""Experiments on what is stored: drift of judges between two runs, and peers against people held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.holdout import PeerHoldout, cross_validate_peer_agreement
from auditor.metrics.verdict_flips import flips_by_cell
from auditor.reports.estimate_conversion import estimate_share, to_estimate
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.pages.number_format import format_interval, format_number
from auditor.reports.panel.schema import RestatementShiftRow
from auditor.reports.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix
from auditor.reports.report_source import FloatArray, ReportSource, load_source, require_survey_audit
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.votes import TraceKey


class HoldoutRow(ReportModel):
    """Whether peer agreement predicts agreement with people where it was not seen, by one method of scoring."""

    method: str
    models: int
    splits: int
    unseen_cells: Estimate
    """Mean over splits of the correlation over models of peer agreement on 80% of the cells with r on the others."""
    error: Estimate
    """Mean absolute error of a left-out model's r as the line through the others predicts it from its peers."""
    error_of_mean: Estimate
    """The same, predicting the others' mean r: what one can do without peers."""
    sentence: str


def measure_judge_drift(
    first_db: Database, first_audit: str, second_db: Database, second_audit: str
) -> list[RestatementShiftRow]:
    """Each judge's verdicts in two audits, over the traces that both have; `restated` is the later audit.

    A trace is the same when its model, cell and sample are, and its text, word for word; one without a text is none.
    Intervals of the shift are over cells. Verdicts that an adaptive panel asked of disputed traces only are left out.

    Raises:
        StorageError: there is no such audit.
    """
    first, second = (
        build_verdict_matrix(load_source(first_db, first_audit)),
        build_verdict_matrix(load_source(second_db, second_audit)),
    )
    texts = [_load_trace_texts(first_db, first_audit), _load_trace_texts(second_db, second_audit)]
    seen = set(second.traces)
    both = [key for key in first.traces if key in seen and texts[0].get(key) and texts[0][key] == texts[1].get(key)]
    rows = []
    for judge in (j for j in first.judges if j in second.judges):
        old, new = (_judge_verdicts_on(t, judge, both) for t in (first, second))
        known = ~np.isnan(old) & ~np.isnan(new)
        if n := int(known.sum()):
            rows.append(
                RestatementShiftRow(
                    judge=judge,
                    valid=estimate_share(int(old[known].sum()), n),
                    restated=estimate_share(int(new[known].sum()), n),
                    shift=to_estimate(flips_by_cell(_count_verdict_changes(both, old, new)).change),
                    changed=estimate_share(int((old[known] != new[known]).sum()), n),
                )
            )
    return rows


def _judge_verdicts_on(
    matrix: VerdictMatrix, judge: str, trace_keys: Sequence[tuple[str, str, str, int]]
) -> FloatArray:
    place = {key: i for i, key in enumerate(matrix.traces)}
    row: FloatArray = matrix.unconditional_verdicts[matrix.judges.index(judge)]
    return row[[place[key] for key in trace_keys]]


def _load_trace_texts(db: Database, audit_name: str) -> dict[TraceKey, str | None]:
    found = results.load_traces(db, audits.get_audit(db, audit_name).id)
    return {(t.model, t.cell.country, t.cell.topic, t.sample): t.text for t in found}


def _count_verdict_changes(
    trace_keys: Sequence[TraceKey], first_verdicts: FloatArray, second_verdicts: FloatArray
) -> list[list[int]]:
    """One judge's verdicts by cell, as `flips_by_cell` takes them."""
    cells: dict[tuple[str, str], list[int]] = {}
    for (_, country, topic, _), was, now in zip(trace_keys, first_verdicts, second_verdicts, strict=True):
        if not np.isnan(was + now):
            cells.setdefault((country, topic), [0] * 4)[int(2 * (1 - now) + (1 - was))] += 1
    return list(cells.values())


def run_holdout_experiment(db: Database, audit_name: str, n_splits: int) -> list[HoldoutRow]:
    """One row for each method of scoring.

    Raises:
        StorageError: there is no such audit.
        UsageError: it is of a task.
    """
    source = load_source(db, audit_name)
    require_survey_audit(audit_name, source.survey, "the experiment `holdout`")
    valid, given = _count_verdicts_by_cell(source)
    return [
        _build_holdout_row(
            method,
            cross_validate_peer_agreement(
                valid, given, source.score_matrix[rows], source.survey_scores, n_splits=n_splits, seed=source.seed
            ),
        )
        for method, rows in _rows_by_method(source).items()
    ]


def _count_verdicts_by_cell(source: ReportSource) -> tuple[FloatArray, FloatArray]:
    """VALID verdicts and all verdicts by model and cell, shape (models, cells) each."""
    place = {(c.country, c.topic): i for i, c in enumerate(source.cells)}
    row = {name: i for i, name in enumerate(source.models)}
    valid = np.zeros((len(row), len(place)))
    given = np.zeros_like(valid)
    ballots, always = source.votes, source.votes.always
    at = np.array([(row[model], place[country, topic]) for model, country, topic, _ in ballots.traces], dtype=np.intp)
    where = tuple(at.reshape(-1, 2)[ballots.trace_index[always]].T)
    np.add.at(valid, where, ballots.valid[always])
    np.add.at(given, where, 1)
    return valid, given


def _rows_by_method(source: ReportSource) -> dict[str, list[int]]:
    """For each method with scores of all models, their rows in the order of the models."""
    found: dict[str, list[int]] = {}
    for method in dict.fromkeys(m for m, _ in source.columns):
        places = {model: i for i, (m, model) in enumerate(source.columns) if m == method}
        if all(model in places for model in source.models):
            found[method] = [places[model] for model in source.models]
    return found


def _build_holdout_row(method: str, prediction: PeerHoldout) -> HoldoutRow:
    parts = {name: to_estimate(getattr(prediction, name)) for name in ("unseen_cells", "error", "error_of_mean")}
    return HoldoutRow(
        method=method,
        models=prediction.models,
        splits=prediction.splits,
        sentence=_holdout_sentence(prediction),
        **parts,
    )


def _holdout_sentence(prediction: PeerHoldout) -> str:
    r = prediction.unseen_cells
    if r.value is None or r.ci_low is None or r.ci_high is None:
        return f"Whether peer agreement predicts agreement with people on unseen cells cannot be told: {r.reason}."
    figures = (
        f"r = {format_number(r.value)}, 95% interval {format_interval(r.ci_low, r.ci_high)}, {prediction.models} models"
    )
    if r.ci_low > 0:
        told = f"Peer agreement predicts agreement with people on unseen cells ({figures})"
    elif r.ci_high < 0:
        told = f"Peer agreement predicts the opposite of agreement with people on unseen cells ({figures})"
    else:
        told = f"Peer agreement is not shown to predict agreement with people on unseen cells ({figures})"
    gain = prediction.gain
    if gain.value is None or gain.ci_low is None or gain.ci_high is None:
        return f"{told}; on unseen models it cannot be told ({gain.reason})."
    how = "does better than" if gain.ci_low > 0 else "does worse than" if gain.ci_high < 0 else "is not shown to beat"
    return (
        f"{told}; on unseen models it {how} guessing the mean of the others (error less by "
        f"{format_number(gain.value)}, {format_interval(gain.ci_low, gain.ci_high)})."
    )
