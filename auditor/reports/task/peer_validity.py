"""Whether peers' verdicts tell right answers from wrong ones: over answers, by judge, and over models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from auditor.domain import AnswerKind, Cell, Ruling
from auditor.metrics.clustered import (
    ClusteredEstimate,
    area_under_curve,
    area_under_curve_within_items,
    clustered_difference,
    clustered_rank_correlation,
    clustered_share,
)
from auditor.metrics.correlation import pearson
from auditor.reports.estimate_conversion import missing_estimate, to_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.panel.section import compute_peer_agreement
from auditor.reports.report_source import ReportSource
from auditor.reports.task.schema import JudgeValidityRow, PeerValidityReport, TaskModelRow, VerdictAccuracyRow
from auditor.reports.task.section import TaskAnswerSet
from auditor.storage.votes import Vote

SampleKey = tuple[str, Cell, int]
VerdictWithTruth = tuple[Vote, bool]
"""A verdict, and whether the answer that it is on is right."""
TIED_LABEL = "as many VALID as INVALID"


def build_peer_validity_report(
    source: ReportSource, answers: TaskAnswerSet, model_rows: Sequence[TaskModelRow]
) -> PeerValidityReport | None:
    """Verdicts beside the truth; None where no answer was judged, or no truth is known.

    Only verdicts that were asked for whatever other judges said are counted, so that they are not of disputed answers.
    """
    ballots = [b for b in source.votes if b.always]
    known = {item.cell for item in answers.items_with_truth}
    judged = {
        _sample_key(b) for b in ballots if _sample_key(b)[1] in known and _sample_key(b) in answers.usable_answers
    }
    if not judged:
        return None
    support = _valid_shares(b for b in ballots if _sample_key(b) in judged)
    heard = [(b, answers.correctness[_sample_key(b)]) for b in ballots if _sample_key(b) in answers.correctness]
    is_right = answers.accuracy_missing_reason is None
    keys = sorted(support)
    shares, cells = [float(support[k]) for k in keys], np.array([k[1].topic for k in keys])
    right = [answers.correctness.get(k, False) for k in keys]
    return PeerValidityReport(
        answers=len(judged),
        area=to_estimate(area_under_curve(shares, right, cells)) if is_right else None,
        area_within=to_estimate(area_under_curve_within_items(shares, right, cells)) if is_right else None,
        verdicts=_build_verdict_rows(heard, support, answers) if is_right else [],
        difference=to_estimate(_share_difference(heard, lambda h: bool(h[0].valid), lambda h: h[1]))
        if is_right
        else None,
        closeness=_correlate_closeness(answers, keys, shares) if answers.task.kind is AnswerKind.SCORE else None,
        models=_correlate_models(source, model_rows, has_accuracy=is_right),
        judges=[_build_judge_row(name, [h for h in heard if h[0].judge == name]) for name in source.judge_names]
        if is_right
        else [],
    )


def _sample_key(vote: Vote) -> SampleKey:
    return vote.model, Cell(vote.country, vote.topic), vote.sample


def _valid_shares(votes: Iterable[Vote]) -> dict[SampleKey, Fraction]:
    """Of each answer the share of its verdicts that say VALID."""
    valid, given = Counter[SampleKey](), Counter[SampleKey]()
    for ballot in votes:
        given[_sample_key(ballot)] += 1
        valid[_sample_key(ballot)] += ballot.valid
    return {key: Fraction(valid[key], n) for key, n in given.items()}


def _build_verdict_rows(
    verdicts: Sequence[VerdictWithTruth], valid_shares: dict[SampleKey, Fraction], answers: TaskAnswerSet
) -> list[VerdictAccuracyRow]:
    rows = [
        _build_verdict_row(
            ruling.value, [(b.topic, right) for b, right in verdicts if b.valid == (ruling is Ruling.VALID)]
        )
        for ruling in Ruling
    ]
    half = Fraction(1, 2)
    sides: dict[str, Callable[[Fraction], bool]] = {
        "majority VALID": lambda share: share > half,
        "majority INVALID": lambda share: share < half,
        TIED_LABEL: lambda share: share == half,
    }
    for said, is_side in sides.items():
        mine = [(key[1].topic, answers.correctness[key]) for key, share in valid_shares.items() if is_side(share)]
        if mine or said != TIED_LABEL:
            rows.append(_build_verdict_row(said, mine))
    return rows


def _build_verdict_row(verdict_label: str, item_hits: Sequence[tuple[str, bool]]) -> VerdictAccuracyRow:
    share = _clustered_share(item_hits, f"nothing is called {verdict_label}")
    return VerdictAccuracyRow(said=verdict_label, n=share.n, accuracy=to_estimate(share))


def _clustered_share(item_hits: Iterable[tuple[str, bool]], missing_reason: str) -> ClusteredEstimate:
    hits, counts = Counter[str](), Counter[str]()
    for item, hit in item_hits:
        hits[item] += hit
        counts[item] += 1
    return clustered_share([hits[item] for item in counts], list(counts.values()), missing_reason)


def _share_difference(
    verdicts: Sequence[VerdictWithTruth],
    is_first_side: Callable[[VerdictWithTruth], bool],
    is_hit: Callable[[VerdictWithTruth], bool],
) -> ClusteredEstimate:
    """The share of hits on one side less that on the other, over items."""
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for one in verdicts:
        at = 0 if is_first_side(one) else 2
        table[one[0].topic][at] += is_hit(one)
        table[one[0].topic][at + 1] += 1
    return clustered_difference(*np.array(list(table.values()), dtype=float).reshape(-1, 4).T)


def _build_judge_row(judge: str, verdicts: Sequence[VerdictWithTruth]) -> JudgeValidityRow:
    sides = [[(b.topic, bool(b.valid)) for b, right in verdicts if right is wanted] for wanted in (True, False)]
    return JudgeValidityRow(
        judge=judge,
        right=to_estimate(_clustered_share(sides[0], "it judged no right answer")),
        wrong=to_estimate(_clustered_share(sides[1], "it judged no wrong answer")),
        difference=to_estimate(_share_difference(verdicts, lambda h: h[1], lambda h: bool(h[0].valid))),
    )


def _correlate_closeness(answers: TaskAnswerSet, keys: Sequence[SampleKey], valid_shares: Sequence[float]) -> Estimate:
    off = [-abs(float(answers.usable_answers[k]) - float(answers.task.item_for(k[1]).truth or "nan")) for k in keys]
    return to_estimate(clustered_rank_correlation(valid_shares, off, [k[1].topic for k in keys]))


def _correlate_models(source: ReportSource, model_rows: Sequence[TaskModelRow], *, has_accuracy: bool) -> Estimate:
    agreed = {row.model: row.agreement.value for row in compute_peer_agreement(source)}
    pairs = [(agreed.get(row.model), _model_quality(row, has_accuracy=has_accuracy)) for row in model_rows]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not known:
        return missing_estimate("no model has both")
    found = pearson(*np.array(known, dtype=float).T)
    words = {"x constant": "peers find all models equally VALID", "y constant": "all models are equally good"}
    reason = None if found.reason is None else words.get(found.reason, found.reason.replace("pairs", "models"))
    return Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)


def _model_quality(row: TaskModelRow, *, has_accuracy: bool) -> float | None:
    if has_accuracy or row.score is None:
        return row.accuracy.value
    return None if row.score.mae.value is None else -row.score.mae.value
