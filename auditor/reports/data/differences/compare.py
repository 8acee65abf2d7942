"""Compare series of scores cell by cell: differences of r and MAE, with intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import islice
from types import MappingProxyType

import numpy as np

from auditor.config import load_stored_config
from auditor.domain import Method
from auditor.metrics.cell_statistics import CONCORDANCE, MAE, PEARSON
from auditor.metrics.estimate import BoundedEstimate, Estimate, Tested
from auditor.metrics.missing_bounds import bounded_difference
from auditor.reports.data.agreement.model_attributes import (
    AttributesReport,
    build_attributes_report,
    collect_score_figures,
)
from auditor.reports.data.coverage.lost_samples import (
    NO_RANGE_REASON,
    SampleCounts,
    WorstCaseDifferences,
    has_large_loss,
    loss_differs,
)
from auditor.reports.data.differences.corrected_shares import compare_corrected_shares
from auditor.reports.data.differences.differences import (
    adjust_differences,
    estimate_difference,
    estimate_group_differences,
    estimate_region_differences,
)
from auditor.reports.data.differences.judge_drift import compare_judges_with_people
from auditor.reports.data.differences.label_figures import LabelFigures
from auditor.reports.data.differences.non_inferiority import check_non_inferiority
from auditor.reports.data.differences.resolutions import compare_resolutions
from auditor.reports.data.differences.schema import (
    ComparedSeries,
    DifferenceReport,
    SeriesDifference,
    SeriesPairDifferences,
)
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair, SeriesTarget, match_series_pairs
from auditor.reports.data.differences.shared_cells import SharedCells, select_shared_cells
from auditor.reports.data.differences.verdict_differences import (
    DEFAULT_MAX_LISTED,
    compare_same_judges,
    compare_two_judges,
)
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.requests.sampling_settings import settings_differ
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores
from auditor.storage import audits
from auditor.storage.database import Database

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
    pairs = (
        []
        if judges and len(targets) == 1
        else match_series_pairs(db, targets, methods, all_pairs=all_pairs, renamed_models=renamed_models)
    )
    pair_differences = _adjust_breakdowns([_compare_pair(db, pair, max_listed) for pair in pairs])
    label_figures = LabelFigures(db)
    corrected = compare_corrected_shares(label_figures, pairs) if use_corrections else [None] * len(pairs)
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
    methods = {one_series.method for one_series in series}
    method = Method.DIRECT.value if Method.DIRECT.value in methods or not methods else min(methods)
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
    lost = [counts.count_lost() for counts in samples]
    if not loss_differs(*lost) and not any(map(has_large_loss, lost)):
        return None
    if mae_difference.reason == RESCALED_SCORES_REASON:
        return WorstCaseDifferences(
            pearson_r=BoundedEstimate(r_difference.value, r_difference.n, reason=NO_RANGE_REASON),
            mae=BoundedEstimate(None, mae_difference.n, reason=RESCALED_SCORES_REASON),
        )
    first, second, truth, clusters, topics = shared.clustered_scores()
    # The bounds are of the first argument minus the second, so the second series comes first.
    ranges = (samples[1].score_ranges(second), samples[0].score_ranges(first))
    r, mae = (
        bounded_difference(statistic, difference.value, *ranges, truth, clusters, topics)
        for statistic, difference in ((PEARSON, r_difference), (MAE, mae_difference))
    )
    return WorstCaseDifferences(pearson_r=r, mae=mae)


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
