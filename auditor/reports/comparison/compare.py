"""Series of scores side by side: what changed, where, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics.bootstrap import MAE, PEARSON, Statistic, holm
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.paired_errors import PairedError, error_bounds, paired_error
from auditor.reports.agreement.section import MAX_COVERAGE_GAP
from auditor.reports.comparison.resolutions import settlements
from auditor.reports.comparison.schema import Change, Comparison, DifferencePart, PairPart, SeriesPart
from auditor.reports.comparison.series_pairs import Pair, Series, Target, pairs_of
from auditor.reports.comparison.verdict_comparison import LISTED, between_judges, same_judges
from auditor.reports.estimate_conversion import STRETCHED, is_stretched, resampled, unmeasured
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Floats
from auditor.storage.database import Database
from auditor.surveys.regions import grouping_of

LEVEL = 0.05
NO_DISTANCE = DifferencePart(
    name="all",
    first=None,
    second=None,
    difference=unmeasured(STRETCHED),
    p_value=None,
    p_holm=None,
    change="not measurable",
)
"""Of series that can agree with people, but be at no distance from them."""


@dataclass(frozen=True)
class _Shared:
    """Two series over the cells that both were asked about with the same people's score; nan where there is none."""

    first: Floats
    second: Floats
    truth: Floats
    cells: Sequence[Cell]
    differs: int

    @property
    def both(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.first) & ~np.isnan(self.second)

    def table(self) -> tuple[Floats, Floats, Floats, NDArray[np.str_], NDArray[np.str_]]:
        countries, topics = (np.array([c[i] for c in self.cells], dtype=np.str_) for i in (0, 1))
        return self.first, self.second, self.truth, countries, topics


def compare(
    db: Database,
    targets: Sequence[Target],
    *,
    methods: Sequence[str] = (),
    every: bool = False,
    judges: Sequence[str] = (),
    listed: int = LISTED,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Comparison:
    """Compare series of scores on the cells that both of a pair have.

    Args:
        targets: see `comparison_series.pairs_of`.
        methods: only scores of these; none is all.
        every: all pairs of targets, not only those with the first.
        judges: two judges whose verdicts are compared on the same traces; then one audit is enough.
        listed: verdict flips, and conflicts that were settled otherwise, that are listed for a pair.
        renamed: models that have another name in the audits after the first: old name to new.

    Raises:
        StorageError: there is no such audit.
        UsageError: nothing can be paired.
    """
    told = between_judges(db, targets, judges, listed) if judges else []
    pairs = [] if judges and len(targets) == 1 else pairs_of(db, targets, methods, every=every, renamed=renamed)
    found = _over_pairs([_pair(db, pair, listed) for pair in pairs])
    corrected = [_corrected(found, name) for name in ("pearson_r", "mae")]
    series = {s.label: s for pair in pairs for s in pair}.values()
    return Comparison(
        auditor=metadata.version("auditor"),
        survey=", ".join(dict.fromkeys(s.survey.title for s in series)),
        series=[_series(s) for s in series],
        pairs=[
            part.model_copy(update={"pearson_r": r, "mae": error})
            for part, r, error in zip(found, *corrected, strict=True)
        ],
        judges=told,
        settlements=settlements(db, pairs, renamed, listed),
        tests=len(pairs),
    )


def _series(s: Series) -> SeriesPart:
    return SeriesPart(
        label=s.label,
        audit=s.audit,
        model=s.model,
        method=s.method,
        complete=s.complete,
        asked=len(s.truth),
        scored=len(s.scores),
    )


def _pair(db: Database, pair: Pair, listed: int) -> PairPart:
    first, second = pair
    shared = _shared(first, second)
    both = shared.both
    kept = [cell for cell, yes in zip(shared.cells, both, strict=True) if yes]
    no_distance = is_stretched(first.method) or is_stretched(second.method)
    return PairPart(
        first=first.label,
        second=second.label,
        shared=int(both.sum()),
        only_first=int((~np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        only_second=int((np.isnan(shared.first) & ~np.isnan(shared.second)).sum()),
        neither=int((np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        truth_differs=shared.differs,
        countries=len({c.country for c in kept}),
        topics=len({c.topic for c in kept}),
        pearson_r=_overall("all", PEARSON, shared, larger_is_better=True),
        mae=NO_DISTANCE if no_distance else _overall("all", MAE, shared, larger_is_better=False),
        bounds=None if no_distance else _bounds(shared),
        regions=[] if no_distance else _regions(first, shared),
        by_country=[] if no_distance else _places(shared, lambda cell: cell.country),
        by_topic=[] if no_distance else _places(shared, lambda cell: cell.topic),
        verdicts=same_judges(db, first, second, listed),
    )


def _shared(first: Series, second: Series) -> _Shared:
    ones, others = first.truth, second.truth
    common = [cell for cell in ones if cell in others]
    cells = [cell for cell in common if abs(ones[cell] - others[cell]) < 1e-9]
    truth = np.array([ones[cell] for cell in cells], dtype=np.float64)
    return _Shared(first.values(cells), second.values(cells), truth, cells, len(common) - len(cells))


def _bounds(shared: _Shared) -> tuple[float, float] | None:
    shares = [float(np.mean(~np.isnan(v))) if len(v) else 0.0 for v in (shared.first, shared.second)]
    if abs(shares[0] - shares[1]) <= MAX_COVERAGE_GAP:
        return None
    return error_bounds(shared.first, shared.second, shared.truth)


# --- differences ------------------------------------------------------------------------------------------------


def _overall(name: str, statistic: Statistic, shared: _Shared, *, larger_is_better: bool) -> DifferencePart:
    first, second, truth, countries, topics = shared.table()
    found = paired_jackknife(statistic, second, first, truth, countries, topics)
    one, other = (_value(statistic, v[shared.both], truth[shared.both]) for v in (first, second))
    return _difference(name, one, other, resampled(found), found.p_value, larger_is_better=larger_is_better)


def _value(statistic: Statistic, scores: Floats, truth: Floats) -> float | None:
    value = float(statistic.value(statistic.moments(scores, truth).sum(axis=0, keepdims=True))[0])
    return None if np.isnan(value) else value


def _regions(first: Series, shared: _Shared) -> list[DifferencePart]:
    grouping = grouping_of(first.survey)
    found = []
    for region in grouping.regions:
        inside = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if inside:
            part = _Shared(
                shared.first[inside], shared.second[inside], shared.truth[inside], [shared.cells[i] for i in inside], 0
            )
            found.append(_overall(region.name, MAE, part, larger_is_better=False))
    return found


def _places(shared: _Shared, name_of: Callable[[Cell], str]) -> list[DifferencePart]:
    """Differences of MAE by country or topic, those that got worst first."""
    names = np.array([name_of(cell) for cell in shared.cells], dtype=np.str_)
    found = []
    for name in dict.fromkeys(names.tolist()):
        inside = (names == name) & shared.both
        a, b, truth = shared.first[inside], shared.second[inside], shared.truth[inside]
        ends = [float(np.abs(v - truth).mean()) if len(v) else None for v in (a, b)]
        tested = paired_error(a, b, truth)
        found.append(_difference(name, ends[0], ends[1], _estimate(tested), tested.p_value, larger_is_better=False))
    return sorted(found, key=lambda part: -(part.difference.value or 0.0))


def _estimate(tested: PairedError) -> Estimate:
    return Estimate(value=tested.value, n=tested.n, ci_low=tested.ci_low, ci_high=tested.ci_high, reason=tested.reason)


def _difference(
    name: str,
    first: float | None,
    second: float | None,
    difference: Estimate,
    p: float | None,
    *,
    larger_is_better: bool,
) -> DifferencePart:
    change = _change(difference, p, larger_is_better)
    return DifferencePart(
        name=name, first=first, second=second, difference=difference, p_value=p, p_holm=p, change=change
    )


def _adjusted(parts: Sequence[DifferencePart], *, larger_is_better: bool) -> list[DifferencePart]:
    """With p-values corrected for the number of these."""
    adjusted = holm([np.nan if part.p_value is None else part.p_value for part in parts])
    return [
        part
        if np.isnan(p)
        else part.model_copy(
            update={"p_holm": float(p), "change": _change(part.difference, float(p), larger_is_better)}
        )
        for part, p in zip(parts, adjusted, strict=True)
    ]


def _over_pairs(pairs: Sequence[PairPart]) -> list[PairPart]:
    """With the regions, the countries and the topics of all pairs corrected together, each kind as one family."""
    told: list[dict[str, list[DifferencePart]]] = [{} for _ in pairs]
    for kind in ("regions", "by_country", "by_topic"):
        parts: list[list[DifferencePart]] = [getattr(pair, kind) for pair in pairs]
        adjusted = iter(_adjusted([part for of_pair in parts for part in of_pair], larger_is_better=False))
        for of_pair, update in zip(parts, told, strict=True):
            update[kind] = list(islice(adjusted, len(of_pair)))
    return [pair.model_copy(update=update) for pair, update in zip(pairs, told, strict=True)]


def _corrected(pairs: Sequence[PairPart], name: str) -> list[DifferencePart]:
    return _adjusted([getattr(part, name) for part in pairs], larger_is_better=name == "pearson_r")


def _change(difference: Estimate, p: float | None, larger_is_better: bool) -> Change:
    if difference.value is None:
        return "not measurable"
    if p is None or p >= LEVEL:
        return "not told apart"
    return "better" if (difference.value > 0) == larger_is_better else "worse"
