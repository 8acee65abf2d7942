"""Whether peers' verdicts tell right answers from wrong ones: over answers, by judge, and over models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from auditor.domain import AnswerKind, Cell, Ruling
from auditor.metrics.clustered import (
    Clustered,
    area_under_curve,
    area_within_items,
    clustered_difference,
    clustered_share,
    rank_correlation,
)
from auditor.metrics.correlation import pearson
from auditor.reports.estimate_conversion import estimate, unmeasured
from auditor.reports.measurement_schema import Estimate
from auditor.reports.panel.section import peer_agreement
from auditor.reports.report_source import Source
from auditor.reports.task.schema import TaskModelRow, TellingJudgeRow, TellingPart, VerdictRow
from auditor.reports.task.section import Answers
from auditor.storage.votes import Ballot

Key = tuple[str, Cell, int]
Heard = tuple[Ballot, bool]
"""A verdict, and whether the answer that it is on is right."""
SPLIT = "as many VALID as INVALID"


def telling(source: Source, answers: Answers, rows: Sequence[TaskModelRow]) -> TellingPart | None:
    """Verdicts beside the truth; None where no answer was judged, or no truth is known.

    Only verdicts that were asked for whatever other judges said are counted, so that they are not of disputed answers.
    """
    ballots = [b for b in source.ballots if b.always]
    known = {item.cell for item in answers.known}
    judged = {_key(b) for b in ballots if _key(b)[1] in known and _key(b) in answers.given}
    if not judged:
        return None
    support = _support(b for b in ballots if _key(b) in judged)
    heard = [(b, answers.right[_key(b)]) for b in ballots if _key(b) in answers.right]
    is_right = answers.why_not is None
    keys = sorted(support)
    shares, cells = [float(support[k]) for k in keys], np.array([k[1].topic for k in keys])
    right = [answers.right.get(k, False) for k in keys]
    return TellingPart(
        answers=len(judged),
        area=estimate(area_under_curve(shares, right, cells)) if is_right else None,
        area_within=estimate(area_within_items(shares, right, cells)) if is_right else None,
        verdicts=_verdicts(heard, support, answers) if is_right else [],
        difference=estimate(_difference(heard, lambda h: bool(h[0].valid), lambda h: h[1])) if is_right else None,
        closeness=_closeness(answers, keys, shares) if answers.task.kind is AnswerKind.SCORE else None,
        models=_models(source, rows, is_right=is_right),
        judges=[_judge(name, [h for h in heard if h[0].judge == name]) for name in source.judge_names]
        if is_right
        else [],
    )


def _key(ballot: Ballot) -> Key:
    return ballot.model, Cell(ballot.country, ballot.topic), ballot.sample


def _support(ballots: Iterable[Ballot]) -> dict[Key, Fraction]:
    """Of each answer the share of its verdicts that say VALID."""
    valid, given = Counter[Key](), Counter[Key]()
    for ballot in ballots:
        given[_key(ballot)] += 1
        valid[_key(ballot)] += ballot.valid
    return {key: Fraction(valid[key], n) for key, n in given.items()}


def _verdicts(heard: Sequence[Heard], support: dict[Key, Fraction], answers: Answers) -> list[VerdictRow]:
    rows = [
        _row(ruling.value, [(b.topic, right) for b, right in heard if b.valid == (ruling is Ruling.VALID)])
        for ruling in Ruling
    ]
    half = Fraction(1, 2)
    sides: dict[str, Callable[[Fraction], bool]] = {
        "majority VALID": lambda share: share > half,
        "majority INVALID": lambda share: share < half,
        SPLIT: lambda share: share == half,
    }
    for said, is_side in sides.items():
        mine = [(key[1].topic, answers.right[key]) for key, share in support.items() if is_side(share)]
        if mine or said != SPLIT:
            rows.append(_row(said, mine))
    return rows


def _row(said: str, found: Sequence[tuple[str, bool]]) -> VerdictRow:
    share = _share(found, f"nothing is called {said}")
    return VerdictRow(said=said, n=share.n, accuracy=estimate(share))


def _share(found: Iterable[tuple[str, bool]], nothing: str) -> Clustered:
    hits, counts = Counter[str](), Counter[str]()
    for item, hit in found:
        hits[item] += hit
        counts[item] += 1
    return clustered_share([hits[item] for item in counts], list(counts.values()), nothing)


def _difference(heard: Sequence[Heard], side: Callable[[Heard], bool], hit: Callable[[Heard], bool]) -> Clustered:
    """The share of hits on one side less that on the other, over items."""
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for one in heard:
        at = 0 if side(one) else 2
        table[one[0].topic][at] += hit(one)
        table[one[0].topic][at + 1] += 1
    return clustered_difference(*np.array(list(table.values()), dtype=float).reshape(-1, 4).T)


def _judge(name: str, heard: Sequence[Heard]) -> TellingJudgeRow:
    sides = [[(b.topic, bool(b.valid)) for b, right in heard if right is wanted] for wanted in (True, False)]
    return TellingJudgeRow(
        judge=name,
        right=estimate(_share(sides[0], "it judged no right answer")),
        wrong=estimate(_share(sides[1], "it judged no wrong answer")),
        difference=estimate(_difference(heard, lambda h: h[1], lambda h: bool(h[0].valid))),
    )


def _closeness(answers: Answers, keys: Sequence[Key], shares: Sequence[float]) -> Estimate:
    off = [-abs(float(answers.given[k]) - float(answers.task.item_of(k[1]).truth or "nan")) for k in keys]
    return estimate(rank_correlation(shares, off, [k[1].topic for k in keys]))


def _models(source: Source, rows: Sequence[TaskModelRow], *, is_right: bool) -> Estimate:
    agreed = {row.model: row.agreement.value for row in peer_agreement(source)}
    pairs = [(agreed.get(row.model), _quality(row, is_right=is_right)) for row in rows]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not known:
        return unmeasured("no model has both")
    found = pearson(*np.array(known, dtype=float).T)
    words = {"x constant": "peers find all models equally VALID", "y constant": "all models are equally good"}
    reason = None if found.reason is None else words.get(found.reason, found.reason.replace("pairs", "models"))
    return Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)


def _quality(row: TaskModelRow, *, is_right: bool) -> float | None:
    if is_right or row.score is None:
        return row.accuracy.value
    return None if row.score.mae.value is None else -row.score.mae.value
