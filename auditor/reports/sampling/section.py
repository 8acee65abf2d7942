"""What more samples buy: accuracy, stability and cost at several settings of the direct probe, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method, Outcome, Purpose, derive_seed
from auditor.metrics.correlation import pearson
from auditor.metrics.error import mae
from auditor.reports.agreement.section import compute_alignment
from auditor.reports.estimate_conversion import missing_estimate
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.storage import results
from auditor.storage.costs import CallCounts
from auditor.storage.database import Database

N_SUBSETS = 100
"""Random subsets of the recorded samples for each k."""


class SettingRow(ReportModel):
    """One model at one setting."""

    model: str
    setting: float
    """Samples of a cell, or the temperature."""
    samples: int
    r: Estimate
    """`samples`: mean over random subsets, and the 95% range of other answers. `temperature`: interval over countries
    and topics."""
    mae: Estimate
    spread: float | None
    """How far a cell's score moves when it is taken anew: standard deviation in units of the score."""
    scored: float
    """Share of the asked cells that have a score."""
    calls: int
    usd: float | None
    """Null where a price is unknown."""


class SamplingExperiment(ReportModel):
    """An experiment: what was varied, and what came of it."""

    audit: str
    what: Literal["samples", "temperature"]
    cells: int
    rows: list[SettingRow]
    missing: dict[str, int]
    """Calls that a setting still needs, by setting; it is not in the rows."""


def compare_sample_sizes(db: Database, source: ReportSource, sample_sizes: Sequence[int]) -> SamplingExperiment:
    """Every model with fewer samples a cell than it has, by random subsets of the recorded ones; asks nothing.

    A subset is of samples, failed ones included, so that fewer samples also lose more cells. Subsets of k of the K that
    are there share samples, and so differ by less than k new answers would: the variance of their mean is 1 - k / K of
    that (Cochran, Sampling Techniques, 3rd ed. 1977, eq. 2.8), and the range is widened by as much. At the full number
    there is one subset, and so no range.

    Args:
        sizes: samples a cell; what is more than there are is in `missing`.
    """
    recorded = _load_sample_scores(db, source)
    planned = source.config.direct.samples if source.config else 0
    asked = np.nonzero(~np.isnan(source.survey_scores))[0]
    costs = _mean_cost_by_model(source.call_counts)
    missing = {str(k): (k - planned) * len(asked) * len(recorded) for k in sample_sizes if k > planned}
    rows = [
        _build_subsample_row(source.seed, model, values[asked], source.survey_scores[asked], k, costs.get(model))
        for model, values in recorded.items()
        for k in sorted({k for k in sample_sizes if k <= planned})
    ]
    return SamplingExperiment(audit=source.audit.name, what="samples", cells=len(asked), rows=rows, missing=missing)


def _load_sample_scores(db: Database, source: ReportSource) -> dict[str, FloatArray]:
    """Scores of every sample by model, shape (cells, samples); nan where it failed or is not there."""
    place = {cell: i for i, cell in enumerate(source.cells)}
    planned = source.config.direct.samples if source.config else 0
    found: dict[str, FloatArray] = {}
    for trace in results.load_traces(db, source.audit.id):
        table = found.setdefault(trace.model, np.full((len(place), planned), np.nan))
        if trace.outcome is Outcome.OK and trace.score is not None and trace.sample < planned:
            table[place[trace.cell], trace.sample] = trace.score
    return found


def _build_subsample_row(
    seed: int, model: str, sample_scores: FloatArray, truth: FloatArray, n_samples: int, cost_per_answer: float | None
) -> SettingRow:
    whole = sample_scores.shape[1] == n_samples
    left = 1 - n_samples / sample_scores.shape[1]
    rng = np.random.default_rng(derive_seed(seed, "samples", model, n_samples))
    drawn = np.stack([_draw_subset_means(sample_scores, n_samples, rng) for _ in range(1 if whole else N_SUBSETS)])
    r = np.array([np.nan if (c := pearson(scores, truth).r) is None else c for scores in drawn])
    error = np.array([np.nan if (e := mae(scores, truth).value) is None else e for scores in drawn])
    n = round(float((~np.isnan(drawn)).sum(axis=1).mean()))
    return SettingRow(
        model=model,
        setting=n_samples,
        samples=n_samples,
        r=_estimate_over_subsets(r, n, left, (-1.0, 1.0)),
        mae=_estimate_over_subsets(error, n, left, (0.0, 2.0)),
        spread=_standard_error(sample_scores, n_samples),
        scored=float((~np.isnan(drawn)).mean()),
        calls=n_samples * len(truth),
        usd=None if cost_per_answer is None else cost_per_answer * n_samples * len(truth),
    )


def _draw_subset_means(sample_scores: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """The mean of k samples drawn for each cell; nan where none of them is usable."""
    chosen = np.take_along_axis(sample_scores, rng.random(sample_scores.shape).argsort(axis=1)[:, :n_samples], axis=1)
    usable = (~np.isnan(chosen)).sum(axis=1)
    return np.where(usable > 0, np.nansum(chosen, axis=1) / np.maximum(usable, 1), np.nan)


def _estimate_over_subsets(
    subset_figures: FloatArray, n_cells: int, unused_share: float, bounds: tuple[float, float]
) -> Estimate:
    """The mean over subsets, and the range of new answers; `left` is the share of the samples that a subset leaves."""
    known = subset_figures[~np.isnan(subset_figures)]
    if not len(known):
        return missing_estimate("too few cells, or no variation among them", n_cells)
    if len(subset_figures) == 1:
        return Estimate(value=float(known[0]), n=n_cells, reason="all samples: there is one subset, and so no range")
    mean = float(known.mean())
    low, high = np.clip(mean + (np.quantile(known, (0.025, 0.975)) - mean) / np.sqrt(unused_share), *bounds)
    return Estimate(value=mean, n=n_cells, ci_low=float(low), ci_high=float(high))


def _standard_error(sample_scores: FloatArray, n_samples: int) -> float | None:
    """Standard error of a mean of k samples, from the variance within cells, pooled over cells."""
    usable = (~np.isnan(sample_scores)).sum(axis=1)
    several = usable > 1
    if not several.any():
        return None
    variance: NDArray[np.float64] = np.nanvar(sample_scores[several], axis=1, ddof=1)
    return float(np.sqrt(variance.mean() / n_samples))


def _mean_cost_by_model(call_counts: Sequence[CallCounts]) -> dict[str, float | None]:
    """Mean US dollars of one direct answer by model; None where any price is unknown."""
    found: dict[str, list[CallCounts]] = {}
    for tally in call_counts:
        if tally.purpose == Purpose.DIRECT.value and tally.answers:
            found.setdefault(tally.name, []).append(tally)
    return {
        name: None
        if any(t.cost_usd is None for t in tallies)
        else sum((t.cost_usd or 0.0) * t.answers for t in tallies) / sum(t.answers for t in tallies)
        for name, tallies in found.items()
    }


def build_temperature_rows(source: ReportSource, temperature: float) -> list[SettingRow]:
    """Every model of an audit that was run at a temperature."""
    asked = int((~np.isnan(source.survey_scores)).sum())
    k = source.config.direct.samples if source.config else 0
    costs = _mean_cost_by_model(source.call_counts)
    rows = []
    for i, row in enumerate(compute_alignment(source)):
        if row.method != Method.DIRECT:
            continue
        variance = source.variance_matrix[i]
        mean = None if np.isnan(variance).all() else float(np.nanmean(variance))
        cost = costs.get(row.model)
        rows.append(
            SettingRow(
                model=row.model,
                setting=temperature,
                samples=k,
                r=row.crossed.pearson_r,
                mae=row.crossed.mae,
                spread=None if mean is None or not k else float(np.sqrt(mean / k)),
                scored=row.n / asked if asked else 0.0,
                calls=k * asked,
                usd=None if cost is None else cost * k * asked,
            )
        )
    return rows
