"""Non-inferiority of a later audit: in which regions it is at most a margin farther from people than the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.config import load_stored_config
from auditor.metrics.cell_statistics import MAE
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife import paired_jackknife
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.differences.schema import NonInferiorityReport, RegionMarginRow, RegistrationState
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair
from auditor.reports.data.differences.shared_cells import SharedCells, select_shared_cells
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.registrations import load_registrations
from auditor.surveys.regions import get_grouping


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
        if pair_margin is not None and not (has_rescaled_scores(first.method) or has_rescaled_scores(second.method)):
            reports.append(_test_pair(db, first, second, pair_margin))
    return reports


def _stated_margin(db: Database, first: ScoreSeries, second: ScoreSeries) -> float | None:
    """The margin that the second audit's configuration states for the first as its baseline."""
    config = load_stored_config(audits.get_audit(db, second.audit).config)
    claim = config.compare.non_inferiority if config else None
    return claim.margin if claim and claim.baseline == first.audit else None


def _test_pair(db: Database, first: ScoreSeries, second: ScoreSeries, margin: float) -> NonInferiorityReport:
    """Test each region of the first series' survey."""
    shared = select_shared_cells(first, second)
    rows = []
    for region in get_grouping(first.survey).regions:
        indices = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if indices:
            cells = SharedCells(
                shared.first[indices], shared.second[indices], shared.survey_scores[indices],
                [shared.cells[i] for i in indices], 0, shared.zone_by_country,
            )  # fmt: skip
            first_scores, second_scores, truth, countries, topics = cells.clustered_scores()
            difference = paired_jackknife(MAE, second_scores, first_scores, truth, countries, topics)
            change: Tested = difference.against_margin(margin)
            rows.append(RegionMarginRow(region=region.name, change=change, passes=False))
    rows = adjust_rows(rows, "change", f"non-inferiority of {second.label}, by region")
    state, registered_at, registered_margin = _find_registration(db, first, second, margin)
    return NonInferiorityReport(
        first=first.label,
        second=second.label,
        margin=margin,
        registration=state,
        registered_at=registered_at,
        registered_margin=registered_margin,
        regions=[
            row.model_copy(
                update={
                    "passes": row.change.is_significant
                    and row.change.ci_high is not None
                    and row.change.ci_high < margin
                }
            )
            for row in rows
        ],
    )


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
    state: RegistrationState = "registered late" if first_equal.n_answers else "registered"
    return state, first_equal.registered_at, margin
