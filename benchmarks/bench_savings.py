"""What asking less costs in answers: `python benchmarks/bench_savings.py [populations] [models] [countries]`.

Draws populations of models whose true r with people is known, asks them everything, and replays that as if less had
been asked. Models differ in how far they agree with people, and waver more on some cells than on others; judges differ
in leniency, are milder or stricter with some models, and share a view of each trace. The first table goes into
docs/savings.md; what it says of bias and intervals holds for such populations, not for every model there is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.people.savings import CompleteAudit, SamplingPlan, is_narrow, next_interim_look, replay_audit
from auditor.metrics.people.survey_error import crossed_corrected
from auditor.reports.data.savings_study import (
    FullAudit,
    SamplingPlanRow,
    compare_sampling_plans,
    list_sampling_plans,
)
from auditor.reports.number_format import format_styled
from auditor.reports.sections.phrasing import list_columns

Floats = NDArray[np.float64]

TOPICS, SAMPLES, REGIONS = 23, 5, 6
PAGE = Path(__file__).parents[1] / "docs" / "savings.md"
BEGIN, END = "<!-- table: bench_savings -->", "<!-- end of table -->"
TRUTH_HEADING = "Against the true r of each model over the same cells, with any number of samples:"
TRUTH_COLUMNS = ("bias of r", "bias of corrected r", "intervals of r that contain the true r")


@dataclass(frozen=True)
class Population:
    """A complete audit of simulated models, and each model's true r with people."""

    studied: FullAudit
    r: Floats


def draw_population(seed: int, models: int, countries: int) -> Population:
    """Draw a population of models, with samples, verdicts and the true r of each model."""
    rng = np.random.default_rng(seed)
    cells = countries * TOPICS
    country, topic = (index_grid.ravel() for index_grid in np.indices((countries, TOPICS)))

    def draw_effects(*sds: float) -> Floats:
        parts = (rng.normal(0, sd, count) for sd, count in zip(sds, (countries, TOPICS, cells), strict=True))
        position_arrays = (country, topic, np.arange(cells))
        total: Floats = np.sum(
            [part[positions] for part, positions in zip(parts, position_arrays, strict=True)], axis=0
        )
        return total

    truth = np.clip(-0.25 + draw_effects(0.2, 0.4, 0.15), -1, 1)
    sample_sds = np.exp(rng.normal(np.log(0.12), 0.5, (models, cells)))
    errors = np.stack([size * draw_effects(0.2, 0.3, 0.3) for size in np.linspace(0.3, 1.8, models)])
    centre = truth + errors
    samples = _draw_samples(centre, sample_sds, SAMPLES, rng)
    expected = np.mean([_draw_samples(centre, sample_sds, 20, rng).mean(axis=2) for _ in range(10)], axis=0)
    true_r = np.array([np.corrcoef(row, truth)[0, 1] for row in expected])
    may_judge = ~np.eye(models, dtype=np.bool_)
    verdicts = _draw_verdicts(samples, np.linspace(1.2, -0.2, models), rng)
    strata = [
        (int(country_index) % REGIONS, int(topic_index))
        for country_index, topic_index in zip(country, topic, strict=True)
    ]
    verdicts[~np.broadcast_to(may_judge.T[:, :, None, None], verdicts.shape)] = np.nan
    return Population(FullAudit(CompleteAudit(samples, verdicts, may_judge, truth, strata), country, topic), true_r)


def _draw_samples(centre: Floats, sample_sds: Floats, n_samples: int, rng: np.random.Generator) -> Floats:
    """Draw scores around `centre`, clipped to [-1, 1] and rounded to tenths, as models give them.

    `centre` and `sample_sds` have the shape (models, cells); the scores have (models, cells, n_samples).
    """
    scores: Floats = np.clip(
        centre[:, :, None] + sample_sds[:, :, None] * rng.normal(size=(*centre.shape, n_samples)), -1, 1
    )
    return scores.round(1)


def _draw_verdicts(samples: Floats, quality: Floats, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw verdicts, 1 (VALID) or 0, of shape (judges, models, cells, samples); `quality` is by model, in logits."""
    models = len(samples)
    leniency, preferences = rng.normal(0, 0.8, (models, 1)), rng.normal(0, 0.3, (models, models))
    logits = (quality + leniency + preferences)[:, :, None, None] + rng.normal(0, 1, samples.shape)[None]
    return (rng.logistic(size=logits.shape) < logits).astype(np.float32)


def compare_with_truth(population: Population, plan: SamplingPlan, seed: int) -> tuple[float, float, float]:
    """Mean bias of r and of the corrected r, then the coverage of Fisher's 95% CI of r, under a sampling plan."""
    replayed = replay_audit(population.studied.replay_input, plan, population.studied.conflict_threshold, seed)
    truth = population.studied.replay_input.truth
    places = (population.studied.country_index, population.studied.topic_index)
    correlations = [pearson(scores, truth) for scores in replayed.scores]
    corrected_correlations = [
        crossed_corrected(scores, truth, variances, np.maximum(counts, 1), *places)
        for scores, variances, counts in zip(replayed.scores, replayed.variances, replayed.counts, strict=True)
    ]
    is_covered = [
        correlation.ci_low <= r <= correlation.ci_high
        for correlation, r in zip(correlations, population.r.tolist(), strict=True)
        if correlation.ci_low is not None and correlation.ci_high is not None
    ]
    bias, corrected_bias = (_mean_error(rows, population.r) for rows in (correlations, corrected_correlations))
    return bias, corrected_bias, float(np.mean(is_covered))


def _mean_error(rows: Sequence[Estimate], true_r: Floats) -> float:
    """Mean of r minus the true r, over the models with an r."""
    return float(
        np.mean([row.value - r for row, r in zip(rows, true_r.tolist(), strict=True) if row.value is not None])
    )


def _mean_row(rows: list[SamplingPlanRow]) -> SamplingPlanRow:
    values = {
        name: float(np.mean([getattr(row, name) for row in rows]))
        for name in SamplingPlanRow.model_fields
        if name != "name" and getattr(rows[0], name) is not None
    }
    return rows[0].model_copy(update=values)


def measure_stopping(runs: int = 2000, cells: int = 1357) -> list[str]:
    """Measure bias and coverage when sampling stops once the interval is narrow; return a Markdown table.

    Cells are drawn independently, with a known r.
    """
    lines = [
        "| true r | width aimed at | cells asked | bias of r | intervals that contain it | "
        "intervals that contain it, if as many cells are asked without stopping |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for r, width in ((0.3, 0.2), (0.6, 0.1), (0.6, 0.2), (0.9, 0.05)):
        rng = np.random.default_rng(int(1000 * (r + width)))
        outcomes = [_stop_once(rng, r, width, cells) for _ in range(runs)]
        n_cells, bias, coverage, control_coverage = np.mean(outcomes, axis=0)
        lines.append(
            f"| {r} | {width} | {n_cells:.0f} | {bias:+.4f} | {100 * coverage:.1f}% | {100 * control_coverage:.1f}% |"
        )
    return [f"Stopping by the width of Fisher's interval, {runs} runs each, of at most {cells} cells:", "", *lines]


def _stop_once(rng: np.random.Generator, r: float, width: float, cells: int) -> tuple[float, float, bool, bool]:
    """Simulate one early stop: cells asked, error of r, and whether the interval contains the true r.

    The last value is the same for as many cells of an independent draw, on which the decision to stop did not depend.
    """
    truth, other_truth = rng.normal(size=(2, cells))
    model_scores, other_model_scores = (
        r * t + np.sqrt(1 - r * r) * rng.normal(size=cells) for t in (truth, other_truth)
    )
    n_cells = next_interim_look(0, cells)
    while n_cells < cells and not is_narrow([model_scores[:n_cells]], truth[:n_cells], width):
        n_cells = next_interim_look(n_cells, cells)
    correlation, control_correlation = (
        pearson(model_scores[:n_cells], truth[:n_cells]),
        pearson(other_model_scores[:n_cells], other_truth[:n_cells]),
    )
    covered = [
        (estimate.ci_low or -1) <= r <= (estimate.ci_high or 1) for estimate in (correlation, control_correlation)
    ]
    return n_cells, (correlation.value or 0.0) - r, covered[0], covered[1]


def main() -> None:
    """Print the tables, and write the first one to docs/savings.md if no size is given."""
    populations, models, countries = (
        int(argument) for argument in (*sys.argv[1:], *("6", "20", "59")[len(sys.argv) - 1 :])
    )
    plans = [SamplingPlan("everything"), *list_sampling_plans(models, SAMPLES)]
    drawn_populations = (draw_population(seed, models, countries) for seed in range(populations))
    tables: list[list[SamplingPlanRow]] = []
    truth_tables: list[list[tuple[float, ...]]] = []
    start = time.perf_counter()
    for seed, drawn_population in enumerate(drawn_populations):
        tables.append(compare_sampling_plans(drawn_population.studied, plans, seed, n_draws=2))
        truth_tables.append([compare_with_truth(drawn_population, plan, seed) for plan in plans])
        print(f"population {seed + 1} of {populations}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    columns = list_columns(SamplingPlanRow)
    headings = [str(column.title) for column in columns]
    study_lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    truth_lines = [f"| {' | '.join([headings[0], *TRUTH_COLUMNS])} |", f"|{'---|' * (1 + len(TRUTH_COLUMNS))}"]
    for i in range(len(plans)):
        row = _mean_row([table[i] for table in tables])
        bias, corrected_bias, coverage = np.mean([truth_table[i] for truth_table in truth_tables], axis=0)
        truth_cells = (f"{bias:+.4f}", f"{corrected_bias:+.4f}", f"{100 * coverage:.0f}%")
        figures = (format_styled(getattr(row, column.key), column.style, column.digits) for column in columns[1:])
        study_lines.append(f"| {' | '.join([row.name, *figures])} |")
        truth_lines.append(f"| {' | '.join([row.name, *truth_cells])} |")
    caption = (
        f"{populations} populations of {models} models over {countries} countries and {TOPICS} topics, {SAMPLES} "
        "samples a cell, every model judged by all others; means over models and populations."
    )
    table = "\n".join([BEGIN, "", caption, "", *study_lines, "", END])
    print("\n".join([table, "", TRUTH_HEADING, "", *truth_lines, "", *measure_stopping()]))
    if PAGE.exists() and len(sys.argv) == 1:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    main()
