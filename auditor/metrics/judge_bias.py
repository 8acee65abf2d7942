"""Leniency of judges, and how it changes with an exposure such as the author's family, at equal traces.

Verdicts follow the additive model of `auditor.metrics.additive_verdicts`.

With traces alone, only differences between judges are known. They are taken from the median judge, which is unbiased
if more than half of the judges are. The mean of the others is not: one lenient judge of five moves it, and honest
judges then look strict.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics.additive_verdicts import (
    ESTIMABLE_TOLERANCE,
    NO_COMPARISON_REASON,
    AdditiveFit,
    Indices,
    fit_additive_model,
)
from auditor.metrics.jackknife_interval import jackknife_covariance
from auditor.metrics.judge_difference import JudgeDifference, Labels, as_verdict_table, missing_difference

MIN_JUDGES = 3
"""Fewest judges for a median judge: of two, either may be the biased one."""
N_DRAWS = 2000
"""Draws for the probability of being the median judge; each is used with both signs."""
UNLINKED_REASON = "no trace links it with the judges that define the median"
REFERENCE_REASON = "it is the median judge: 0 by definition"


def leniency(verdicts: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """How much more often each judge says VALID than the median judge on the same traces.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        units: the units that are resampled.

    Returns:
        One per judge, each compared with the mean of all judges weighted by how likely each is the median judge. A
        judge that certainly is has the value 0 and no interval.
    """
    table = as_verdict_table(verdicts)
    if not len(table):
        return []
    fit = fit_additive_model(table, None, units)
    return _compare_with_median(fit, np.arange(fit.n_judges))


def exposure_effects(
    verdicts: ArrayLike, exposures: ArrayLike, units: Labels, *, relative_to_median: bool = False
) -> list[JudgeDifference]:
    """How much more lenient each judge is where it is exposed, such as with authors of its own family.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        exposures: shape (judges, traces): 1, 0, or nan for verdicts to leave out.
        units: the units that are resampled.
        relative_to_median: compare each effect with that of the median judge: where all judges are exposed on the same
            traces, as to their order, an effect that they share cannot be told from the quality of these traces.

    Returns:
        One per judge, as associations: what a judge is exposed to was not drawn at random.
    """
    table, exposed = as_verdict_table(verdicts), np.asarray(exposures, dtype=np.float64)
    if not len(table):
        return []
    fit = fit_additive_model(np.where(np.isnan(exposed), np.nan, table), np.nan_to_num(exposed), units)
    effects = np.arange(fit.n_judges) + fit.n_judges
    if relative_to_median:
        differences = _compare_with_median(fit, effects)
    else:
        differences = [fit.difference(np.eye(len(fit.solution))[effect]) for effect in effects]
    return [replace(difference, evidence="association") for difference in differences]


def later_half(times: ArrayLike, verdicts: ArrayLike) -> Floats:
    """Whether each verdict is in the later half of its judge's verdicts: 1, 0, or nan where there is none or no time.

    Args:
        times: shape (judges, traces), when each verdict was given, in any unit; nan where unknown.
        verdicts: shape (judges, traces); nan where there is none.
    """
    table = np.where(np.isnan(as_verdict_table(verdicts)), np.nan, np.asarray(times, dtype=np.float64))
    is_late = np.full(table.shape, np.nan)
    for row, judge_times in zip(is_late, table, strict=True):
        has_time = ~np.isnan(judge_times)
        rank = np.argsort(np.argsort(judge_times[has_time], kind="stable"), kind="stable")
        row[has_time] = rank >= has_time.sum() / 2
    return is_late


def _compare_with_median(fit: AdditiveFit, positions: Indices) -> list[JudgeDifference]:
    """Compare an effect of each judge with that of the median judge.

    Args:
        positions: shape (judges,), positions of the effects in the solution.
    """
    known = _largest_comparable_group(fit, positions)
    if len(known) < MIN_JUDGES:
        reason = f"a comparison with the median judge needs {MIN_JUDGES} judges on the same traces"
        return [missing_difference(reason, "panel", int(n)) for n in fit.n_compared]
    weights = np.zeros(len(fit.solution))
    weights[positions[known]] = _median_weights(fit, positions[known])
    # Variance that comes from not knowing which judge is the median one (Buckland, Burnham & Augustin, Biometrics 53,
    # 1997, on averages over models).
    between_variance = float(weights @ (fit.solution - weights @ fit.solution) ** 2)
    differences = []
    for i, position in enumerate(positions):
        n = int(fit.n_compared[i])
        if i not in known:
            reason = UNLINKED_REASON if n else NO_COMPARISON_REASON
            differences.append(missing_difference(reason, "panel", n))
        elif weights[position] == 1:
            differences.append(JudgeDifference(0.0, n, reason=REFERENCE_REASON, evidence="panel"))
        else:
            differences.append(fit.difference(np.eye(len(weights))[position] - weights, between_variance))
    return differences


def _median_weights(fit: AdditiveFit, positions: Indices) -> Floats:
    """How likely each judge is the median one, given the jackknife covariance of the judges' effects; the sum is 1.

    Effects that differ by less than their errors do not show which judge is the median. The weighted mean of the
    candidates has a smaller error than the one that happens to be in the middle, and its error can be estimated by the
    jackknife, unlike that of a median (Efron, J. of the American Statistical Association 109, 2014, on smoothing by
    bagging).

    Args:
        positions: shape (judges,), positions of the effects in the solution.
    """
    effects = fit.solution[positions]
    draws = effects[None]
    replicates = [solutions[:, positions].T for solutions, _ in fit.without_units.values()]
    if all(r.shape[1] > 1 for r in replicates):
        eigenvalues, eigenvectors = np.linalg.eigh(sum(jackknife_covariance(r) for r in replicates))
        root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T  # the same on every platform
        noise = np.random.default_rng(0).normal(size=(N_DRAWS, len(effects))) @ root
        draws = effects + np.concatenate([noise, -noise])
    ranked = np.argsort(draws, axis=1, kind="stable")
    middle = np.stack([ranked[:, (len(effects) - 1) // 2], ranked[:, len(effects) // 2]])
    weights: Floats = np.bincount(middle.ravel(), minlength=len(effects)) / middle.size
    return weights


def _largest_comparable_group(fit: AdditiveFit, positions: Indices) -> list[int]:
    """The largest group of judges whose effects the verdicts compare with each other."""
    groups: list[list[int]] = []
    for i in np.flatnonzero(fit.n_compared).tolist():
        column = fit.undetermined[:, positions[i]]  # equal for two effects whose difference is determined
        for group in groups:
            if np.abs(column - fit.undetermined[:, positions[group[0]]]).max() < ESTIMABLE_TOLERANCE:
                group.append(i)
                break
        else:
            groups.append([i])
    return max(groups, key=len, default=[])
