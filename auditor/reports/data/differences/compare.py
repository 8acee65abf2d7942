"""Compare series of scores cell by cell: differences of r and MAE, with intervals and tests, and non-inferiority."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from itertools import islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from auditor.config import load_stored_config
from auditor.domain import Cell
from auditor.errors import UsageError
from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate, Tested
from auditor.metrics.intervals.missing_bounds import bounded_difference
from auditor.metrics.intervals.paired import paired_error
from auditor.metrics.intervals.two_way import UnitLabels, paired_jackknife
from auditor.metrics.people.alignment import CONCORDANCE, MAE, PEARSON, Statistic
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.agreement.over_models import (
    AttributesReport,
    build_attributes_report,
    choose_method,
    collect_score_figures,
)
from auditor.reports.data.coverage.lost_samples import (
    NO_RANGE_REASON,
    SampleCounts,
    WorstCaseDifferences,
    has_large_loss,
    loss_differs,
)
from auditor.reports.data.differences.schema import (
    ChangeLabel,
    ComparedSeries,
    DifferenceReport,
    NonInferiorityReport,
    RegionMarginRow,
    RegistrationState,
    SeriesDifference,
    SeriesPairDifferences,
)
from auditor.reports.data.differences.series_pairs import (
    MatchedSeries,
    ScoreSeries,
    SeriesPair,
    SeriesTarget,
    match_series_pairs,
)
from auditor.reports.data.differences.verdicts import (
    DEFAULT_MAX_LISTED,
    LabelFigures,
    compare_corrected_shares,
    compare_judges_with_people,
    compare_resolutions,
    compare_same_judges,
    compare_two_judges,
)
from auditor.reports.data.report_source import (
    RESCALED_SCORES_REASON,
    FloatArray,
    cluster_countries,
    has_rescaled_scores,
)
from auditor.reports.data.requests import settings_differ
from auditor.storage import audits
from auditor.storage.audits import find_first_answer_time, load_registrations
from auditor.storage.database import Database
from auditor.surveys.regions import get_grouping, get_zones


@dataclass(frozen=True)
class SharedCells:
    """Scores of two series on their common cells, those for which both surveys have the same score of people.

    Attributes:
        first, second: scores of the series, shape (cells,); nan where there is none.
        survey_scores: people's scores, shape (cells,).
        n_survey_differs: cells left out because people's scores differ between the surveys.
        zone_by_country: cultural zones, as the first audit stored them.
    """

    first: FloatArray
    second: FloatArray
    survey_scores: FloatArray
    cells: Sequence[Cell]
    n_survey_differs: int
    zone_by_country: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored_by_both(self) -> NDArray[np.bool_]:
        """Cells on which both series have a score, shape (cells,)."""
        return ~np.isnan(self.first) & ~np.isnan(self.second)

    def take(self, indices: Sequence[int]) -> SharedCells:
        """Some of the cells."""
        return replace(
            self,
            first=self.first[indices],
            second=self.second[indices],
            survey_scores=self.survey_scores[indices],
            cells=[self.cells[i] for i in indices],
        )

    def clustered_scores(self) -> tuple[FloatArray, FloatArray, FloatArray, UnitLabels, NDArray[np.str_]]:
        """The arguments of a paired test: both series' scores, people's scores, zones or countries, and topics, each
        (cells,)."""
        countries = [cell.country for cell in self.cells]
        topics = np.array([cell.topic for cell in self.cells], dtype=np.str_)
        clusters = cluster_countries(countries, self.zone_by_country, self.scored_by_both)
        return self.first, self.second, self.survey_scores, clusters, topics


def select_shared_cells(first: ScoreSeries, second: ScoreSeries) -> SharedCells:
    """Scores of two series on the cells in which both surveys have the same score of people (within 1e-9)."""
    first_truth, second_truth = first.survey_scores, second.survey_scores
    common_cells = [cell for cell in first_truth if cell in second_truth]
    cells = [cell for cell in common_cells if abs(first_truth[cell] - second_truth[cell]) < 1e-9]
    survey_scores = np.array([first_truth[cell] for cell in cells], dtype=np.float64)
    return SharedCells(
        first.scores_on(cells),
        second.scores_on(cells),
        survey_scores,
        cells,
        len(common_cells) - len(cells),
        get_zones(first.survey),
    )


def estimate_difference(
    name: str, statistic: Statistic, shared: SharedCells, *, larger_is_better: bool
) -> SeriesDifference:
    """Difference of a statistic, second minus first, over shared cells, with a jackknife interval and test."""
    first, second, survey_scores, countries, topics = shared.clustered_scores()
    # The jackknife gives its first argument less its second, so the second series comes first.
    interval = paired_jackknife(statistic, second, first, survey_scores, countries, topics)
    first_value, second_value = (
        _statistic_value(statistic, scores[shared.scored_by_both], survey_scores[shared.scored_by_both])
        for scores in (first, second)
    )
    return SeriesDifference(
        name=name,
        first=first_value,
        second=second_value,
        difference=interval,
        change=_classify_change(interval, larger_is_better),
    )


def _statistic_value(statistic: Statistic, scores: FloatArray, survey_scores: FloatArray) -> float | None:
    """A statistic of a model's scores against people's; None if it is undefined."""
    # A statistic is computed from sums over cells of the moments, shape (1, moments) here.
    value = float(statistic.value(statistic.moments(scores, survey_scores).sum(axis=0, keepdims=True))[0])
    return None if np.isnan(value) else value


def estimate_region_differences(first: ScoreSeries, shared: SharedCells) -> list[SeriesDifference]:
    """Differences of MAE, one per region of the survey's grouping that has a shared cell."""
    grouping = get_grouping(first.survey)
    differences = []
    for region in grouping.regions:
        cell_indices = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if cell_indices:
            region_cells = shared.take(cell_indices)
            differences.append(estimate_difference(region.name, MAE, region_cells, larger_is_better=False))
    return differences


def estimate_group_differences(
    shared: SharedCells, group_of: Callable[[Cell], str], unit: str
) -> list[SeriesDifference]:
    """Differences of MAE by country or topic, sorted by the difference, largest increase first.

    Args:
        unit: over which the intervals are: `topic` for countries, `country` for topics.
    """
    names = np.array([group_of(cell) for cell in shared.cells], dtype=np.str_)
    differences = []
    for name in dict.fromkeys(names.tolist()):
        is_in_group = (names == name) & shared.scored_by_both
        first_scores, second_scores, survey_scores = (
            shared.first[is_in_group],
            shared.second[is_in_group],
            shared.survey_scores[is_in_group],
        )
        mean_errors = [  # MAE of the first series, of the second; None where both never have a score
            float(np.abs(scores - survey_scores).mean()) if len(scores) else None
            for scores in (first_scores, second_scores)
        ]
        paired = paired_error(first_scores, second_scores, survey_scores, unit)
        differences.append(
            SeriesDifference(
                name=name,
                first=mean_errors[0],
                second=mean_errors[1],
                difference=paired,
                change=_classify_change(paired, larger_is_better=False),
            )
        )
    return sorted(differences, key=lambda difference: -(difference.difference.value or 0.0))


def adjust_differences(
    differences: Sequence[SeriesDifference], family: str, *, larger_is_better: bool
) -> list[SeriesDifference]:
    """Copy the differences with p-values adjusted for their number, and the change they imply."""
    return [
        row.model_copy(update={"change": _classify_change(row.difference, larger_is_better)})
        for row in adjust_rows(differences, "difference", family)
    ]


def _classify_change(difference: Tested, larger_is_better: bool) -> ChangeLabel:
    """Whether the second series is better or worse than the first, given the number of tests.

    Args:
        difference: second minus first.
        larger_is_better: whether a positive difference is an improvement, as for r but not for MAE.
    """
    if difference.value is None:
        return "not measurable"
    if not difference.is_significant:
        return "not told apart"
    return "better" if (difference.value > 0) == larger_is_better else "worse"


def check_non_inferiority(
    db: Database, pairs: Sequence[SeriesPair], margin: float | None
) -> list[NonInferiorityReport]:
    """Test each pair whose margin is given, or whose later audit's configuration states one for the first audit.

    Args:
        margin: of all pairs; None for those that the configurations state.
    """
    reports = []
    for first, second in pairs:
        pair_margin = _stated_margin(db, first, second) if margin is None else margin
        if pair_margin is not None:
            reports.append(_test_pair(db, first, second, pair_margin))
    return reports


def _stated_margin(db: Database, first: ScoreSeries, second: ScoreSeries) -> float | None:
    """The margin that the second audit's configuration states for the first as its baseline."""
    config = load_stored_config(audits.get_audit(db, second.audit).config)
    claim = config.compare.non_inferiority if config else None
    return claim.margin if claim and claim.baseline == first.audit else None


def _test_pair(db: Database, first: ScoreSeries, second: ScoreSeries, margin: float) -> NonInferiorityReport:
    """Test all countries together, and each region of the first series' survey; none of scores that are rescaled."""
    shared = select_shared_cells(first, second)
    is_rescaled = has_rescaled_scores(first.method) or has_rescaled_scores(second.method)
    rows = []
    for region in () if is_rescaled else get_grouping(first.survey).regions:
        indices = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if indices:
            rows.append(_test_cells(region.name, (first, second), shared.take(indices), margin))
    rows = adjust_rows(rows, "change", f"non-inferiority of {second.label}, by region")
    state, registered_at, registered_margin = _find_registration(db, first, second, margin)
    regions = [row.model_copy(update={"passes": _is_below(row, margin)}) for row in rows]
    overall = None
    if shared.cells and not is_rescaled:
        row = _test_cells("All countries", (first, second), shared, margin)
        [row] = adjust_rows([row], "change", f"non-inferiority of {second.label}, all countries")
        overall = row.model_copy(update={"passes": _is_below(row, margin)})
    return NonInferiorityReport(
        first=first.label,
        second=second.label,
        margin=margin,
        registration=state,
        registered_at=registered_at,
        registered_margin=registered_margin,
        regions=regions,
        overall=overall,
        reason=RESCALED_SCORES_REASON if is_rescaled else _find_reason(regions),
    )


def _test_cells(name: str, pair: SeriesPair, shared: SharedCells, margin: float) -> RegionMarginRow:
    """The change in MAE on shared cells, with the p-value of a change of the margin or more, and its bounds."""
    first_scores, second_scores, truth, countries, topics = shared.clustered_scores()
    difference = paired_jackknife(MAE, second_scores, first_scores, truth, countries, topics)
    samples = (pair[0].samples_on(shared.cells), pair[1].samples_on(shared.cells))
    worst_case = _bound_difference(MAE, shared, samples, difference) if _may_hide_change(samples) else None
    return RegionMarginRow(region=name, change=difference.against_margin(margin), passes=None, worst_case=worst_case)


def _is_below(row: RegionMarginRow, margin: float) -> bool | None:
    """Whether a change in error is shown to be below the margin; None without an interval, or if losses could hide it.

    A change that is not shown to be below it on the usable samples stays so.
    """
    if row.change.ci_high is None:
        return None
    if not (row.change.is_significant and row.change.ci_high < margin):
        return False
    is_bounded = row.worst_case is None or (row.worst_case.ci_high is not None and row.worst_case.ci_high < margin)
    return True if is_bounded else None


def _find_reason(regions: Sequence[RegionMarginRow]) -> str | None:
    """Why none of the regions is tested; None if one is."""
    if any(row.passes is not None for row in regions):
        return None
    return regions[0].change.reason if regions else "no country with scores of both is in a region of the survey"


def _find_registration(
    db: Database, first: ScoreSeries, second: ScoreSeries, margin: float
) -> tuple[RegistrationState, str | None, float | None]:
    """Whether the chain has the claim, when it was added, and its margin."""
    entries = [entry for entry in load_registrations(db, second.audit_id) if entry.baseline == first.audit]
    if not entries:
        return "not registered", None, None
    first_equal = next((entry for entry in entries if entry.margin == margin), None)
    if first_equal is None or entries[0] is not first_equal:
        return "other margin", entries[0].registered_at, entries[0].margin
    first_answer_at = find_first_answer_time(db, second.audit_id, second.model)  # another audit may have asked before
    is_late = first_equal.n_answers > 0 or (first_answer_at or first_equal.registered_at) < first_equal.registered_at
    state: RegistrationState = "registered late" if is_late else "registered"
    return state, first_equal.registered_at, margin


ERROR_NOT_MEASURABLE = SeriesDifference(
    name="all",
    first=None,
    second=None,
    difference=Tested(None, 0, reason=RESCALED_SCORES_REASON),
    change="not measurable",
)
"""Difference of MAE or concordance where a series has rescaled scores, which have neither."""
OVERALL_FIGURES = ("pearson_r", "concordance", "mae")
"""Fields of a pair with differences over all shared cells; each is corrected for the number of pairs."""


def compare_targets(
    db: Database,
    targets: Sequence[SeriesTarget],
    *,
    methods: Sequence[str] = (),
    all_pairs: bool = False,
    judges: Sequence[str] = (),
    max_listed: int = DEFAULT_MAX_LISTED,
    renamed_models: Mapping[str, str] = MappingProxyType({}),
    use_corrections: bool = True,
    margin: float | None = None,
) -> DifferenceReport:
    """Compare series of scores on the cells that both of a pair have.

    Args:
        targets: audits, or models of audits; `match_series_pairs` describes which are paired.
        methods: compare only scores by these methods; empty for all.
        all_pairs: compare all pairs of targets, not only each with the first.
        judges: two judges whose verdicts are compared on the same traces; then one audit is enough.
        max_listed: how many verdict flips, and how many conflicts settled for different sides, are listed for a pair.
        renamed_models: models with another name in the audits after the first, old name to new.
        margin: increase in mean absolute error that does not matter, for a test of non-inferiority in each region; None
            for the pairs whose later audit states one.
        use_corrections: whether shares of VALID are compared after correction by people's labels.

    Raises:
        StorageError: there is no such audit.
        UsageError: nothing can be paired.
    """
    judge_differences = compare_two_judges(db, targets, judges, max_listed) if judges else []
    # With two judges and one audit only the judges are compared, no scores.
    pairs, unpaired = (
        MatchedSeries([], [])
        if judges and len(targets) == 1
        else match_series_pairs(db, targets, methods, all_pairs=all_pairs, renamed_models=renamed_models)
    )
    pair_differences = _adjust_breakdowns([_compare_pair(db, pair, max_listed) for pair in pairs])
    label_figures = LabelFigures(db)
    corrected = compare_corrected_shares(label_figures, pairs) if use_corrections else [None] * len(pairs)
    if margin is not None and not pairs:
        raise UsageError(
            "--non-inferiority compares scores of two series, and judges alone have none.", "Name two audits."
        )
    overall_differences = [_adjust_overall(pair_differences, name) for name in OVERALL_FIGURES]
    series = {one_series.label: one_series for pair in pairs for one_series in pair}.values()
    return DifferenceReport(
        auditor=metadata.version("auditor"),
        survey=", ".join(dict.fromkeys(one_series.survey.title for one_series in series)),
        series=[_summarize_series(one_series) for one_series in series],
        pairs=[
            pair_difference.model_copy(
                update=dict(zip(OVERALL_FIGURES, differences, strict=True)) | {"corrected_shares": shares}
            )
            for pair_difference, differences, shares in zip(
                pair_differences, zip(*overall_differences, strict=True), corrected, strict=True
            )
        ],
        unpaired=unpaired,
        judges=judge_differences,
        settlements=compare_resolutions(db, pairs, renamed_models, max_listed),
        judge_drift=compare_judges_with_people(label_figures, pairs),
        non_inferiority=check_non_inferiority(db, pairs, margin),
        attributes=_build_attributes(db, list(series)),
        tests=len(pairs),
    )


def _build_attributes(db: Database, series: Sequence[ScoreSeries]) -> AttributesReport | None:
    """Figures by attribute of the models of all series, by answers to direct questions where there are any."""
    configs = [load_stored_config(audits.get_audit(db, name).config) for name in dict.fromkeys(s.audit for s in series)]
    method = choose_method({one_series.method for one_series in series})
    scores_by_model: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for one_series in series:
        if one_series.method == method and not has_rescaled_scores(method):
            truth = np.array([one_series.survey_scores[cell] for cell in one_series.scores], dtype=np.float64)
            scores = (np.array(list(one_series.scores.values()), dtype=np.float64), truth)
            scores_by_model.setdefault(one_series.model, []).append(scores)
    return build_attributes_report(configs, collect_score_figures(scores_by_model))


def _summarize_series(series: ScoreSeries) -> ComparedSeries:
    """Name a series and count its cells: `asked` with a score of people, `scored` with one of the model."""
    return ComparedSeries(
        label=series.label,
        audit=series.audit,
        model=series.model,
        method=series.method,
        complete=series.complete,
        asked=len(series.survey_scores),
        scored=len(series.scores),
        sampling=series.sampling and series.sampling.label,
    )


def _compare_pair(db: Database, pair: SeriesPair, max_listed: int) -> SeriesPairDifferences:
    """Compare two series: coverage, overall differences, breakdowns and verdicts; p-values are not yet corrected."""
    first, second = pair
    shared = select_shared_cells(first, second)
    is_scored_by_both = shared.scored_by_both
    scored_cells = [cell for cell, is_scored in zip(shared.cells, is_scored_by_both, strict=True) if is_scored]
    has_no_mae = has_rescaled_scores(first.method) or has_rescaled_scores(second.method)
    samples = (first.samples_on(shared.cells), second.samples_on(shared.cells))
    r_difference = estimate_difference("all", PEARSON, shared, larger_is_better=True)
    mae_difference = (
        ERROR_NOT_MEASURABLE if has_no_mae else estimate_difference("all", MAE, shared, larger_is_better=False)
    )
    concordance_difference = (
        ERROR_NOT_MEASURABLE if has_no_mae else estimate_difference("all", CONCORDANCE, shared, larger_is_better=True)
    )
    return SeriesPairDifferences(
        first=first.label,
        second=second.label,
        shared=int(is_scored_by_both.sum()),
        only_first=int((~np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        only_second=int((np.isnan(shared.first) & ~np.isnan(shared.second)).sum()),
        neither=int((np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        truth_differs=shared.n_survey_differs,  # cells left out: people's scores differ between the surveys
        sampling_settings_differ=settings_differ([row for row in (first.sampling, second.sampling) if row]),
        countries=len({cell.country for cell in scored_cells}),
        topics=len({cell.topic for cell in scored_cells}),
        pearson_r=r_difference,
        concordance=concordance_difference,
        mae=mae_difference,
        first_lost_samples=samples[0].count_lost(),
        second_lost_samples=samples[1].count_lost(),
        worst_case=_bound_differences(shared, samples, r_difference.difference, mae_difference.difference),
        regions=[] if has_no_mae else estimate_region_differences(first, shared),
        by_country=[] if has_no_mae else estimate_group_differences(shared, lambda cell: cell.country, "topic"),
        by_topic=[] if has_no_mae else estimate_group_differences(shared, lambda cell: cell.topic, "country"),
        verdicts=compare_same_judges(db, first, second, max_listed),
    )


def _bound_differences(
    shared: SharedCells, samples: tuple[SampleCounts, SampleCounts], r_difference: Estimate, mae_difference: Estimate
) -> WorstCaseDifferences | None:
    """Bound the differences over all planned samples; None where few samples are lost, and similar shares of them.

    Args:
        samples: numbers of samples of the first and the second series on the shared cells.
        r_difference, mae_difference: second minus first, on the cells that both have; no MAE for rescaled scores.
    """
    if not _may_hide_change(samples):
        return None
    if mae_difference.reason == RESCALED_SCORES_REASON:
        return WorstCaseDifferences(
            pearson_r=BoundedEstimate(r_difference.value, r_difference.n, reason=NO_RANGE_REASON),
            mae=BoundedEstimate(None, mae_difference.n, reason=RESCALED_SCORES_REASON),
        )
    return WorstCaseDifferences(
        pearson_r=_bound_difference(PEARSON, shared, samples, r_difference),
        mae=_bound_difference(MAE, shared, samples, mae_difference),
    )


def _may_hide_change(samples: tuple[SampleCounts, SampleCounts]) -> bool:
    """Whether many samples of a series are lost, or different shares of the two."""
    lost = [counts.count_lost() for counts in samples]
    return loss_differs(*lost) or any(map(has_large_loss, lost))


def _bound_difference(
    statistic: Statistic, shared: SharedCells, samples: tuple[SampleCounts, SampleCounts], difference: Estimate
) -> BoundedEstimate:
    """Bound a difference, second minus first, over all planned samples."""
    first, second, truth, clusters, topics = shared.clustered_scores()
    # The bounds are of the first argument minus the second, so the second series comes first.
    ranges = (samples[1].score_ranges(second), samples[0].score_ranges(first))
    return bounded_difference(statistic, difference.value, *ranges, truth, clusters, topics)


def _adjust_breakdowns(pairs: Sequence[SeriesPairDifferences]) -> list[SeriesPairDifferences]:
    """Copy the pairs with corrected p-values of their breakdowns.

    All regions of all pairs are one family of Holm's correction, all countries another, all topics a third.
    """
    updates: list[dict[str, list[SeriesDifference]]] = [{} for _ in pairs]
    for kind in ("regions", "by_country", "by_topic"):
        differences_by_pair: list[list[SeriesDifference]] = [getattr(pair, kind) for pair in pairs]
        # Corrected as one flat list, then dealt back to the pairs in the same order.
        adjusted = iter(
            adjust_differences(
                [difference for pair_differences in differences_by_pair for difference in pair_differences],
                f"{kind} of all pairs",
                larger_is_better=False,
            )
        )
        for pair_differences, update in zip(differences_by_pair, updates, strict=True):
            update[kind] = list(islice(adjusted, len(pair_differences)))
    return [pair.model_copy(update=update) for pair, update in zip(pairs, updates, strict=True)]


def _adjust_overall(pairs: Sequence[SeriesPairDifferences], field_name: str) -> list[SeriesDifference]:
    """One overall difference per pair, with p-values corrected by Holm's method for the number of pairs.

    Args:
        field_name: one of `OVERALL_FIGURES`, the field of `SeriesPairDifferences` that holds the difference.
    """
    differences = [getattr(pair, field_name) for pair in pairs]
    return adjust_differences(differences, f"{field_name} of all pairs", larger_is_better=field_name != "mae")
