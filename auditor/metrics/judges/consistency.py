"""Consistency of judges: their comparisons of item pairs, and verdicts of two sides on the same traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.jackknife_interval import Labels, replicate_over_units
from auditor.metrics.intervals.paired import PairedTable, paired_difference_over_units
from auditor.metrics.judges.agreement import estimate_two_category_agreement
from auditor.metrics.logic.consistency import (
    Bools,
    Floats,
    JudgeAnswers,
    decisions,
    estimate_commutativity,
    estimate_negation_invariance,
    estimate_self_agreement,
)
from auditor.metrics.logic.transitivity import estimate_transitivity

MIN_ANSWERED_SHARE = 0.8
"""Smallest share of questions, of either form, that a judge must answer: few answers do not measure it reliably."""
MIN_DECIDED_SHARE = 0.5
"""Smallest share of its answers, of either form, that must not be ties: the measures are of the other answers."""
MAX_SIDE_SHARE = 0.95
"""Largest share of decisions for the same side, first or second, of a judge that looks at the items."""
MEASURE_NAMES = ("transitivity", "commutativity", "negation", "self-agreement")


class Measure(NamedTuple):
    """One measure of consistency in [0, 1], and its chance level for answers that do not depend on the items."""

    value: float
    chance: float

    @property
    def above_chance(self) -> float:
        """1 for perfect consistency, 0 at the chance level, and below 0 for less; 0 where chance is perfect, too."""
        return (self.value - self.chance) / (1 - self.chance) if self.chance < 1 - 1e-9 else 0.0


@dataclass(frozen=True, slots=True)
class ConsistencyMeasures:
    """Consistency of one judge; a measure is None where it was not measured.

    Attributes:
        answered, questions: of the form of the question, plain or negated, with the smaller share of answers.
        decided, decidable: decisions and answers of the form with the larger share of ties.
        side_share: share of the decisions for the side, first or second, that is named more often; over pairs decided
            in both orders if there are any, else over all decisions. None without a decision.
    """

    transitivity: Measure | None
    commutativity: Measure | None
    negation: Measure | None
    self_agreement: Measure | None
    answered: int
    questions: int
    decided: int
    decidable: int
    side_share: float | None

    @property
    def measures(self) -> tuple[Measure | None, ...]:
        """Transitivity, commutativity, negation invariance and self-agreement, in the order of `MEASURE_NAMES`."""
        return self.transitivity, self.commutativity, self.negation, self.self_agreement


class VoteWeight(NamedTuple):
    """The weight of a judge's vote, from its consistency.

    Attributes:
        value: mean of the measures on which the judges are compared; None for an excluded judge.
        above_chance: mean of these measures above chance, at least 0; None for an excluded judge.
        weight: `above_chance`, or 0 for a judge without a vote.
        reason: why the judge has no vote; None where it has one.
    """

    value: float | None
    above_chance: float | None
    weight: float
    reason: str | None


def measure_consistency(sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int) -> ConsistencyMeasures:
    """Measure one judge's consistency over all its item sets (see `auditor.metrics.logic.consistency`), pooled.

    Args:
        sets: the judge's answers.
        k: number of items in each subset that is checked for cycles (transitivity).
        max_subsets: most subsets that are checked per set.
        seed: of the drawn orders and subsets.
    """
    standard = [_decisions_of(answers, 0) for answers in sets]
    negated = [_decisions_of(answers, 1) for answers in sets]
    both_orders = [(decided, decided.T) for decided in standard]
    both_forms = list(zip(standard, negated, strict=True))
    counts_by_form = [_count_answered(sets, form) for form in (0, 1)]
    answered = min(((n, asked) for n, _, asked in counts_by_form if asked), key=_ratio, default=(0, 0))
    decided = min(((n_decided, n) for n, n_decided, _ in counts_by_form if n), key=_ratio, default=(0, 0))
    samples = [decisions(answers.samples) for answers in sets if answers.samples.size]
    return ConsistencyMeasures(
        _to_measure(
            estimate_transitivity(sets, k, max_subsets, seed).complete["pooled"].value, _random_transitivity(k)
        ),
        _to_measure(estimate_commutativity(sets, "pooled").value, _chance_of_reversal(both_orders)),
        _to_measure(estimate_negation_invariance(sets, "pooled").value, _chance_of_reversal(both_forms)),
        _to_measure(estimate_self_agreement(sets, "pooled").value, _chance_of_self_agreement(samples)),
        *answered,
        *decided,
        _side_share(both_orders) if any(_first_named(both_orders)) else _side_share([(d, d) for d in standard]),
    )


def _to_measure(value: float | None, chance: float) -> Measure | None:
    """A measure with its chance level; None where it was not measured."""
    return None if value is None else Measure(value, chance)


def _ratio(counts: tuple[int, int]) -> float:
    """The share that two counts give."""
    return counts[0] / counts[1]


def _decisions_of(answers: JudgeAnswers, form: int) -> Floats:
    """Decisions on one form's questions, shape (N, N): 1 for the first item, -1 for the second, 0 for a tie, or nan."""
    values = np.where(answers.asked[form], (answers.preferences, answers.negated)[form], np.nan)
    np.fill_diagonal(values, np.nan)
    return decisions(values)


def _count_answered(sets: Sequence[JudgeAnswers], form: int) -> tuple[int, int, int]:
    """Number of answered, of decided and of asked questions of one form: 0 is the plain form, 1 the negated one."""
    n_answered = n_decided = n_questions = 0
    for answers in sets:
        decided = _decisions_of(answers, form)
        n_answered += int((~np.isnan(decided)).sum())
        n_decided += int((np.abs(decided) == 1).sum())
        n_questions += int((answers.asked[form] & ~np.eye(len(decided), dtype=bool)).sum())
    return n_answered, n_decided, n_questions


def _first_named(pairs: Sequence[tuple[Floats, Floats]]) -> tuple[int, int, int]:
    """Of cases decided in both of two answers: their number, and how often each answer names the item shown first."""
    n = n_first = n_second = 0
    for first, second in pairs:
        both: Bools = (np.abs(first) == 1) & (np.abs(second) == 1)
        n += int(both.sum())
        n_first += int((first[both] == 1).sum())
        n_second += int((second[both] == 1).sum())
    return n, n_first, n_second


def _chance_of_reversal(pairs: Sequence[tuple[Floats, Floats]]) -> float:
    """How often two independent answers name different sides, if each names the first as often as the judge does."""
    n, n_first, n_second = _first_named(pairs)
    p, q = (n_first / n, n_second / n) if n else (0.5, 0.5)
    return p * (1 - q) + q * (1 - p)


def _side_share(pairs: Sequence[tuple[Floats, Floats]]) -> float | None:
    """Share of decisions for the side that is named more often; None without a decision."""
    n, n_first, n_second = _first_named(pairs)
    if not n:
        return None
    first_share = (n_first + n_second) / (2 * n)
    return max(first_share, 1 - first_share)


def _random_transitivity(k: int) -> float:
    """Share of the tournaments on k items that are orders: k! of 2^(k(k-1)/2)."""
    return float(math.factorial(k) / 2 ** (k * (k - 1) // 2))


def _chance_of_self_agreement(samples: Sequence[Floats]) -> float:
    """Mean share of the majority among repeats that each name the first item as often as the judge does on average.

    Args:
        samples: decisions, shape (questions, repeats), one array per set.
    """
    n_first = np.concatenate([(decided == 1).sum(axis=1) for decided in samples] or [np.empty(0)])
    n_decided = n_first + np.concatenate([(decided == -1).sum(axis=1) for decided in samples] or [np.empty(0)])
    repeats = n_decided[n_decided >= 2].astype(int)
    if not len(repeats):
        return 0.5
    p = float(n_first[n_decided >= 2].sum() / repeats.sum())
    return float(np.mean([_expected_majority(int(n), p) for n in repeats]))


def _expected_majority(n: int, p: float) -> float:
    """Expected share of the majority of n decisions, each for the first item with probability p."""
    return float(sum(math.comb(n, x) * p**x * (1 - p) ** (n - x) * max(x, n - x) / n for x in range(n + 1)))


# --- weights ----------------------------------------------------------------------------------------------------


def consistency_weights(judges: Mapping[str, ConsistencyMeasures], bench_below: float = 0.0) -> dict[str, VoteWeight]:
    """Compute the vote weight of each judge of a panel, by name.

    All judges are compared on the same measures, since a mean of three is not comparable with a mean of four: those
    that at least half of the judges have. A judge without one of them has no vote.

    Args:
        judges: measures by name.
        bench_below: smallest consistency of a judge that has a vote, in [0, 1].
    """
    exclusion_reasons = {name: _exclusion_reason(consistency) for name, consistency in judges.items()}
    included = [judges[name].measures for name, reason in exclusion_reasons.items() if reason is None]
    # Measures by position, see `MEASURE_NAMES`.
    shared = [i for i in range(4) if 2 * sum(row[i] is not None for row in included) >= max(1, len(included))]
    return {
        name: VoteWeight(None, None, 0.0, reason)
        if reason
        else _vote_weight(judges[name].measures, shared, bench_below)
        for name, reason in exclusion_reasons.items()
    }


def _exclusion_reason(consistency: ConsistencyMeasures) -> str | None:
    """Why a judge is excluded whatever the others do; None where it is included."""
    if not consistency.questions:
        return "it made no comparison"
    if consistency.answered < MIN_ANSWERED_SHARE * consistency.questions:
        return f"it answered {consistency.answered} of {consistency.questions} questions"
    if consistency.decided < MIN_DECIDED_SHARE * consistency.decidable:
        n_ties = consistency.decidable - consistency.decided
        return f"{n_ties} of its {consistency.decidable} answers are ties"
    if consistency.side_share is not None and consistency.side_share >= MAX_SIDE_SHARE:
        return f"it names the same side in {consistency.side_share:.0%} of its decisions, whatever the items"
    if consistency.transitivity is consistency.commutativity is consistency.negation is None:
        return "none of its answers can be compared"
    return None


def _vote_weight(measures: Sequence[Measure | None], shared: Sequence[int], bench_below: float) -> VoteWeight:
    """The weight of an included judge.

    Self-agreement above chance counts at most as much as the mean of the others: a judge that repeats arbitrary answers
    agrees with itself.

    Args:
        measures: in the order of `MEASURE_NAMES`.
        shared: positions of the measures on which the judges are compared.
    """
    missing = [MEASURE_NAMES[i] for i in shared if measures[i] is None]
    if missing:
        return VoteWeight(
            None, None, 0.0, f"its {' and '.join(missing)} cannot be measured, unlike that of other judges"
        )
    present = {MEASURE_NAMES[i]: measure for i in shared if (measure := measures[i]) is not None}
    if not present:
        return VoteWeight(None, None, 0.0, "the judges have no measure in common")
    value = sum(measure.value for measure in present.values()) / len(present)
    above_chance = {name: measure.above_chance for name, measure in present.items()}
    repeats = above_chance.pop("self-agreement", None)
    logic = sum(above_chance.values()) / max(1, len(above_chance))
    weight = logic if repeats is None else (sum(above_chance.values()) + min(repeats, logic)) / len(present)
    weight = max(0.0, weight)
    if value < bench_below:
        return VoteWeight(value, weight, 0.0, f"its consistency is below {bench_below:g}")
    return VoteWeight(value, weight, weight, None if weight else "it is no more consistent than random answers")


VERDICTS_BY_OUTCOME = np.array([[2, 0], [1, 1], [1, 1], [0, 2]])
"""Numbers of VALID and of INVALID verdicts in a pair, by the column of counts."""


@dataclass(frozen=True, slots=True)
class VerdictFlips:
    """Differences between two sides' verdicts on the same traces; `n` of the estimates counts pairs of verdicts.

    Attributes:
        change: share of VALID on the second side minus that on the first.
        kappa: agreement beyond chance (Scott's pi, which is Fleiss' kappa of two).
    """

    change: Tested
    kappa: Estimate


def compare_verdicts_over_units(counts: ArrayLike, units: Labels) -> VerdictFlips:
    """Compare paired verdicts, with intervals over other units.

    Args:
        counts: shape (n, 4), of each row, such as a cell: verdicts that are VALID in both, VALID in the second only,
            VALID in the first only, INVALID in both.
        units: for each kind of unit, such as `country`, the unit of each row, shape (n,).

    Raises:
        ValueError: not such a table, a number is negative, or another number of labels than of rows.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 4)
    if np.isnan(table).any() or (table < 0).any():
        raise ValueError("counts must be numbers of verdicts, at least 0")
    totals = table.sum(axis=1)
    n_verdicts = int(totals.sum())
    if not n_verdicts:
        reason = "no verdict on both sides"
        return VerdictFlips(Tested(None, 0, reason=reason), Estimate(None, 0, reason=reason))
    change = paired_difference_over_units(PairedTable(table[:, 1], table[:, 2], totals, units))
    pi = float(_scotts_pi(table.sum(axis=0)[None])[0])
    if np.isnan(pi):
        return VerdictFlips(change, Estimate(None, n_verdicts, reason="all verdicts are the same"))
    has_verdicts = totals > 0
    used_units = {unit: np.asarray(labels)[has_verdicts] for unit, labels in units.items()}
    replicates = replicate_over_units(table[has_verdicts], _scotts_pi, used_units)
    by_verdict = table[has_verdicts] @ VERDICTS_BY_OUTCOME
    rarer = by_verdict[:, by_verdict.sum(axis=0).argmin()]
    kappa = estimate_two_category_agreement(pi, n_verdicts, replicates, rarer, 2.0 * n_verdicts, used_units)
    return VerdictFlips(change, kappa)


def _scotts_pi(counts: Floats) -> Floats:
    """Scott's pi (Public Opinion Quarterly 19, 1955, 321-325) of counts (..., 4); nan if all verdicts are the same."""
    n_verdicts = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement = (counts[..., 0] + counts[..., 3]) / n_verdicts
        valid_share = (2 * counts[..., 0] + counts[..., 1] + counts[..., 2]) / (2 * n_verdicts)
        chance = valid_share**2 + (1 - valid_share) ** 2
        pi: Floats = np.where(chance < 1, (agreement - chance) / (1 - chance), np.nan)
    return pi
