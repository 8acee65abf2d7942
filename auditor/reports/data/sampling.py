"""Sampling experiment: accuracy, stability and cost at several settings of the direct probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.domain import Method, Outcome, Purpose, derive_seed
from auditor.metrics.intervals.correlation import pearson_by_row
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.people.alignment import mae
from auditor.metrics.people.savings import draw_subset_means, estimate_over_subsets, subset_standard_error
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.requests import build_sampling_report
from auditor.storage import results
from auditor.storage.costs import CallCounts
from auditor.storage.database import Database

REFUSED_REASON = "the model’s server does not accept the temperature"
N_SUBSETS = 100
"""Random subsets of the recorded samples for each sample size."""
MAX_SHIFT = 0.01
"""Difference in MAE, and in r, up to which fewer samples are as good as the largest number."""


class SettingRow(ReportModel):
    """One model at one setting."""

    model: str
    setting: float
    """Samples a cell, or the temperature."""
    samples: int
    r: Estimate
    """`samples`: mean over random subsets, with the 95% range expected for new answers. `temperature`: interval over
    countries and topics."""
    mae: Estimate
    spread: float | None
    """Standard deviation of a cell's score over repeated measurements, in units of the score."""
    scored: float
    """Share of the asked cells that have a score."""
    calls: int
    usd: float | None
    """Null where a price is unknown."""
    temperature: float | None = None
    """The temperature, where `setting` is a number of samples and several temperatures are compared."""
    sampling: str | None = None
    """Sampling settings as sent, where they differ between models, so that the spread is not comparable; else null."""


class EnoughSamplesRow(ReportModel):
    """From how many samples a cell on more samples change a model's agreement with people by at most 0.01."""

    model: str
    temperature: float | None
    """Null where one temperature was measured."""
    samples: int | None
    """The smallest number with an MAE and an r within 0.01 of those with the largest, and so for all larger numbers;
    null where only the largest number is."""
    largest: int
    """The largest number that was measured."""


class SamplingExperiment(ReportModel):
    """An experiment: the setting that was varied, and its effect on each model."""

    audit: str
    what: Literal["samples", "temperature"]
    cells: int
    rows: list[SettingRow]
    missing: dict[str, int]
    """Calls that are missing, by setting; such settings have no rows."""
    enough: list[EnoughSamplesRow] = Field(default_factory=list)
    """Where more samples stop helping; empty where one number of samples was measured."""
    forecasts: dict[str, str] = Field(default_factory=dict)
    """Expected calls and cost of the audits that `--ask` would run, by their name."""


def compare_sample_sizes(db: Database, source: ReportSource, sample_sizes: Sequence[int]) -> SamplingExperiment:
    """Measure each model with fewer samples a cell, by random subsets of the recorded samples; nothing is asked.

    Subsets include failed samples, so smaller subsets also lose more cells. Subsets of k of K recorded samples overlap,
    so they vary less than k new answers would: the variance of their mean is 1 - k / K of that (Cochran, Sampling
    Techniques, 3rd ed. 1977, eq. 2.8), and the range is widened accordingly. At k = K there is a single subset, and no
    range.

    Args:
        sample_sizes: samples a cell; sizes above the recorded number are reported in `missing`.
    """
    scores_by_model = _load_sample_scores(db, source)
    samples_per_cell = source.config.direct.samples if source.config else 0
    asked_cells = np.nonzero(~np.isnan(source.survey_scores))[0]
    cost_by_model = _mean_cost_by_model(source.call_counts)
    missing = {
        str(k): (k - samples_per_cell) * len(asked_cells) * len(scores_by_model)
        for k in sample_sizes
        if k > samples_per_cell
    }
    sampling_labels = build_sampling_report(source.config, source.call_counts).labels(Purpose.DIRECT)
    rows = [
        build_subsample_row(
            source.seed,
            model,
            sample_scores[asked_cells],
            source.survey_scores[asked_cells],
            k,
            cost_by_model.get(model),
        ).model_copy(update={"sampling": sampling_labels.get(model)})
        for model, sample_scores in scores_by_model.items()
        for k in sorted({k for k in sample_sizes if k <= samples_per_cell})
    ]
    return SamplingExperiment(
        audit=source.audit.name,
        what="samples",
        cells=len(asked_cells),
        rows=rows,
        missing=missing,
        enough=find_enough_samples(rows),
    )


def compare_sizes_and_temperatures(
    db: Database,
    source: ReportSource,
    source_by_temperature: Mapping[float | None, ReportSource | None],
    sample_sizes: Sequence[int],
) -> SamplingExperiment:
    """Measure each model at each temperature and number of samples, smaller numbers by subsets of the largest.

    Args:
        source: the audit itself.
        source_by_temperature: the audit with most samples at each temperature; None where there is none.
        sample_sizes: samples a cell; what is not recorded is in `missing`.
    """
    rows: list[SettingRow] = []
    missing: dict[str, int] = {}
    n_cells = int((~np.isnan(source.survey_scores)).sum())
    for temperature, variant in source_by_temperature.items():
        if variant is None:
            missing[f"{temperature:g}, {max(sample_sizes)} samples"] = n_cells * max(sample_sizes) * len(source.models)
            continue
        experiment = compare_sample_sizes(db, variant, sample_sizes)
        missing |= {f"{temperature:g}, {k} samples": n for k, n in experiment.missing.items()}
        refusing_models = _refusing_models(variant)
        for row in experiment.rows:
            changes: dict[str, object] = {"temperature": temperature}
            if row.model in refusing_models:
                refused = Estimate(None, row.r.n, reason=REFUSED_REASON)
                changes |= {"r": refused, "mae": refused, "spread": None}
            rows.append(row.model_copy(update=changes))
    rows.sort(key=lambda row: (source.models.index(row.model), row.temperature or 0.0, row.setting))
    return SamplingExperiment(
        audit=source.audit.name,
        what="samples",
        cells=n_cells,
        rows=rows,
        missing=missing,
        enough=find_enough_samples(rows),
    )


def find_enough_samples(rows: Sequence[SettingRow]) -> list[EnoughSamplesRow]:
    """Find where more samples stop helping, for each model and temperature with at least two numbers of samples."""
    rows_by_series: dict[tuple[str, float | None], list[SettingRow]] = {}
    for row in sorted(rows, key=lambda row: row.samples):
        if row.r.value is not None and row.mae.value is not None:
            rows_by_series.setdefault((row.model, row.temperature), []).append(row)
    return [
        EnoughSamplesRow(
            model=model,
            temperature=temperature,
            samples=enough_samples(
                [row.samples for row in series],
                [row.mae.value or 0.0 for row in series],
                [row.r.value or 0.0 for row in series],
            ),
            largest=series[-1].samples,
        )
        for (model, temperature), series in rows_by_series.items()
        if len(series) > 1
    ]


def enough_samples(sizes: Sequence[int], maes: Sequence[float], correlations: Sequence[float]) -> int | None:
    """The smallest number of samples from which MAE and r stay within `MAX_SHIFT` of those with the largest number.

    Args:
        sizes: numbers of samples in ascending order; maes, correlations: the figures with each.

    Returns:
        None where only the largest number is near enough.
    """
    is_near = [
        abs(mae_at_size - maes[-1]) <= MAX_SHIFT and abs(r - correlations[-1]) <= MAX_SHIFT
        for mae_at_size, r in zip(maes, correlations, strict=True)
    ]
    first = next(i for i in range(len(sizes)) if all(is_near[i:]))
    return None if first == len(sizes) - 1 else sizes[first]


def _load_sample_scores(db: Database, source: ReportSource) -> dict[str, FloatArray]:
    """Load the score of each sample by model, shape (cells, samples); nan where it failed or is missing."""
    cell_index = {cell: i for i, cell in enumerate(source.cells)}
    samples_per_cell = source.config.direct.samples if source.config else 0
    scores_by_model: dict[str, FloatArray] = {}
    for trace in results.load_traces(db, source.audit.id):
        model_scores = scores_by_model.setdefault(trace.model, np.full((len(cell_index), samples_per_cell), np.nan))
        if trace.outcome is Outcome.OK and trace.score is not None and trace.sample < samples_per_cell:
            model_scores[cell_index[trace.cell], trace.sample] = trace.score
    return scores_by_model


def build_subsample_row(
    seed: int, model: str, sample_scores: FloatArray, truth: FloatArray, n_samples: int, cost_per_answer: float | None
) -> SettingRow:
    """Compute r, MAE and scatter of one model over random subsets of `n_samples` a cell."""
    uses_all_samples = sample_scores.shape[1] == n_samples
    unused_share = 1 - n_samples / sample_scores.shape[1]
    rng = np.random.default_rng(derive_seed(seed, "samples", model, n_samples))
    subset_means = draw_subset_means(sample_scores, n_samples, 1 if uses_all_samples else N_SUBSETS, rng)
    r_by_subset = pearson_by_row(subset_means, truth)
    mae_by_subset = np.array(
        [np.nan if (subset_mae := mae(scores, truth).value) is None else subset_mae for scores in subset_means]
    )
    n_cells = round(float((~np.isnan(subset_means)).sum(axis=1).mean()))
    return SettingRow(
        model=model,
        setting=n_samples,
        samples=n_samples,
        r=estimate_over_subsets(r_by_subset, n_cells, unused_share, (-1.0, 1.0)),
        mae=estimate_over_subsets(mae_by_subset, n_cells, unused_share, (0.0, 2.0)),
        spread=subset_standard_error(sample_scores, n_samples),
        scored=float((~np.isnan(subset_means)).mean()),
        calls=n_samples * len(truth),
        usd=None if cost_per_answer is None else cost_per_answer * n_samples * len(truth),
    )


def _mean_cost_by_model(call_counts: Sequence[CallCounts]) -> dict[str, float | None]:
    """Mean cost of one direct answer by model, in US dollars; None where any price is unknown."""
    counts_by_model: dict[str, list[CallCounts]] = {}
    for counts in call_counts:
        if counts.purpose == Purpose.DIRECT.value and counts.sums.answers:
            counts_by_model.setdefault(counts.name, []).append(counts)
    return {
        name: None
        if any(counts.cost_usd is None for counts in group)
        else sum((counts.cost_usd or 0.0) * counts.sums.answers for counts in group)
        / sum(counts.sums.answers for counts in group)
        for name, group in counts_by_model.items()
    }


def compare_temperatures(
    source: ReportSource, source_by_temperature: Mapping[float | None, ReportSource | None]
) -> SamplingExperiment:
    """Measure each model at several temperatures, each with answers of its own.

    Args:
        source: the audit itself.
        source_by_temperature: the audit that was run at each temperature; None where there is none, whose calls are in
            `missing`.
    """
    n_cells, samples_per_cell = len(source.survey.scores), source.config.direct.samples if source.config else 0
    rows = [
        row
        for temperature, variant in source_by_temperature.items()
        if variant is not None and temperature is not None
        for row in build_temperature_rows(variant, temperature)
    ]
    rows.sort(key=lambda row: (source.models.index(row.model), row.setting))
    missing = {
        f"{temperature:g}": n_cells * samples_per_cell * len(source.models)
        for temperature, variant in source_by_temperature.items()
        if variant is None
    }
    return SamplingExperiment(audit=source.audit.name, what="temperature", cells=n_cells, rows=rows, missing=missing)


def build_temperature_rows(source: ReportSource, temperature: float) -> list[SettingRow]:
    """Build a row for each model of an audit that was run at one temperature.

    A model whose server does not accept the temperature has no figures at it.
    """
    n_asked = int((~np.isnan(source.survey_scores)).sum())
    samples_per_cell = source.config.direct.samples if source.config else 0
    cost_by_model = _mean_cost_by_model(source.call_counts)
    refusing_models = _refusing_models(source)
    rows = []
    for i, row in enumerate(compute_alignment(source)):
        if row.method != Method.DIRECT:
            continue
        is_refused = row.model in refusing_models
        cell_variances = source.variance_matrix[i]
        mean_variance = None if np.isnan(cell_variances).all() else float(np.nanmean(cell_variances))
        answer_cost = cost_by_model.get(row.model)
        rows.append(
            SettingRow(
                model=row.model,
                setting=temperature,
                samples=samples_per_cell,
                r=Estimate(None, row.n, reason=REFUSED_REASON) if is_refused else row.pearson_r,
                mae=Estimate(None, row.n, reason=REFUSED_REASON) if is_refused else row.mae,
                spread=None
                if is_refused or mean_variance is None or not samples_per_cell
                else float(np.sqrt(mean_variance / samples_per_cell)),
                scored=row.n / n_asked if n_asked else 0.0,
                calls=samples_per_cell * n_asked,
                usd=None if answer_cost is None else answer_cost * samples_per_cell * n_asked,
            )
        )
    return rows


def _refusing_models(source: ReportSource) -> list[str]:
    """The models whose servers do not accept the temperature of direct answers."""
    sampling_rows = build_sampling_report(source.config, source.call_counts).rows
    return [row.model for row in sampling_rows if row.purpose == Purpose.DIRECT.value and not row.honoured]
