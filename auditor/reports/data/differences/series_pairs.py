"""Find the pairs of series to compare, from targets that the user names as `AUDIT` or `AUDIT:MODEL`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.config import load_stored_config
from auditor.domain import Cell, Method, Survey
from auditor.errors import UnfinishedAuditError, UsageError
from auditor.reports.data.coverage.lost_samples import SampleCounts
from auditor.reports.data.differences.schema import UnpairedModel
from auditor.reports.data.report_source import ReportSource, require_survey_audit
from auditor.reports.data.requests import SamplingSettingsRow, build_sampling_rows
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.capabilities import load_direct_alterations
from auditor.storage.database import Database

SeriesPair = tuple["ScoreSeries", "ScoreSeries"]
TASK_COMPARISON_HINT = (
    "`auditor report` has each model's accuracy with its interval; --judge, twice, compares judges of one audit."
)


class SeriesTarget(NamedTuple):
    """What the user named to be compared: one model of an audit, or all if `model` is None."""

    audit: str
    model: str | None

    @property
    def label(self) -> str:
        """The target as the user names it: `AUDIT` or `AUDIT:MODEL`."""
        return self.audit if self.model is None else f"{self.audit}:{self.model}"


class CellSamples(NamedTuple):
    """Samples of one cell; `has_languages` as in `SampleCounts`."""

    usable: float
    planned: float
    has_languages: bool


NO_SAMPLES = CellSamples(0.0, 0.0, has_languages=False)


@dataclass(frozen=True)
class ScoreSeries:
    """One model's scores in one audit by one method, on the cells in which people were asked."""

    label: str
    audit_id: int
    audit: str
    model: str
    method: str
    complete: bool
    survey: Survey
    scores: dict[Cell, float]
    """Usable scores only."""
    samples: Mapping[Cell, CellSamples]
    """Numbers of samples on each of these cells."""
    sampling: SamplingSettingsRow | None = None
    """Sampling settings of the answers; None where they are not known, or no answers are sampled."""

    @property
    def survey_scores(self) -> dict[Cell, float]:
        """People's scores by cell."""
        return self.survey.scores

    def scores_on(self, cells: Iterable[Cell]) -> NDArray[np.float64]:
        """Scores on the cells, shape (cells,); nan where there is none."""
        return np.array([self.scores.get(cell, np.nan) for cell in cells], dtype=np.float64)

    def samples_on(self, cells: Iterable[Cell]) -> SampleCounts:
        """Numbers of samples on the cells; 0 where none are planned."""
        counts = [self.samples.get(cell, NO_SAMPLES) for cell in cells]
        usable, planned, has_languages = zip(*counts, strict=True) if counts else ((), (), ())
        return SampleCounts(
            np.array(usable, dtype=np.float64),
            np.array(planned, dtype=np.float64),
            np.array(has_languages, dtype=np.bool_),
        )


class MatchedSeries(NamedTuple):
    """Pairs of series to compare; the first series of a pair is the reference.

    Attributes:
        unpaired: models of audits that were named without a model, of which no series is in a pair.
    """

    pairs: list[SeriesPair]
    unpaired: list[UnpairedModel]


def parse_target(text: str) -> SeriesTarget:
    """Parse `AUDIT` or `AUDIT:MODEL`; an audit's name has no colon, a model's may have some."""
    audit, _, model = text.partition(":")
    return SeriesTarget(audit, model or None)


def load_series(
    db: Database, audit_name: str, methods: Sequence[str] = (), *, label_prefix: str = ""
) -> list[ScoreSeries]:
    """Load every series of an audit, sorted by method, then in the order of the audit's models.

    Args:
        methods: load only series of these methods; empty for all.
        label_prefix: put before the label of each series.

    Raises:
        StorageError: there is no such audit.
        UsageError: the audit is of a task.
    """
    audit = audits.get_audit(db, audit_name)
    config = load_stored_config(audit.config)
    survey = audits.load_audit_survey(db, audit)
    require_survey_audit(audit_name, survey, "comparing scores", TASK_COMPARISON_HINT)
    source = ReportSource(audit, config, survey, results.load_scores(db, audit.id))
    alterations = [] if config is None else load_direct_alterations(db, audit.id)
    sampling_by_model = {row.model: row for row in build_sampling_rows(config, alterations)}
    has_several_methods = len({method for method, _ in source.columns}) > 1
    return [
        ScoreSeries(
            label=f"{label_prefix}{model}" + (f" ({method})" if has_several_methods else ""),
            audit_id=audit.id,
            audit=audit_name,
            model=model,
            method=method,
            complete=audit.stage in audits.FINAL_STAGES,
            survey=survey,
            scores={
                cell: float(score)
                for cell, score in zip(source.cells, row, strict=True)
                if not np.isnan(score) and cell in survey.scores
            },
            samples={
                cell: CellSamples(*cell_counts)
                for cell, *cell_counts in zip(
                    source.cells, counts.usable, counts.planned, counts.has_languages, strict=True
                )
            },
            sampling=sampling_by_model.get(model) if method == Method.DIRECT else None,
        )
        for (method, model), row, counts in zip(source.columns, source.score_matrix, source.sample_counts, strict=True)
        if not methods or method in methods
    ]


def match_series_pairs(
    db: Database,
    targets: Sequence[SeriesTarget],
    methods: Sequence[str] = (),
    *,
    all_pairs: bool = False,
    renamed_models: Mapping[str, str] = MappingProxyType({}),
) -> MatchedSeries:
    """Find the pairs of series to compare.

    One target gives all pairs of its audit's models. With several, each is compared with the first, pairing models of
    the same name. If there are none, and each side has a single model, these two are paired.

    Args:
        methods: pair only series of these methods; empty for all.
        all_pairs: compare all pairs of targets, not only each with the first.
        renamed_models: models with another name in the audits after the first, old name to new.

    Raises:
        StorageError: there is no such audit.
        UnfinishedAuditError: an audit has no scores yet.
        UsageError: nothing can be paired, a target is named twice, or a renamed model is in no pair; the message names
            the models there are.
    """
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError(
                f"'{target.label}' is named twice, and does not differ from itself: there is nothing to compare.",
                "Name two audits, or two models.",
            )
    audit_names = dict.fromkeys(target.audit for target in targets)
    has_several_audits = len(audit_names) > 1
    series_by_audit = {
        name: load_series(db, name, methods, label_prefix=f"{name}:" * has_several_audits) for name in audit_names
    }
    for name, series in series_by_audit.items():
        _require_scores(audits.get_audit(db, name), series)
    if len(targets) == 1:
        return MatchedSeries(_pair_within_audit(series_by_audit, targets[0]), [])
    target_pairs = itertools.combinations(targets, 2) if all_pairs else ((targets[0], target) for target in targets[1:])
    pairs = [
        pair
        for first_target, second_target in target_pairs
        for pair in _match_by_model(series_by_audit, first_target, second_target, renamed_models)
    ]
    for old_name, new_name in renamed_models.items():
        if not any(
            (first_series.model, second_series.model) == (old_name, new_name) for first_series, second_series in pairs
        ):
            raise UsageError(
                f"--map: the first audit has no model '{old_name}', or no other audit has a model '{new_name}' to "
                "compare it with.",
                "Write --map OLD=NEW with the names of the models that `auditor report` shows.",
            )
    return MatchedSeries(pairs, _find_unpaired(series_by_audit, targets, pairs))


def _find_unpaired(
    series_by_audit: Mapping[str, Sequence[ScoreSeries]], targets: Sequence[SeriesTarget], pairs: Sequence[SeriesPair]
) -> list[UnpairedModel]:
    """Find the models that were named with their whole audit, and are in no pair."""
    paired = {(series.audit, series.model) for pair in pairs for series in pair}
    models = dict.fromkeys(
        (target.audit, series.model)
        for target in targets
        if target.model is None
        for series in series_by_audit[target.audit]
    )
    return [
        UnpairedModel(audit=audit, model=model, is_reference=audit == targets[0].audit)
        for audit, model in models
        if (audit, model) not in paired
    ]


def _pair_within_audit(series_by_audit: dict[str, list[ScoreSeries]], target: SeriesTarget) -> list[SeriesPair]:
    """All pairs of an audit's series that have one method; UsageError where there are none, or for a single model."""
    pairs = [
        (first, second)
        for first, second in itertools.combinations(_select_series(series_by_audit, target), 2)
        if first.method == second.method
    ]
    if target.model is None and pairs:
        return pairs
    models = dict.fromkeys(series.model for series in series_by_audit[target.audit])
    raise UsageError(
        f"'{target.label}' alone gives nothing to compare: it has {', '.join(models) or 'no series of scores'}.",
        "Name two audits, or AUDIT:MODEL twice.",
    )


def _require_scores(audit: Audit, series: Sequence[ScoreSeries]) -> None:
    """Raise UnfinishedAuditError if an audit has no scores since its run has not finished."""
    if not any(one_series.scores for one_series in series) and audit.stage not in audits.FINAL_STAGES:
        raise UnfinishedAuditError(
            f"'{audit.name}' is not finished (stage: {audit.stage}), so it has no scores to compare.",
            "Run it again with the same command: recorded answers are not asked for again.",
        )


def _match_by_model(
    series_by_audit: dict[str, list[ScoreSeries]],
    first: SeriesTarget,
    second: SeriesTarget,
    renamed_models: Mapping[str, str],
) -> list[SeriesPair]:
    """Pair the series of two targets that have the same method and model, a renamed model counting as the same.

    If there are none, and each side has a single model, pair these two.

    Raises:
        UsageError: nothing can be paired.
    """
    first_series, second_series = _select_series(series_by_audit, first), _select_series(series_by_audit, second)
    same_method_pairs = [
        (one_series, other_series)
        for one_series in first_series
        for other_series in second_series
        if one_series.method == other_series.method and one_series is not other_series
    ]
    same_model_pairs = [
        (one_series, other_series)
        for one_series, other_series in same_method_pairs
        if other_series.model == renamed_models.get(one_series.model, one_series.model)
    ]
    # Without a common model, the pair is still clear if each side has exactly one model: two names in all.
    if same_model_pairs or (
        same_method_pairs
        and len({series.model for pair in same_method_pairs for series in pair})
        == 2
        == len({series.model for series in first_series + second_series})
    ):
        return same_model_pairs or same_method_pairs
    sides = zip((first, second), (first_series, second_series), strict=True)
    side_descriptions = [
        f"'{target.label}' has {', '.join(dict.fromkeys(series.model for series in side_series)) or 'no scores'}"
        for target, side_series in sides
    ]
    raise UsageError(
        f"{' and '.join(side_descriptions)}: no model is in both under one name and method, so there is nothing to "
        "compare.",
        " Name two models as AUDIT:MODEL, or add --map OLD=NEW if a model has another name in the later audit.",
    )


def _select_series(series_by_audit: dict[str, list[ScoreSeries]], target: SeriesTarget) -> list[ScoreSeries]:
    """Series of one target.

    Raises:
        UsageError: the audit has no series of the named model.
    """
    series = series_by_audit[target.audit]
    if target.model is None:
        return series
    matching = [one_series for one_series in series if one_series.model == target.model]
    if not matching:
        names = ", ".join(dict.fromkeys(one_series.model for one_series in series)) or "none"
        raise UsageError(f"audit '{target.audit}' has no scores of '{target.model}'.", f"Its models: {names}.")
    return matching
