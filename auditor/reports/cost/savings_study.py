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
from auditor.metrics.savings import FullData, Replayed, Thrift, peer_rates, replay
from auditor.metrics.tiers import model_tiers
from auditor.reports.measurement_schema import Part
from auditor.reports.pages.number_format import count, number, share
from auditor.reports.pages.report_page import Chapter, Grid, Page
from auditor.reports.report_source import Floats, load, refuse_task
from auditor.storage import results
from auditor.storage.database import Database
from auditor.surveys.regions import grouping_of

DRAWS = 5
"""Designs drawn for each way of saving; what is reported is their mean."""
REPLICATES = 500
"""Resamples behind tiers: a study makes many."""
CLOSE = 0.01
"""Difference of r within which a conclusion is the same."""
THRESHOLD = 0.38


@dataclass(frozen=True)
class Studied:
    """An audit of which everything was asked, and where its cells lie."""

    data: FullData
    countries: NDArray[np.intp]
    topics: NDArray[np.intp]
    threshold: float = THRESHOLD


class ThriftRow(Part):
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


class Study(Part):
    """Ways of asking less, compared with asking everything."""

    audit: str
    models: int
    cells: int
    samples: int
    full: int
    """Calls of the full design: direct answers and verdicts."""
    rows: list[ThriftRow]


def thrifts(models: int, samples: int, target_width: float = 0.1) -> list[Thrift]:
    """The ways that are compared, each alone, and those together that keep conclusions."""
    some = max(2, round(0.4 * (models - 1)))
    found = [Thrift(f"{some} judges a trace", judges_per_trace=some), Thrift("adaptive panels", adaptive=True)]
    if samples > 3:
        found += [Thrift(f"tolerance {t:g}", tolerance=t) for t in (0.02, 0.05, 0.1)]
    found += [Thrift(f"target width {target_width:g}", target_width=target_width)]
    tolerance = 0.02 if samples > 3 else None
    found += [Thrift(f"{some} judges and tolerance 0.02", judges_per_trace=some, tolerance=tolerance)]
    found += [
        Thrift("all of these", judges_per_trace=some, adaptive=True, tolerance=tolerance, target_width=target_width)
    ]
    return found if models > 2 else [t for t in found if not t.judges_per_trace and not t.adaptive]


def compare(studied: Studied, chosen: Sequence[Thrift], seed: int, draws: int = DRAWS) -> list[ThriftRow]:
    """Each way of asking less beside asking everything."""
    full = replay(studied.data, Thrift("everything"), studied.threshold, seed)
    first = _figures(studied, full, seed)
    rows = []
    for thrift in chosen:
        made = [replay(studied.data, thrift, studied.threshold, derive_seed(seed, i)) for i in range(draws)]
        found = [_beside(first, _figures(studied, one, seed)) for one in made]
        mean = {key: _mean([f[key] for f in found]) for key in found[0]}
        direct, review = (float(np.mean([getattr(m, stage) for m in made])) for stage in ("direct", "review"))
        rows.append(
            ThriftRow.model_validate(
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
class _Figures:
    r: Floats
    corrected: Floats
    tiers: NDArray[np.intp] | None
    peers: Floats
    winners: NDArray[np.int8]


def _figures(studied: Studied, made: Replayed, seed: int) -> _Figures:
    truth = studied.data.truth
    found = model_tiers(
        PEARSON, list(made.scores), truth, studied.countries, studied.topics,
        larger_is_better=True, replicates=REPLICATES, seed=seed,
    )  # fmt: skip
    corrected = [
        corrected_pearson(s, truth, v, np.maximum(n, 1)).r
        for s, v, n in zip(made.scores, made.variances, made.counts, strict=True)
    ]
    return _Figures(
        r=np.array([_or_nan(pearson(s, truth).r) for s in made.scores]),
        corrected=np.array([_or_nan(r) for r in corrected]),
        tiers=found.tiers,
        peers=peer_rates(made.heard),
        winners=made.winners,
    )


def _beside(full: _Figures, part: _Figures) -> dict[str, float]:
    r, corrected, peers = part.r - full.r, part.corrected - full.corrected, part.peers - full.peers
    same = np.nan if full.tiers is None or part.tiers is None else float((full.tiers == part.tiers).mean())
    return {
        "shift": _or_empty(np.mean, r),
        "largest": _or_empty(np.max, np.abs(r)),
        "corrected_shift": _or_empty(np.mean, corrected),
        "corrected_largest": _or_empty(np.max, np.abs(corrected)),
        "same_tiers": same,
        "peers": _or_empty(np.max, np.abs(peers)),
        "same_winners": float((part.winners == full.winners).mean()) if full.winners.size else np.nan,
    }


def _or_empty(of: Callable[[Floats], float], values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(of(known)) if known.size else np.nan


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else None


# --- an audit ---------------------------------------------------------------------------------------------------


def study(db: Database, name: str, target_width: float = 0.1) -> Study:
    """What asking less would have changed in an audit; nothing is asked.

    Raises:
        StorageError: there is no such audit.
        UsageError: not everything was asked in it.
    """
    studied, config = _load(db, name)
    models, cells, k = studied.data.samples.shape
    full = replay(studied.data, Thrift("everything"), studied.threshold, config.seed)
    chosen = thrifts(models, k, target_width)
    rows = compare(studied, chosen, config.seed)
    return Study(audit=name, models=models, cells=cells, samples=k, full=full.direct + full.review, rows=rows)


def _load(db: Database, name: str) -> tuple[Studied, AuditConfig]:
    source = load(db, name)
    refuse_task(name, source.survey, "the experiment `savings`")
    config = source.config
    if config is None or not config.probes.direct or len(config.languages) > 1:
        raise UsageError(f"audit '{name}' has no direct samples in one language.", "Name one that was run with them.")
    if config.is_thinned or config.direct.is_open_ended or config.panel.adaptive:
        raise UsageError(f"audit '{name}' asked less than everything.", "Name one without any of these savings.")
    if len(config.models) < 2:
        raise UsageError(f"audit '{name}' has one model only.", "Name one with several to compare.")
    cells = [cell for cell in source.cells if cell in source.survey.scores]
    place, k = {cell: i for i, cell in enumerate(cells)}, config.direct.samples
    column = {m.name: i for i, m in enumerate(config.models)}
    row = {j.name: i for i, j in enumerate(config.judge_models)}
    samples = np.full((len(column), len(cells), k), np.nan)
    for t in results.traces(db, source.audit.id):
        if t.outcome is Outcome.OK and t.score is not None:
            samples[column[t.model], place[t.cell], t.sample] = t.score
    said = np.full((len(row), *samples.shape), np.nan, dtype=np.float32)
    ballots = source.ballots
    keys = [(column[model], place[Cell(country, topic)], sample) for model, country, topic, sample in ballots.traces]
    judges = np.array([row[name] for name in ballots.judges], dtype=np.intp)
    said[judges[ballots.judge], *np.array(keys, dtype=np.intp).reshape(-1, 3)[ballots.trace].T] = ballots.valid
    may = np.zeros((len(column), len(row)), dtype=np.bool_)
    for model, i in column.items():
        may[i, [row[j.name] for j in config.judges_of(model)]] = True
    region = grouping_of(source.survey).by_country
    strata = [(region.get(c.country), c.topic) for c in cells]
    truth = np.array([source.survey.scores[c] for c in cells])
    names = [sorted({getattr(c, of) for c in cells}) for of in ("country", "topic")]
    at = [
        np.array([known.index(getattr(c, of)) for c in cells])
        for known, of in zip(names, ("country", "topic"), strict=True)
    ]
    chosen = config.conflicts.threshold
    threshold = THRESHOLD if chosen == "auto" else chosen
    return Studied(FullData(samples, said, may, truth, strata), at[0], at[1], threshold), config


# --- as a page --------------------------------------------------------------------------------------------------


COLUMNS = [
    "Way of asking less", "Direct", "Verdicts", "Calls", "r: mean shift", "r: largest", "corrected r: mean shift",
    "corrected r: largest", "Same tier", "Peer agreement: largest", "Conflicts alike",
]  # fmt: skip


def cells_of(row: ThriftRow) -> list[str]:
    """One row of the table, as text."""

    def part(value: float | None) -> str:
        return "–" if value is None else share(round(1000 * value), 1000)

    shifts = (row.shift, row.largest, row.corrected_shift, row.corrected_largest)
    return [
        row.name,
        *map(part, (row.direct, row.review, row.calls)),
        *(number(value, 3) for value in shifts),
        part(row.same_tiers),
        number(row.peers, 3),
        part(row.same_winners),
    ]


def page_of(found: Study) -> Page:
    """The study as a page."""
    kept = [row for row in found.rows if max(row.largest, row.corrected_largest or 0.0) <= CLOSE]
    least = min(kept, key=lambda row: row.calls, default=None)
    answer = "None of these ways keeps every model's r within 0.01."
    if least is not None:
        calls = share(round(1000 * least.calls), 1000)
        answer = f"With {least.name}, every model's r stays within 0.01, for {calls} of the calls."
    told = (
        f"{count(found.full)} calls of the full design, replayed as if less had been asked; each row is the mean of "
        f"{DRAWS} draws. Calls of adaptive panels are at most those given. Nothing was asked."
    )
    grid = Grid("Ways of asking less, beside asking everything.", COLUMNS, [cells_of(row) for row in found.rows])
    return Page(
        kicker="Asking less",
        title=found.audit,
        subtitle=f"{found.models} models, {found.cells} cells, {found.samples} samples",
        answer=answer,
        warnings=[],
        chapters=[Chapter("What would have changed", [told], grids=[grid])],
    )
