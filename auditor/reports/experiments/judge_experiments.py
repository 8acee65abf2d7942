"""Experiments on what is stored: drift of judges between two runs, and peers against people held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.holdout import Holdout, holdout
from auditor.metrics.verdict_flips import flips_by_cell
from auditor.reports.estimate_conversion import estimate, share_of
from auditor.reports.measurement_schema import Estimate, Part
from auditor.reports.pages.number_format import interval, number
from auditor.reports.panel.schema import ShiftRow
from auditor.reports.panel.verdict_matrix import Table, table
from auditor.reports.report_source import Floats, Source, load, refuse_task
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.votes import TraceKey


class HoldoutRow(Part):
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


def drift_rows(before: Database, name: str, after: Database, other: str) -> list[ShiftRow]:
    """Each judge's verdicts in two audits, over the traces that both have; `restated` is the later audit.

    A trace is the same when its model, cell and sample are, and its text, word for word; one without a text is none.
    Intervals of the shift are over cells. Verdicts that an adaptive panel asked of disputed traces only are left out.

    Raises:
        StorageError: there is no such audit.
    """
    first, second = table(load(before, name)), table(load(after, other))
    texts = [_texts(before, name), _texts(after, other)]
    seen = set(second.traces)
    both = [key for key in first.traces if key in seen and texts[0].get(key) and texts[0][key] == texts[1].get(key)]
    rows = []
    for judge in (j for j in first.judges if j in second.judges):
        old, new = (_row(t, judge, both) for t in (first, second))
        known = ~np.isnan(old) & ~np.isnan(new)
        if n := int(known.sum()):
            rows.append(
                ShiftRow(
                    judge=judge,
                    valid=share_of(int(old[known].sum()), n),
                    restated=share_of(int(new[known].sum()), n),
                    shift=estimate(flips_by_cell(_by_place(both, old, new)).change),
                    changed=share_of(int((old[known] != new[known]).sum()), n),
                )
            )
    return rows


def _row(ballots: Table, judge: str, keys: Sequence[tuple[str, str, str, int]]) -> Floats:
    place = {key: i for i, key in enumerate(ballots.traces)}
    row: Floats = ballots.fair[ballots.judges.index(judge)]
    return row[[place[key] for key in keys]]


def _texts(db: Database, name: str) -> dict[TraceKey, str | None]:
    found = results.traces(db, audits.get(db, name).id)
    return {(t.model, t.cell.country, t.cell.topic, t.sample): t.text for t in found}


def _by_place(keys: Sequence[TraceKey], old: Floats, new: Floats) -> list[list[int]]:
    """One judge's verdicts by cell, as `flips_by_cell` takes them."""
    cells: dict[tuple[str, str], list[int]] = {}
    for (_, country, topic, _), was, now in zip(keys, old, new, strict=True):
        if not np.isnan(was + now):
            cells.setdefault((country, topic), [0] * 4)[int(2 * (1 - now) + (1 - was))] += 1
    return list(cells.values())


def holdout_experiment(db: Database, name: str, splits: int) -> list[HoldoutRow]:
    """One row for each method of scoring.

    Raises:
        StorageError: there is no such audit.
        UsageError: it is of a task.
    """
    source = load(db, name)
    refuse_task(name, source.survey, "the experiment `holdout`")
    valid, given = _by_cell(source)
    return [
        _row_of(method, holdout(valid, given, source.matrix[rows], source.truth, splits=splits, seed=source.seed))
        for method, rows in _methods(source).items()
    ]


def _by_cell(source: Source) -> tuple[Floats, Floats]:
    """VALID verdicts and all verdicts by model and cell, shape (models, cells) each."""
    place = {(c.country, c.topic): i for i, c in enumerate(source.cells)}
    row = {name: i for i, name in enumerate(source.models)}
    valid = np.zeros((len(row), len(place)))
    given = np.zeros_like(valid)
    ballots, always = source.ballots, source.ballots.always
    at = np.array([(row[model], place[country, topic]) for model, country, topic, _ in ballots.traces], dtype=np.intp)
    where = tuple(at.reshape(-1, 2)[ballots.trace[always]].T)
    np.add.at(valid, where, ballots.valid[always])
    np.add.at(given, where, 1)
    return valid, given


def _methods(source: Source) -> dict[str, list[int]]:
    """For each method with scores of all models, their rows in the order of the models."""
    found: dict[str, list[int]] = {}
    for method in dict.fromkeys(m for m, _ in source.columns):
        places = {model: i for i, (m, model) in enumerate(source.columns) if m == method}
        if all(model in places for model in source.models):
            found[method] = [places[model] for model in source.models]
    return found


def _row_of(method: str, found: Holdout) -> HoldoutRow:
    parts = {name: estimate(getattr(found, name)) for name in ("unseen_cells", "error", "error_of_mean")}
    return HoldoutRow(method=method, models=found.models, splits=found.splits, sentence=_sentence(found), **parts)


def _sentence(found: Holdout) -> str:
    r = found.unseen_cells
    if r.value is None or r.ci_low is None or r.ci_high is None:
        return f"Whether peer agreement predicts agreement with people on unseen cells cannot be told: {r.reason}."
    figures = f"r = {number(r.value)}, 95% interval {interval(r.ci_low, r.ci_high)}, {found.models} models"
    if r.ci_low > 0:
        told = f"Peer agreement predicts agreement with people on unseen cells ({figures})"
    elif r.ci_high < 0:
        told = f"Peer agreement predicts the opposite of agreement with people on unseen cells ({figures})"
    else:
        told = f"Peer agreement is not shown to predict agreement with people on unseen cells ({figures})"
    gain = found.gain
    if gain.value is None or gain.ci_low is None or gain.ci_high is None:
        return f"{told}; on unseen models it cannot be told ({gain.reason})."
    how = "does better than" if gain.ci_low > 0 else "does worse than" if gain.ci_high < 0 else "is not shown to beat"
    return (
        f"{told}; on unseen models it {how} guessing the mean of the others (error less by {number(gain.value)}, "
        f"{interval(gain.ci_low, gain.ci_high)})."
    )
