"""What asking less would have changed in an audit of which everything was asked: replayed from its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, derive_seed
from auditor.errors import UsageError
from auditor.metrics.attenuation import corrected_pearson
from auditor.metrics.bootstrap import PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.savings import CompleteAudit, ReplayedAudit, SamplingPlan, peer_agreement_rates, replay_audit
from auditor.metrics.tiers import model_tiers
from auditor.reports.measurement_schema import ReportModel
from auditor.reports.pages.number_format import format_count, format_number, format_percent
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage
from auditor.reports.report_source import FloatArray, load_source, require_survey_audit
from auditor.storage import results
from auditor.storage.database import Database
from auditor.surveys.regions import get_grouping

N_DRAWS = 5
"""Designs drawn for each way of saving; what is reported is their mean."""
N_RESAMPLES = 500
"""Resamples behind tiers: a study makes many."""
MAX_R_SHIFT = 0.01
"""Difference of r within which a conclusion is the same."""
DEFAULT_CONFLICT_THRESHOLD = 0.38


@dataclass(frozen=True)
class FullAudit:
    """An audit of which everything was asked, and where its cells lie."""

    replay_input: CompleteAudit
    country_index: NDArray[np.intp]
    topic_index: NDArray[np.intp]
    conflict_threshold: float = DEFAULT_CONFLICT_THRESHOLD


class SamplingPlanRow(ReportModel):
    """One way of asking less beside asking everything: means over several draws of it."""

    name: str
    direct: float
    """Share of the direct answers that are asked for."""
    review: float | None
    """Share of the verdicts; null where nobody judges."""
    calls: float
    """Share of both together."""
    shift: float
    """Of r: mean over models of r less that of the full audit."""
    largest: float
    """Largest difference of a model's r from that of the full audit, either way."""
    corrected_shift: float | None
    corrected_largest: float | None
    """As `shift` and `largest`, of r without sampling noise; null where no model has one."""
    same_tiers: float | None
    """Share of the models that are in the same tier by r; null where there are no tiers, as of few cells."""
    peers: float | None
    """Largest difference of a model's peer agreement; null where nobody judges."""
    same_winners: float | None
    """Share of the full audit's conflicts that its judges settle, or leave open, in the same way; null without any."""


class SavingsStudy(ReportModel):
    """Ways of asking less, compared with asking everything."""

    audit: str
    models: int
    cells: int
    samples: int
    full: int
    """Calls of the full design: direct answers and verdicts."""
    rows: list[SamplingPlanRow]


def list_sampling_plans(n_models: int, n_samples: int, target_width: float = 0.1) -> list[SamplingPlan]:
    """The ways that are compared, each alone, and those together that keep conclusions."""
    some = max(2, round(0.4 * (n_models - 1)))
    found = [
        SamplingPlan(f"{some} judges a trace", judges_per_trace=some),
        SamplingPlan("adaptive panels", adaptive=True),
    ]
    if n_samples > 3:
        found += [SamplingPlan(f"tolerance {t:g}", tolerance=t) for t in (0.02, 0.05, 0.1)]
    found += [SamplingPlan(f"target width {target_width:g}", target_width=target_width)]
    tolerance = 0.02 if n_samples > 3 else None
    found += [SamplingPlan(f"{some} judges and tolerance 0.02", judges_per_trace=some, tolerance=tolerance)]
    found += [
        SamplingPlan(
            "all of these", judges_per_trace=some, adaptive=True, tolerance=tolerance, target_width=target_width
        )
    ]
    return found if n_models > 2 else [t for t in found if not t.judges_per_trace and not t.adaptive]


def compare_sampling_plans(
    full_audit: FullAudit, plans: Sequence[SamplingPlan], seed: int, n_draws: int = N_DRAWS
) -> list[SamplingPlanRow]:
    """Each way of asking less beside asking everything."""
    full = replay_audit(full_audit.replay_input, SamplingPlan("everything"), full_audit.conflict_threshold, seed)
    first = _compute_conclusions(full_audit, full, seed)
    rows = []
    for thrift in plans:
        made = [
            replay_audit(full_audit.replay_input, thrift, full_audit.conflict_threshold, derive_seed(seed, i))
            for i in range(n_draws)
        ]
        found = [_compare_conclusions(first, _compute_conclusions(full_audit, one, seed)) for one in made]
        mean = {key: _mean_of_known([f[key] for f in found]) for key in found[0]}
        direct, review = (float(np.mean([getattr(m, stage) for m in made])) for stage in ("direct", "review"))
        rows.append(
            SamplingPlanRow.model_validate(
                {
                    "name": thrift.name,
                    "direct": direct / full.direct,
                    "review": review / full.review if full.review else None,
                    "calls": (direct + review) / (full.direct + full.review),
                    **mean,
                }
            )
        )
    return rows


@dataclass(frozen=True)
class _Conclusions:
    pearson_r: FloatArray
    corrected_r: FloatArray
    tiers: NDArray[np.intp] | None
    peer_agreement: FloatArray
    winners: NDArray[np.int8]


def _compute_conclusions(full_audit: FullAudit, replayed: ReplayedAudit, seed: int) -> _Conclusions:
    truth = full_audit.replay_input.truth
    found = model_tiers(
        PEARSON, list(replayed.scores), truth, full_audit.country_index, full_audit.topic_index,
        larger_is_better=True, replicates=N_RESAMPLES, seed=seed,
    )  # fmt: skip
    corrected = [
        corrected_pearson(s, truth, v, np.maximum(n, 1)).r
        for s, v, n in zip(replayed.scores, replayed.variances, replayed.counts, strict=True)
    ]
    return _Conclusions(
        pearson_r=np.array([_none_to_nan(pearson(s, truth).r) for s in replayed.scores]),
        corrected_r=np.array([_none_to_nan(r) for r in corrected]),
        tiers=found.tiers,
        peer_agreement=peer_agreement_rates(replayed.counted_verdicts),
        winners=replayed.winners,
    )


def _compare_conclusions(full: _Conclusions, reduced: _Conclusions) -> dict[str, float]:
    r, corrected, peers = (
        reduced.pearson_r - full.pearson_r,
        reduced.corrected_r - full.corrected_r,
        reduced.peer_agreement - full.peer_agreement,
    )
    same = np.nan if full.tiers is None or reduced.tiers is None else float((full.tiers == reduced.tiers).mean())
    return {
        "shift": _nan_if_empty(np.mean, r),
        "largest": _nan_if_empty(np.max, np.abs(r)),
        "corrected_shift": _nan_if_empty(np.mean, corrected),
        "corrected_largest": _nan_if_empty(np.max, np.abs(corrected)),
        "same_tiers": same,
        "peers": _nan_if_empty(np.max, np.abs(peers)),
        "same_winners": float((reduced.winners == full.winners).mean()) if full.winners.size else np.nan,
    }


def _nan_if_empty(statistic: Callable[[FloatArray], float], values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(statistic(known)) if known.size else np.nan


def _none_to_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _mean_of_known(values: Sequence[float]) -> float | None:
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else None


# --- an audit ---------------------------------------------------------------------------------------------------


def run_savings_study(db: Database, audit_name: str, target_width: float = 0.1) -> SavingsStudy:
    """What asking less would have changed in an audit; nothing is asked.

    Raises:
        StorageError: there is no such audit.
        UsageError: not everything was asked in it.
    """
    studied, config = _load_full_audit(db, audit_name)
    models, cells, k = studied.replay_input.samples.shape
    full = replay_audit(studied.replay_input, SamplingPlan("everything"), studied.conflict_threshold, config.seed)
    chosen = list_sampling_plans(models, k, target_width)
    rows = compare_sampling_plans(studied, chosen, config.seed)
    return SavingsStudy(
        audit=audit_name, models=models, cells=cells, samples=k, full=full.direct + full.review, rows=rows
    )


def _load_full_audit(db: Database, audit_name: str) -> tuple[FullAudit, AuditConfig]:
    source = load_source(db, audit_name)
    require_survey_audit(audit_name, source.survey, "the experiment `savings`")
    config = source.config
    if config is None or not config.probes.direct or len(config.languages) > 1:
        raise UsageError(
            f"audit '{audit_name}' has no direct samples in one language.", "Name one that was run with them."
        )
    if config.review_varies_by_trace or config.direct.is_open_ended or config.panel.adaptive:
        raise UsageError(f"audit '{audit_name}' asked less than everything.", "Name one without any of these savings.")
    if len(config.models) < 2:
        raise UsageError(f"audit '{audit_name}' has one model only.", "Name one with several to compare.")
    cells = [cell for cell in source.cells if cell in source.survey.scores]
    place, k = {cell: i for i, cell in enumerate(cells)}, config.direct.samples
    column = {m.name: i for i, m in enumerate(config.models)}
    row = {j.name: i for i, j in enumerate(config.judge_models)}
    samples = np.full((len(column), len(cells), k), np.nan)
    for t in results.load_traces(db, source.audit.id):
        if t.outcome is Outcome.OK and t.score is not None:
            samples[column[t.model], place[t.cell], t.sample] = t.score
    said = np.full((len(row), *samples.shape), np.nan, dtype=np.float32)
    ballots = source.votes
    keys = [(column[model], place[Cell(country, topic)], sample) for model, country, topic, sample in ballots.traces]
    judges = np.array([row[name] for name in ballots.judges], dtype=np.intp)
    said[judges[ballots.judge_index], *np.array(keys, dtype=np.intp).reshape(-1, 3)[ballots.trace_index].T] = (
        ballots.valid
    )
    may = np.zeros((len(column), len(row)), dtype=np.bool_)
    for model, i in column.items():
        may[i, [row[j.name] for j in config.judges_of(model)]] = True
    region = get_grouping(source.survey).by_country
    strata = [(region.get(c.country), c.topic) for c in cells]
    truth = np.array([source.survey.scores[c] for c in cells])
    names = [sorted({getattr(c, of) for c in cells}) for of in ("country", "topic")]
    at = [
        np.array([known.index(getattr(c, of)) for c in cells])
        for known, of in zip(names, ("country", "topic"), strict=True)
    ]
    chosen = config.conflicts.threshold
    threshold = DEFAULT_CONFLICT_THRESHOLD if chosen == "auto" else chosen
    return FullAudit(CompleteAudit(samples, said, may, truth, strata), at[0], at[1], threshold), config


# --- as a page --------------------------------------------------------------------------------------------------


TABLE_COLUMNS = [
    "Way of asking less", "Direct", "Verdicts", "Calls", "r: mean shift", "r: largest", "corrected r: mean shift",
    "corrected r: largest", "Same tier", "Peer agreement: largest", "Conflicts alike",
]  # fmt: skip


def format_plan_row(row: SamplingPlanRow) -> list[str]:
    """One row of the table, as text."""

    def part(value: float | None) -> str:
        return "–" if value is None else format_percent(round(1000 * value), 1000)

    shifts = (row.shift, row.largest, row.corrected_shift, row.corrected_largest)
    return [
        row.name,
        *map(part, (row.direct, row.review, row.calls)),
        *(format_number(value, 3) for value in shifts),
        part(row.same_tiers),
        format_number(row.peers, 3),
        part(row.same_winners),
    ]


def build_savings_page(study: SavingsStudy) -> ReportPage:
    """The study as a page."""
    kept = [row for row in study.rows if max(row.largest, row.corrected_largest or 0.0) <= MAX_R_SHIFT]
    least = min(kept, key=lambda row: row.calls, default=None)
    answer = "None of these ways keeps every model's r within 0.01."
    if least is not None:
        calls = format_percent(round(1000 * least.calls), 1000)
        answer = f"With {least.name}, every model's r stays within 0.01, for {calls} of the calls."
    told = (
        f"{format_count(study.full)} calls of the full design, replayed as if less had been asked; each row is the "
        f"mean of {N_DRAWS} draws. Calls of adaptive panels are at most those given. Nothing was asked."
    )
    grid = PageTable(
        "Ways of asking less, beside asking everything.", TABLE_COLUMNS, [format_plan_row(row) for row in study.rows]
    )
    return ReportPage(
        kicker="Asking less",
        title=study.audit,
        subtitle=f"{study.models} models, {study.cells} cells, {study.samples} samples",
        headline=answer,
        warnings=[],
        sections=[PageSection("What would have changed", [told], tables=[grid])],
    )
