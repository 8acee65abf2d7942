"""Savings study: replay a complete audit under smaller designs, and compare its conclusions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, derive_seed
from auditor.errors import UsageError
from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.people.alignment import PEARSON
from auditor.metrics.people.savings import (
    CompleteAudit,
    ReplayedAudit,
    SamplingPlan,
    peer_agreement_rates,
    replay_audit,
)
from auditor.metrics.people.survey_error import crossed_corrected
from auditor.metrics.people.tiers import model_tiers
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.document import Column
from auditor.storage import results
from auditor.storage.database import Database
from auditor.surveys.regions import get_grouping

N_DRAWS = 5
"""Random designs drawn for each sampling plan; their mean is reported."""
MAX_R_SHIFT = 0.01
"""Largest difference of r at which a plan counts as keeping the conclusions."""
DEFAULT_CONFLICT_THRESHOLD = 0.38


@dataclass(frozen=True)
class FullAudit:
    """A complete audit as input of the replay, with the country and topic of each cell.

    Attributes:
        country_index: country of each cell as a number, shape (cells,).
        topic_index: topic of each cell as a number, shape (cells,).
        conflict_threshold: smallest difference of two scores that is a conflict.
    """

    replay_input: CompleteAudit
    country_index: NDArray[np.intp]
    topic_index: NDArray[np.intp]
    conflict_threshold: float = DEFAULT_CONFLICT_THRESHOLD


class SamplingPlanRow(ReportModel):
    """One sampling plan compared with the full design: means over several random draws of the plan."""

    name: Annotated[str, Column("Sampling plan")]
    direct: Annotated[float, Column("Direct answers", digits=1, style="percent")]
    """Share of the full design's direct answers that are asked for."""
    review: Annotated[float | None, Column("Verdicts", digits=1, style="percent")]
    """Share of the full design's verdicts; null without judges."""
    calls: Annotated[float, Column("All calls", digits=1, style="percent")]
    """Share of direct answers and verdicts together."""
    shift: Annotated[float, Column("r, mean shift", digits=3, style="signed", emphasis=True)]
    """Mean over models of r minus that of the full audit."""
    largest: Annotated[float, Column("r, largest change", digits=3, emphasis=True)]
    """Largest difference of a model's r from that of the full audit, either way."""
    corrected_shift: Annotated[float | None, Column("Corrected r, mean shift", digits=3, style="signed")]
    corrected_largest: Annotated[float | None, Column("Corrected r, largest change", digits=3)]
    """As `shift` and `largest`, for r corrected for sampling noise; null where no model has one."""
    same_tiers: Annotated[float | None, Column("Same tier", digits=1, style="percent")]
    """Share of the models that stay in the same tier by r; null without tiers, as with few cells."""
    peers: Annotated[float | None, Column("Share of VALID, largest change", digits=3)]
    """Largest difference of a model's peer agreement, either way; null without judges."""
    same_winners: Annotated[float | None, Column("Same conflict outcome", digits=1, style="percent")]
    """Share of the full audit's conflicts with the same outcome (same winner, or open); null without conflicts or
    verdicts."""


class SavingsStudy(ReportModel):
    """Sampling plans compared with the full design."""

    audit: str
    models: int
    cells: int
    samples: int
    full: int
    """Calls of the full design: direct answers and verdicts."""
    rows: list[SamplingPlanRow]


def list_sampling_plans(n_models: int, n_samples: int, target_width: float = 0.1) -> list[SamplingPlan]:
    """List the sampling plans to compare: each saving alone, and combinations.

    Without a third model there are no plans with fewer judges per trace or adaptive panels, and with three samples or
    fewer none with a tolerance.
    """
    # Four in ten of the other models, but at least two.
    n_judges = max(2, round(0.4 * (n_models - 1)))
    plans = [
        SamplingPlan(f"{n_judges} judges a trace", judges_per_trace=n_judges),
        SamplingPlan("adaptive panels", adaptive=True),
    ]
    tolerances = (0.02, 0.05, 0.1) if n_samples > 3 else ()
    plans += [SamplingPlan(f"tolerance {tolerance:g}", tolerance=tolerance) for tolerance in tolerances]
    plans += [SamplingPlan(f"target width {target_width:g}", target_width=target_width)]
    tolerance = min(tolerances, default=None)
    if tolerance is not None:
        name = f"{n_judges} judges and tolerance {tolerance:g}"
        plans += [SamplingPlan(name, judges_per_trace=n_judges, tolerance=tolerance)]
    plans += [
        SamplingPlan(
            "all of these", judges_per_trace=n_judges, adaptive=True, tolerance=tolerance, target_width=target_width
        )
    ]
    return plans if n_models > 2 else [plan for plan in plans if not plan.judges_per_trace and not plan.adaptive]


def compare_sampling_plans(
    full_audit: FullAudit, plans: Sequence[SamplingPlan], seed: int, n_draws: int = N_DRAWS
) -> list[SamplingPlanRow]:
    """Replay the audit under each plan, and compare costs and conclusions with the full design.

    Args:
        seed: of the draws.
        n_draws: random designs drawn for each plan.
    """
    full_replay = replay_audit(full_audit.replay_input, SamplingPlan("everything"), full_audit.conflict_threshold, seed)
    full_conclusions = _compute_conclusions(full_audit, full_replay)
    rows = []
    for plan in plans:
        replays = [
            replay_audit(full_audit.replay_input, plan, full_audit.conflict_threshold, derive_seed(seed, i))
            for i in range(n_draws)
        ]
        differences = [
            _compare_conclusions(full_conclusions, _compute_conclusions(full_audit, replay)) for replay in replays
        ]
        mean_differences = {
            # The keys are fields of `SamplingPlanRow`.
            key: _mean_of_known([difference[key] for difference in differences])
            for key in differences[0]
        }
        direct, review = (
            float(np.mean([getattr(replay, stage) for replay in replays])) for stage in ("direct", "review")
        )
        rows.append(
            SamplingPlanRow.model_validate(
                {
                    "name": plan.name,
                    "direct": direct / full_replay.direct,
                    "review": review / full_replay.review if full_replay.review else None,
                    "calls": (direct + review) / (full_replay.direct + full_replay.review),
                    **mean_differences,
                }
            )
        )
    return rows


@dataclass(frozen=True)
class _Conclusions:
    """Conclusions of one replay: one value per model; of `winners`, one per conflict of the full audit."""

    pearson_r: FloatArray
    corrected_r: FloatArray
    tiers: NDArray[np.intp] | None
    peer_agreement: FloatArray
    winners: NDArray[np.int8]


def _compute_conclusions(full_audit: FullAudit, replayed: ReplayedAudit) -> _Conclusions:
    """Compute the conclusions of one replay: r, tiers, peer agreement, and the winners of conflicts."""
    truth, places = full_audit.replay_input.truth, (full_audit.country_index, full_audit.topic_index)
    ranking = model_tiers(
        PEARSON, list(replayed.scores), truth, *places, larger_is_better=True,
    )  # fmt: skip
    corrected_r = [
        crossed_corrected(scores, truth, variances, np.maximum(counts, 1), *places).value
        for scores, variances, counts in zip(replayed.scores, replayed.variances, replayed.counts, strict=True)
    ]
    return _Conclusions(
        pearson_r=np.array([_none_to_nan(pearson(scores, truth).value) for scores in replayed.scores]),
        corrected_r=np.array([_none_to_nan(r) for r in corrected_r]),
        tiers=ranking.tiers,
        peer_agreement=peer_agreement_rates(replayed.counted_verdicts),
        winners=replayed.winners,
    )


def _compare_conclusions(full: _Conclusions, reduced: _Conclusions) -> dict[str, float]:
    """Differences of the reduced from the full audit, by field of `SamplingPlanRow`; nan where undefined."""
    r_change, corrected_change, peer_change = (
        reduced.pearson_r - full.pearson_r,
        reduced.corrected_r - full.corrected_r,
        reduced.peer_agreement - full.peer_agreement,
    )
    same_tiers = np.nan if full.tiers is None or reduced.tiers is None else float((full.tiers == reduced.tiers).mean())
    # Without a verdict all conflicts stay open, whatever is asked.
    has_outcomes = full.winners.size and not np.isnan(full.peer_agreement).all()
    return {
        "shift": _nan_if_empty(np.mean, r_change),
        "largest": _nan_if_empty(np.max, np.abs(r_change)),
        "corrected_shift": _nan_if_empty(np.mean, corrected_change),
        "corrected_largest": _nan_if_empty(np.max, np.abs(corrected_change)),
        "same_tiers": same_tiers,
        "peers": _nan_if_empty(np.max, np.abs(peer_change)),
        "same_winners": float((reduced.winners == full.winners).mean()) if has_outcomes else np.nan,
    }


def _nan_if_empty(statistic: Callable[[FloatArray], float], values: FloatArray) -> float:
    """Apply a statistic to the values that are not nan; nan where all are."""
    known = values[~np.isnan(values)]
    return float(statistic(known)) if known.size else np.nan


def _none_to_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _mean_of_known(values: Sequence[float]) -> float | None:
    """Mean of the values that are not nan; None where all are."""
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else None


# --- an audit ---------------------------------------------------------------------------------------------------


def run_savings_study(db: Database, source: ReportSource, target_width: float = 0.1) -> SavingsStudy:
    """Replay a stored audit of a survey under smaller designs; no model is asked anything.

    Raises:
        UsageError: the audit is not complete: some samples or verdicts were not asked for.
    """
    full_audit, config = _load_full_audit(db, source)
    n_models, n_cells, n_samples = full_audit.replay_input.samples.shape
    full_replay = replay_audit(
        full_audit.replay_input, SamplingPlan("everything"), full_audit.conflict_threshold, config.seed
    )
    plans = list_sampling_plans(n_models, n_samples, target_width)
    rows = compare_sampling_plans(full_audit, plans, config.seed)
    return SavingsStudy(
        audit=source.audit.name,
        models=n_models,
        cells=n_cells,
        samples=n_samples,
        full=full_replay.direct + full_replay.review,
        rows=rows,
    )


def _load_full_audit(db: Database, source: ReportSource) -> tuple[FullAudit, AuditConfig]:
    """Load an audit's samples and verdicts as arrays for the replay.

    Raises:
        UsageError: the audit is not complete, or has a single model or several languages.
    """
    audit_name, config = source.audit.name, source.config
    if config is None or not config.probes.direct or len(config.languages) > 1:
        raise UsageError(
            f"audit '{audit_name}' has no scores stated by models (probe direct) in a single language.",
            "Name an audit that was run with the probe direct, in one language.",
        )
    if config.review_varies_by_trace or config.direct.is_open_ended or config.panel.adaptive:
        raise UsageError(
            f"audit '{audit_name}' already asked fewer questions than it could, so the savings cannot be studied.",
            " Name an audit that was run without the settings judges_per_trace, adaptive, tolerance and target_width.",
        )
    if len(config.models) < 2:
        raise UsageError(f"audit '{audit_name}' has only one model.", "Name an audit of several models.")
    cells = [cell for cell in source.cells if cell in source.survey.scores]
    cell_index, n_samples = {cell: i for i, cell in enumerate(cells)}, config.direct.samples
    model_index = {model.name: i for i, model in enumerate(config.models)}
    judge_index = {judge.name: i for i, judge in enumerate(config.judge_models)}
    samples = np.full((len(model_index), len(cells), n_samples), np.nan)
    for trace in results.load_traces(db, source.audit.id):
        if trace.outcome is Outcome.OK and trace.score is not None:
            samples[model_index[trace.model], cell_index[trace.cell], trace.sample] = trace.score
    # Shape (judges, models, cells, samples).
    verdicts = np.full((len(judge_index), *samples.shape), np.nan, dtype=np.float32)
    votes = source.votes
    sample_indices = [
        (model_index[model], cell_index[Cell(country, topic)], sample) for model, country, topic, sample in votes.traces
    ]
    judge_rows = np.array([judge_index[name] for name in votes.judges], dtype=np.intp)
    verdicts[
        judge_rows[votes.judge_index], *np.array(sample_indices, dtype=np.intp).reshape(-1, 3)[votes.trace_index].T
    ] = votes.valid
    may_judge = np.zeros((len(model_index), len(judge_index)), dtype=np.bool_)
    for model, i in model_index.items():
        may_judge[i, [judge_index[judge.name] for judge in config.judges_of(model)]] = True
    region_by_country = get_grouping(source.survey).region_by_country
    strata = [(region_by_country.get(cell.country), cell.topic) for cell in cells]
    truth = np.array([source.survey.scores[cell] for cell in cells])
    # Country names and topic names, each sorted; `place_index` numbers the cells by each.
    place_names = [sorted({getattr(cell, place_kind) for cell in cells}) for place_kind in ("country", "topic")]
    place_index = [
        np.array([ordered_names.index(getattr(cell, place_kind)) for cell in cells])
        for ordered_names, place_kind in zip(place_names, ("country", "topic"), strict=True)
    ]
    configured = config.conflicts.threshold
    threshold = DEFAULT_CONFLICT_THRESHOLD if configured == "auto" else configured
    return FullAudit(
        CompleteAudit(samples, verdicts, may_judge, truth, strata), place_index[0], place_index[1], threshold
    ), config
