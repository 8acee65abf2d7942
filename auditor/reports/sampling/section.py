"""What more samples buy: accuracy, stability and cost at several settings of the direct probe, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method, Outcome, Purpose, derive_seed
from auditor.metrics.correlation import pearson
from auditor.metrics.error import mae
from auditor.reports.agreement.section import alignment
from auditor.reports.estimate_conversion import unmeasured
from auditor.reports.measurement_schema import Estimate, Part
from auditor.reports.report_source import Floats, Source
from auditor.storage import results
from auditor.storage.costs import CallTally
from auditor.storage.database import Database

DRAWS = 100
"""Random subsets of the recorded samples for each k."""


class SettingRow(Part):
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


class Settings(Part):
    """An experiment: what was varied, and what came of it."""

    audit: str
    what: Literal["samples", "temperature"]
    cells: int
    rows: list[SettingRow]
    missing: dict[str, int]
    """Calls that a setting still needs, by setting; it is not in the rows."""


def sample_settings(db: Database, source: Source, sizes: Sequence[int]) -> Settings:
    """Every model with fewer samples a cell than it has, by random subsets of the recorded ones; asks nothing.

    A subset is of samples, failed ones included, so that fewer samples also lose more cells. Subsets of k of the K that
    are there share samples, and so differ by less than k new answers would: the variance of their mean is 1 - k / K of
    that (Cochran, Sampling Techniques, 3rd ed. 1977, eq. 2.8), and the range is widened by as much. At the full number
    there is one subset, and so no range.

    Args:
        sizes: samples a cell; what is more than there are is in `missing`.
    """
    recorded = _samples(db, source)
    planned = source.config.direct.samples if source.config else 0
    asked = np.nonzero(~np.isnan(source.truth))[0]
    costs = _costs(source.calls)
    missing = {str(k): (k - planned) * len(asked) * len(recorded) for k in sizes if k > planned}
    rows = [
        _subsampled(source.seed, model, values[asked], source.truth[asked], k, costs.get(model))
        for model, values in recorded.items()
        for k in sorted({k for k in sizes if k <= planned})
    ]
    return Settings(audit=source.audit.name, what="samples", cells=len(asked), rows=rows, missing=missing)


def _samples(db: Database, source: Source) -> dict[str, Floats]:
    """Scores of every sample by model, shape (cells, samples); nan where it failed or is not there."""
    place = {cell: i for i, cell in enumerate(source.cells)}
    planned = source.config.direct.samples if source.config else 0
    found: dict[str, Floats] = {}
    for trace in results.traces(db, source.audit.id):
        table = found.setdefault(trace.model, np.full((len(place), planned), np.nan))
        if trace.outcome is Outcome.OK and trace.score is not None and trace.sample < planned:
            table[place[trace.cell], trace.sample] = trace.score
    return found


def _subsampled(seed: int, model: str, values: Floats, truth: Floats, k: int, cost: float | None) -> SettingRow:
    whole = values.shape[1] == k
    left = 1 - k / values.shape[1]
    rng = np.random.default_rng(derive_seed(seed, "samples", model, k))
    drawn = np.stack([_means(values, k, rng) for _ in range(1 if whole else DRAWS)])
    r = np.array([np.nan if (c := pearson(scores, truth).r) is None else c for scores in drawn])
    error = np.array([np.nan if (e := mae(scores, truth).value) is None else e for scores in drawn])
    n = round(float((~np.isnan(drawn)).sum(axis=1).mean()))
    return SettingRow(
        model=model,
        setting=k,
        samples=k,
        r=_range(r, n, left, (-1.0, 1.0)),
        mae=_range(error, n, left, (0.0, 2.0)),
        spread=_spread(values, k),
        scored=float((~np.isnan(drawn)).mean()),
        calls=k * len(truth),
        usd=None if cost is None else cost * k * len(truth),
    )


def _means(values: Floats, k: int, rng: np.random.Generator) -> Floats:
    """The mean of k samples drawn for each cell; nan where none of them is usable."""
    chosen = np.take_along_axis(values, rng.random(values.shape).argsort(axis=1)[:, :k], axis=1)
    usable = (~np.isnan(chosen)).sum(axis=1)
    return np.where(usable > 0, np.nansum(chosen, axis=1) / np.maximum(usable, 1), np.nan)


def _range(values: Floats, n: int, left: float, bounds: tuple[float, float]) -> Estimate:
    """The mean over subsets, and the range of new answers; `left` is the share of the samples that a subset leaves."""
    known = values[~np.isnan(values)]
    if not len(known):
        return unmeasured("too few cells, or no variation among them", n)
    if len(values) == 1:
        return Estimate(value=float(known[0]), n=n, reason="all samples: there is one subset, and so no range")
    mean = float(known.mean())
    low, high = np.clip(mean + (np.quantile(known, (0.025, 0.975)) - mean) / np.sqrt(left), *bounds)
    return Estimate(value=mean, n=n, ci_low=float(low), ci_high=float(high))


def _spread(values: Floats, k: int) -> float | None:
    """Standard error of a mean of k samples, from the variance within cells, pooled over cells."""
    usable = (~np.isnan(values)).sum(axis=1)
    several = usable > 1
    if not several.any():
        return None
    variance: NDArray[np.float64] = np.nanvar(values[several], axis=1, ddof=1)
    return float(np.sqrt(variance.mean() / k))


def _costs(calls: Sequence[CallTally]) -> dict[str, float | None]:
    """Mean US dollars of one direct answer by model; None where any price is unknown."""
    found: dict[str, list[CallTally]] = {}
    for tally in calls:
        if tally.purpose == Purpose.DIRECT.value and tally.answers:
            found.setdefault(tally.name, []).append(tally)
    return {
        name: None
        if any(t.cost_usd is None for t in tallies)
        else sum((t.cost_usd or 0.0) * t.answers for t in tallies) / sum(t.answers for t in tallies)
        for name, tallies in found.items()
    }


def temperature_rows(source: Source, temperature: float) -> list[SettingRow]:
    """Every model of an audit that was run at a temperature."""
    asked = int((~np.isnan(source.truth)).sum())
    k = source.config.direct.samples if source.config else 0
    costs = _costs(source.calls)
    rows = []
    for i, row in enumerate(alignment(source)):
        if row.method != Method.DIRECT:
            continue
        variance = source.variance[i]
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
