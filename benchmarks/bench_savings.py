"""What asking less costs in answers: `python benchmarks/bench_savings.py [populations] [models] [countries]`.

Draws populations of models whose true r with people is known, asks them everything, and replays that as if less had
been asked. Models differ in how far they agree with people, and waver more on some cells than on others; judges differ
in leniency, are milder or stricter with some models, and share a view of each trace. The table goes into
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

sys.path.insert(0, str(Path(__file__).parents[1]))

from auditor.metrics.attenuation import CorrectedCorrelation, corrected_pearson
from auditor.metrics.correlation import Correlation, pearson
from auditor.metrics.savings import CompleteAudit, SamplingPlan, replay_audit
from auditor.metrics.stopping import is_narrow, next_interim_look
from auditor.reports.cost.savings_study import TABLE_COLUMNS as STUDY
from auditor.reports.cost.savings_study import (
    FullAudit,
    SamplingPlanRow,
    compare_sampling_plans,
    format_plan_row,
    list_sampling_plans,
)

Floats = NDArray[np.float64]

TOPICS, SAMPLES, REGIONS = 23, 5, 6
PAGE = Path(__file__).parents[1] / "docs" / "savings.md"
BEGIN, END = "<!-- table: bench_savings -->", "<!-- end of table -->"
WHOLE = "Against the true r of each model over the same cells, with any number of samples:"
TRUTH = ("bias of r", "bias of corrected r", "intervals of r that hold the true r", "of corrected r")


@dataclass(frozen=True)
class Population:
    """Models with a known truth: the audit of which everything was asked, and each model's true r."""

    studied: FullAudit
    r: Floats


def population(seed: int, models: int, countries: int) -> Population:
    """Draw one."""
    rng = np.random.default_rng(seed)
    cells = countries * TOPICS
    country, topic = (i.ravel() for i in np.indices((countries, TOPICS)))

    def effects(*sizes: float) -> Floats:
        parts = (rng.normal(0, s, n) for s, n in zip(sizes, (countries, TOPICS, cells), strict=True))
        places = (country, topic, np.arange(cells))
        total: Floats = np.sum([part[at] for part, at in zip(parts, places, strict=True)], axis=0)
        return total

    truth = np.clip(-0.25 + effects(0.2, 0.4, 0.15), -1, 1)
    wavering = np.exp(rng.normal(np.log(0.12), 0.5, (models, cells)))
    error = np.stack([size * effects(0.2, 0.3, 0.3) for size in np.linspace(0.3, 1.8, models)])
    centre = truth + error
    samples = _said(centre, wavering, SAMPLES, rng)
    expected = np.mean([_said(centre, wavering, 20, rng).mean(axis=2) for _ in range(10)], axis=0)
    true = np.array([np.corrcoef(row, truth)[0, 1] for row in expected])
    may = ~np.eye(models, dtype=np.bool_)
    said = _verdicts(samples, np.linspace(1.2, -0.2, models), rng)
    strata = [(int(c) % REGIONS, int(t)) for c, t in zip(country, topic, strict=True)]
    said[~np.broadcast_to(may.T[:, :, None, None], said.shape)] = np.nan
    return Population(FullAudit(CompleteAudit(samples, said, may, truth, strata), country, topic), true)


def _said(centre: Floats, wavering: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Scores as models give them: in tenths, between the ends."""
    drawn: Floats = np.clip(centre[:, :, None] + wavering[:, :, None] * rng.normal(size=(*centre.shape, k)), -1, 1)
    return drawn.round(1)


def _verdicts(samples: Floats, quality: Floats, rng: np.random.Generator) -> NDArray[np.float32]:
    models = len(samples)
    leniency, taste = rng.normal(0, 0.8, (models, 1)), rng.normal(0, 0.3, (models, models))
    inclined = (quality + leniency + taste)[:, :, None, None] + rng.normal(0, 1, samples.shape)[None]
    return (rng.logistic(size=inclined.shape) < inclined).astype(np.float32)


def against_truth(drawn: Population, thrift: SamplingPlan, seed: int) -> tuple[float, float, float, float]:
    """Mean bias of r and of the corrected r, and shares of their intervals that hold the true r."""
    made = replay_audit(drawn.studied.replay_input, thrift, drawn.studied.conflict_threshold, seed)
    truth = drawn.studied.replay_input.truth
    raw = [pearson(s, truth) for s in made.scores]
    fixed = [
        corrected_pearson(s, truth, v, np.maximum(n, 1))
        for s, v, n in zip(made.scores, made.variances, made.counts, strict=True)
    ]
    (bias, held), (fixed_bias, fixed_held) = (_kept(rows, drawn.r) for rows in (raw, fixed))
    return bias, fixed_bias, held, fixed_held


def _kept(rows: Sequence[Correlation | CorrectedCorrelation], true: Floats) -> tuple[float, float]:
    """Mean error of r, and the share of intervals that hold the true one."""
    pairs = list(zip(rows, true.tolist(), strict=True))
    error = [row.r - r for row, r in pairs if row.r is not None]
    held = [row.ci_low <= r <= row.ci_high for row, r in pairs if row.ci_low is not None and row.ci_high is not None]
    return float(np.mean(error)), float(np.mean(held))


def _mean_row(rows: list[SamplingPlanRow]) -> SamplingPlanRow:
    values = {
        name: float(np.mean([getattr(row, name) for row in rows]))
        for name in SamplingPlanRow.model_fields
        if name != "name" and getattr(rows[0], name) is not None
    }
    return rows[0].model_copy(update=values)


def stopping(runs: int = 2000, cells: int = 1357) -> list[str]:
    """What looking at the interval again and again does to it: cells drawn independently, with a known r of all."""
    lines = [
        "| true r | width aimed at | cells asked | bias of r | intervals that hold it | of as many cells, not chosen |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for r, width in ((0.3, 0.2), (0.6, 0.1), (0.6, 0.2), (0.9, 0.05)):
        rng = np.random.default_rng(int(1000 * (r + width)))
        found = [_stopped(rng, r, width, cells) for _ in range(runs)]
        n, bias, held, plain = np.mean(found, axis=0)
        lines.append(f"| {r} | {width} | {n:.0f} | {bias:+.4f} | {100 * held:.1f}% | {100 * plain:.1f}% |")
    return [f"Stopping by the width of Fisher's interval, {runs} runs each, of at most {cells} cells:", "", *lines]


def _stopped(rng: np.random.Generator, r: float, width: float, cells: int) -> tuple[float, float, bool, bool]:
    """Cells asked, error of r, whether the interval holds it, and whether that of other cells, as many, does."""
    truth, other = rng.normal(size=(2, cells))
    said, others = (r * t + np.sqrt(1 - r * r) * rng.normal(size=cells) for t in (truth, other))
    n = next_interim_look(0, cells)
    while n < cells and not is_narrow([said[:n]], truth[:n], width):
        n = next_interim_look(n, cells)
    found, plain = pearson(said[:n], truth[:n]), pearson(others[:n], other[:n])
    held = [(c.ci_low or -1) <= r <= (c.ci_high or 1) for c in (found, plain)]
    return n, (found.r or 0.0) - r, held[0], held[1]


def main() -> None:
    """Print the table, and put it into the page."""
    populations, models, countries = (int(a) for a in (*sys.argv[1:], *("6", "20", "59")[len(sys.argv) - 1 :]))
    chosen = [SamplingPlan("everything"), *list_sampling_plans(models, SAMPLES)]
    drawn = (population(seed, models, countries) for seed in range(populations))
    tables: list[list[SamplingPlanRow]] = []
    truths: list[list[tuple[float, ...]]] = []
    began = time.perf_counter()
    for seed, one in enumerate(drawn):
        tables.append(compare_sampling_plans(one.studied, chosen, seed, n_draws=2))
        truths.append([against_truth(one, thrift, seed) for thrift in chosen])
        print(f"population {seed + 1} of {populations}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    beside = [f"| {' | '.join(STUDY)} |", f"|{'---|' * len(STUDY)}"]
    known = [f"| {' | '.join([STUDY[0], *TRUTH])} |", f"|{'---|' * (1 + len(TRUTH))}"]
    for i in range(len(chosen)):
        row = _mean_row([table[i] for table in tables])
        bias, fixed, held, held_fixed = np.mean([truth[i] for truth in truths], axis=0)
        told = (f"{bias:+.4f}", f"{fixed:+.4f}", f"{100 * held:.0f}%", f"{100 * held_fixed:.0f}%")
        beside.append(f"| {' | '.join(format_plan_row(row))} |")
        known.append(f"| {' | '.join([row.name, *told])} |")
    about = (
        f"{populations} populations of {models} models over {countries} countries and {TOPICS} topics, {SAMPLES} "
        "samples a cell, every model judged by all others; means over models and populations."
    )
    table = "\n".join([BEGIN, "", about, "", *beside, "", WHOLE, "", *known, "", *stopping(), "", END])
    print(table)
    if PAGE.exists() and len(sys.argv) == 1:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    main()
