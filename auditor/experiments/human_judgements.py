"""What people say of pairs of answers, against every measure of consistency; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError, UsageError
from auditor.metrics.agreement import krippendorff_alpha
from auditor.metrics.correlation import dependent_correlation_difference, pearson
from auditor.metrics.resampling import bootstrap_mean
from auditor.reports.estimate_conversion import to_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.semantic.experiment_schema import (
    CorrelationDifferenceRow,
    HumanCorrelationRow,
    HumanJudgementReport,
)
from auditor.run import resolve_storage_url
from auditor.storage import audits, semantic_results
from auditor.storage.database import open_database
from auditor.surveys.row_reader import read_rows

Floats = NDArray[np.float64]
JUDGEMENT_SCORES = {"Y": 1.0, "N": 0.0, "NA": float("nan")}


def compare_with_human_judgements(audit_name: str, file: Path, *, storage: str | None = None) -> HumanJudgementReport:
    """How well each measure of consistency goes with what people say of pairs of answers; no call to any model.

    Args:
        name: an audit with semantic scores, run or imported.
        file: `rater,model,question_id,left,right,judgement`: do the answers to the wordings `left` and `right` say the
            same? Y, N, or NA for cannot say.
        storage: database URL.

    Raises:
        ImportFileError: a row that cannot be used.
        UsageError: the audit has no semantic scores.
    """
    judged = _read_judgements(file)
    with open_database(resolve_storage_url(storage), create=False) as db:
        audit = audits.get_audit(db, audit_name)
        facts = semantic_results.load_facts(db, audit.id)
        stored = semantic_results.load_scores(db, audit.id)
    if facts is None:
        raise UsageError(f"the audit '{audit_name}' has no semantic scores.", "Run one, or import answers.")
    known = {(s.model, s.question) for s in stored}
    units = sorted({(m, q) for _, m, q, _, _ in judged} & known)
    if not units:
        raise UsageError(f"{file}: no row is about a model and question of the audit '{audit_name}'.", "Check the ids.")
    labels = {who: [v for (_, m, q, _, _), v in judged.items() if (m, q) == who] for who in units}
    people = np.array([_share_judged_consistent(labels[who]) for who in units])
    entropy = np.array([_judgement_entropy(labels[who]) for who in units])
    columns: dict[tuple[str, str], Floats] = {}
    place = {who: i for i, who in enumerate(units)}
    for s in stored:
        if (s.model, s.question) in place and s.value is not None:
            column = columns.setdefault((s.text, s.metric), np.full(len(units), np.nan))
            column[place[s.model, s.question]] = s.value
    main = (facts.measured, facts.variant)
    return HumanJudgementReport(
        questions=len(units),
        judgements=len(judged),
        alpha=_krippendorff_estimate(judged),
        entropy=to_estimate(bootstrap_mean(entropy)),
        correlations=[_correlation_row(key, values, people, entropy) for key, values in sorted(columns.items())],
        differences=[
            _correlation_difference(main, key, columns[main], values, people)
            for key, values in sorted(columns.items())
            if key != main and main in columns
        ],
    )


JudgementsByPair = dict[tuple[str, str, str, str, str], float]


def _read_judgements(file: Path) -> JudgementsByPair:
    found: JudgementsByPair = {}
    columns = ("rater", "model", "question_id", "left", "right", "judgement")
    for row in read_rows(file, columns):
        *who, text = (row.cells[c] for c in columns)
        if not all(who):
            raise ImportFileError(f"{row.location}: a cell is empty.", f"Fill {', '.join(columns)}.")
        if text.upper() not in JUDGEMENT_SCORES:
            raise ImportFileError(f"{row.location}, column 'judgement': '{text}' is none of Y, N and NA.", "Mend it.")
        left, right = sorted(who[3:5])
        key = (who[0], who[1], who[2], left, right)
        if key in found:
            raise ImportFileError(f"{row.location}: this rater has judged this pair before.", "Keep one row.")
        found[key] = JUDGEMENT_SCORES[text.upper()]
    if not found:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    return found


def _share_judged_consistent(labels: Sequence[float]) -> float:
    """Of the judgements that decide, how many find the answers alike; nan without any."""
    known = [v for v in labels if v == v]
    return float(np.mean(known)) if known else float("nan")


def _judgement_entropy(labels: Sequence[float]) -> float:
    """In bits, over Y, N and NA: 0 where all say the same."""
    counts = np.array([sum(v == 1 for v in labels), sum(v == 0 for v in labels), sum(v != v for v in labels)])
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum()) + 0.0


def _krippendorff_estimate(judgements: JudgementsByPair) -> Estimate:
    found = krippendorff_alpha(_rating_table(judgements))
    return Estimate(value=found.value, n=found.n_items, ci_low=found.ci_low, ci_high=found.ci_high, reason=found.reason)


def _rating_table(judgements: JudgementsByPair) -> Floats:
    """Shape (raters, pairs); nan where a rater did not judge, or could not say."""
    raters = sorted({key[0] for key in judgements})
    pairs = sorted({key[1:] for key in judgements})
    row, column = {r: i for i, r in enumerate(raters)}, {p: j for j, p in enumerate(pairs)}
    table = np.full((len(raters), len(pairs)), np.nan)
    for key, value in judgements.items():
        table[row[key[0]], column[key[1:]]] = value
    return table


def _correlation_row(
    metric_key: tuple[str, str], values: Floats, human_scores: Floats, entropy: Floats
) -> HumanCorrelationRow:
    with_people, with_entropy = pearson(human_scores, values), pearson(entropy, values)
    return HumanCorrelationRow(
        text=metric_key[0],
        metric=metric_key[1],
        n=with_people.n,
        r=with_people.r,
        ci_low=with_people.ci_low,
        ci_high=with_people.ci_high,
        reason=with_people.reason,
        r_entropy=with_entropy.r,
    )


def _correlation_difference(
    main_key: tuple[str, str], metric_key: tuple[str, str], first: Floats, second: Floats, human_scores: Floats
) -> CorrelationDifferenceRow:
    d = dependent_correlation_difference(human_scores, first, second)
    return CorrelationDifferenceRow(
        text=metric_key[0],
        metric=metric_key[1],
        than_text=main_key[0],
        than_metric=main_key[1],
        difference=d.difference,
        p_value=d.p_value,
        ci_low=d.ci_low,
        ci_high=d.ci_high,
        n=d.n,
        reason=d.reason,
    )
