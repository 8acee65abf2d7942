"""Compare verdicts of judges and what they rest on: corrected shares, drift, and how conflicts were settled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from auditor.domain import Ruling
from auditor.domain.labels import LabelKind
from auditor.errors import UsageError, did_you_mean
from auditor.metrics.intervals.paired import subtract_independent
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.metrics.judges.consistency import compare_verdicts_over_units
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.differences.schema import (
    CorrectedShareDifferences,
    JudgeDriftRow,
    ResolutionDifferences,
    ResolutionFlipRow,
    VerdictDifferences,
)
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair, SeriesTarget
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.judge_quality.schema import JudgeQualityReport
from auditor.reports.data.report_source import load_source, sampling_units
from auditor.storage import audits
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database
from auditor.storage.labels import load_draw
from auditor.storage.results import load_verdicts
from auditor.storage.review_queue import ReviewedConflict, load_reviewed_conflicts
from auditor.storage.votes import (
    VerdictSelection,
    count_paired_traces,
    count_ruling_pairs,
    load_verdict_flips,
)


class LabelFigures:
    """Loads the figures of judges of audits."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._by_audit: dict[int, JudgeQualityReport | None] = {}

    def load(self, series: ScoreSeries) -> JudgeQualityReport | None:
        """The figures of a series' audit; None if no random sample was drawn."""
        if series.audit_id not in self._by_audit:
            has_sample = load_draw(self._db, series.audit_id, LabelKind.TRACE) is not None
            self._by_audit[series.audit_id] = (
                build_judge_quality(load_source(self._db, series.audit)) if has_sample else None
            )
        return self._by_audit[series.audit_id]


def compare_corrected_shares(
    figures: LabelFigures, pairs: Sequence[SeriesPair]
) -> list[CorrectedShareDifferences | None]:
    """Compare the corrected shares of each pair; None where a model of one of its audits has too few labels."""
    comparisons = [_compare(first, second, figures.load(first), figures.load(second)) for first, second in pairs]
    compared = [comparison for comparison in comparisons if comparison is not None]
    adjusted = iter(adjust_rows(compared, "difference", "corrected shares of all pairs"))
    return [None if comparison is None else next(adjusted) for comparison in comparisons]


def _compare(
    first: ScoreSeries,
    second: ScoreSeries,
    first_quality: JudgeQualityReport | None,
    second_quality: JudgeQualityReport | None,
) -> CorrectedShareDifferences | None:
    """Compare two series; the samples of two models are independent, in one audit too."""
    rows = [
        None if quality is None else quality.corrected_shares.get(series.model)
        for series, quality in ((first, first_quality), (second, second_quality))
    ]
    first_row, second_row = rows
    if first_row is None or second_row is None or first_row is second_row:
        return None
    return CorrectedShareDifferences(
        first=first_row.corrected,
        second=second_row.corrected,
        judges=(second_row.judges.value or 0.0) - (first_row.judges.value or 0.0),
        difference=subtract_independent(second_row.corrected, first_row.corrected),
    )


def compare_judges_with_people(figures: LabelFigures, pairs: Sequence[SeriesPair]) -> list[JudgeDriftRow]:
    """Compare the judges that two audits share, for each two audits of the pairs; p-values are adjusted for all rows.

    The samples of two audits are independent.
    """
    audits = {(first.audit_id, second.audit_id): (first, second) for first, second in pairs}
    rows = [
        row
        for (first_id, second_id), (first, second) in audits.items()
        if first_id != second_id
        for row in _compare_judges(figures, first, second)
    ]
    return adjust_rows(rows, "change", "drift of judges")


def _compare_judges(figures: LabelFigures, first: ScoreSeries, second: ScoreSeries) -> Iterator[JudgeDriftRow]:
    """Compare the judges of two audits; nothing where the labels of one do not suffice."""
    qualities = figures.load(first), figures.load(second)
    if not all(quality is not None and quality.is_measured for quality in qualities):
        return
    first_rows, second_rows = ({row.judge: row for row in quality.judges} for quality in qualities if quality)
    for judge, first_row in first_rows.items():
        second_row = second_rows.get(judge)
        if second_row is None:
            continue
        for name, before, after in (
            ("accuracy", first_row.accuracy, second_row.accuracy),
            ("excess", first_row.excess, second_row.excess),
        ):
            yield JudgeDriftRow(
                judge=judge,
                first_audit=first.audit,
                second_audit=second.audit,
                figure=name,
                first=before,
                second=after,
                change=subtract_independent(after, before),
            )


ConflictKey = tuple[str, str, frozenset[str]]
"""Country, topic and the two models, in any order."""


def compare_resolutions(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> list[ResolutionDifferences]:
    """For each two audits among the pairs, compare how the conflicts that both have were settled.

    Args:
        pairs: the pairs whose audits are compared; paired models count as the same model, whatever their names.
        renamed_models: models with another name in the second audit, old name to new.
        max_listed: how many conflicts settled for different sides are listed.

    Returns:
        The differences between each two audits with a conflict in common.
    """
    pairs_by_audits: dict[tuple[int, int], list[SeriesPair]] = {}
    for pair in pairs:
        # pair[0] is the series of the reference audit, pair[1] the series compared with it.
        if pair[0].audit_id != pair[1].audit_id:
            pairs_by_audits.setdefault((pair[0].audit_id, pair[1].audit_id), []).append(pair)
    differences = [
        _compare_two_audits(db, audit_pairs, renamed_models, max_listed) for audit_pairs in pairs_by_audits.values()
    ]
    return [difference for difference in differences if difference.shared]


def _compare_two_audits(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> ResolutionDifferences:
    """Compare the conflicts of two audits; the first series of all pairs are of one, the second of the other."""
    first, second = pairs[0]
    new_names = {**renamed_models, **{first_series.model: second_series.model for first_series, second_series in pairs}}
    first_conflicts = _index_by_conflict(_load_resolved_conflicts(db, first), new_names)
    second_conflicts = _index_by_conflict(_load_resolved_conflicts(db, second), {})
    shared_keys = sorted(  # by country, topic, then the names of the two models
        first_conflicts.keys() & second_conflicts.keys(), key=lambda key: (key[0], key[1], sorted(key[2]))
    )
    shared_conflicts = [(first_conflicts[key], second_conflicts[key]) for key in shared_keys]
    has_winner = [  # per conflict: whether the first and the second audit settled it for a side
        (in_first.winner is not None, in_second.winner is not None) for in_first, in_second in shared_conflicts
    ]
    is_resolved_twice = [winners == (True, True) for winners in has_winner]
    is_flipped = [
        is_twice and new_names.get(str(in_first.winner), in_first.winner) != in_second.winner
        for is_twice, (in_first, in_second) in zip(is_resolved_twice, shared_conflicts, strict=True)
    ]
    units = sampling_units([key[0] for key in shared_keys], [key[1] for key in shared_keys])
    flips = [
        _build_flip_row(in_first, in_second)
        for (in_first, in_second), flipped in zip(shared_conflicts, is_flipped, strict=True)
        if flipped
    ]
    return ResolutionDifferences(
        first=first.audit,
        second=second.audit,
        shared=len(shared_keys),
        n=sum(is_resolved_twice),
        flipped=len(flips),
        share=share_over_units(is_flipped, is_resolved_twice, units),
        only_first=has_winner.count((True, False)),
        only_second=has_winner.count((False, True)),
        neither=has_winner.count((False, False)),
        flips=flips[:max_listed],
        not_listed=max(0, len(flips) - max_listed),
    )


def _build_flip_row(in_first: ReviewedConflict, in_second: ReviewedConflict) -> ResolutionFlipRow:
    """List a conflict that the two audits settled for different sides."""
    return ResolutionFlipRow(
        country=in_first.conflict.cell.country,
        topic=in_first.conflict.cell.topic,
        first_winner=in_first.winner or "",
        first_by=_resolved_by(in_first),
        second_winner=in_second.winner or "",
        second_by=_resolved_by(in_second),
    )


def _load_resolved_conflicts(db: Database, series: ScoreSeries) -> list[ReviewedConflict]:
    """Load the conflicts between models of the audit that a series is from, with people's ratings applied."""
    return [reviewed for reviewed in load_reviewed_conflicts(db, series.audit_id) if reviewed.conflict.kind.is_voted]


def _index_by_conflict(
    resolved_conflicts: Iterable[ReviewedConflict], new_names: Mapping[str, str]
) -> dict[ConflictKey, ReviewedConflict]:
    """Index conflicts by their key, with models renamed as in `new_names`."""
    return {
        (
            *resolved.conflict.cell,  # country, topic
            frozenset(new_names.get(model, model) for model in (resolved.conflict.left, resolved.conflict.right)),
        ): resolved
        for resolved in resolved_conflicts
    }


def _resolved_by(resolved_conflict: ReviewedConflict) -> Literal["majority", "person"]:
    """Who settled a conflict: `person` for human reviewers, else `majority` for the vote of the judges."""
    return "person" if resolved_conflict.status is ConflictStatus.PERSON else "majority"


DEFAULT_MAX_LISTED = 50
VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value
COLUMN_OF_VERDICTS = {(VALID, VALID): 0, (INVALID, VALID): 1, (VALID, INVALID): 2, (INVALID, INVALID): 3}
"""Column of the input of `compare_verdicts_over_units`, by the verdicts of the first and the second side."""


def compare_same_judges(
    db: Database, first: ScoreSeries, second: ScoreSeries, max_listed: int
) -> VerdictDifferences | None:
    """Compare the same judges' verdicts on the two series' models in two audits.

    Returns:
        None for two series of one audit, whose models have no traces in common, and if there are no pairs of verdicts.
    """
    if first.audit_id == second.audit_id:
        return None
    selections = (
        VerdictSelection(first.audit_id, model=first.model),
        VerdictSelection(second.audit_id, model=second.model),
    )
    difference = _compare_verdicts(db, selections, (first.label, second.label), max_listed)
    return difference if difference.n else None


def compare_two_judges(
    db: Database, targets: Sequence[SeriesTarget], judges: Sequence[str], max_listed: int
) -> list[VerdictDifferences]:
    """Compare two judges in one audit, or the first judge in the first audit with the second in the second.

    Raises:
        StorageError: there is no such audit.
        UsageError: not two judges, more than two targets, or no trace with a verdict of both judges.
    """
    if len(judges) != 2 or len(targets) > 2:
        raise UsageError(
            "--judge compares exactly two judges, in one audit or across two.",
            "Write --judge ONE --judge OTHER, and name one audit or two.",
        )
    # With one target, both judges are taken from it.
    audit_ids = [audits.get_audit(db, target.audit).id for target in targets] * (2 if len(targets) == 1 else 1)
    models = [target.model for target in targets] * (2 if len(targets) == 1 else 1)
    selections = [
        VerdictSelection(audit_id, judge, model)
        for audit_id, judge, model in zip(audit_ids, judges, models, strict=True)
    ]
    difference = _compare_verdicts(db, (selections[0], selections[1]), (judges[0], judges[1]), max_listed)
    if not difference.n:
        raise UsageError(
            f"no trace has valid verdicts of both '{judges[0]}' and '{judges[1]}'.",
            _suggest_judge(db, audit_ids, judges)
            or "Name two judges of the same traces: `auditor report` lists the judges of an audit.",
        )
    return [difference]


def _suggest_judge(db: Database, audit_ids: Iterable[int], judges: Iterable[str]) -> str:
    """A question that names the judge closest to one without any verdict in its audit; empty if none is close."""
    for audit_id, judge in zip(audit_ids, judges, strict=True):
        known_judges = sorted({verdict.judge for verdict in load_verdicts(db, audit_id)})
        if judge not in known_judges and (hint := did_you_mean(judge, known_judges, "")):
            return hint
    return ""


def _compare_verdicts(
    db: Database, sides: tuple[VerdictSelection, VerdictSelection], labels: tuple[str, str], max_listed: int
) -> VerdictDifferences:
    """Compare the verdicts of two sides on identical answers; if no answer is identical, on the same cells."""
    ruling_pair_counts = count_ruling_pairs(db, *sides)
    has_same_answers = any(split.same_answer for split in ruling_pair_counts)
    counts_by_cell: dict[tuple[str, str], list[int]] = {}
    for split, n in ruling_pair_counts.items():
        if split.same_answer or not has_same_answers:
            # Counts of one cell in the order of `COLUMN_OF_VERDICTS`.
            counts_by_cell.setdefault((split.country, split.topic), [0] * len(COLUMN_OF_VERDICTS))[
                COLUMN_OF_VERDICTS[split.first, split.second]
            ] += n
    cells = sorted(counts_by_cell)
    cell_counts = np.array([counts_by_cell[cell] for cell in cells], dtype=np.intp).reshape(-1, len(COLUMN_OF_VERDICTS))
    n_both_valid, n_to_valid, n_to_invalid, n_both_invalid = cell_counts.sum(axis=0).tolist()
    flips = compare_verdicts_over_units(
        cell_counts, sampling_units([country for country, _ in cells], [topic for _, topic in cells])
    )
    n_flipped = sum(n for split, n in ruling_pair_counts.items() if split.first != split.second)
    return VerdictDifferences(
        first=labels[0],
        second=labels[1],
        about="answers" if has_same_answers else "cells",
        n=int(cell_counts.sum()),
        traces=count_paired_traces(db, *sides, same_answer=has_same_answers),
        both_valid=n_both_valid,
        both_invalid=n_both_invalid,
        to_valid=n_to_valid,
        to_invalid=n_to_invalid,
        other_answers=sum(ruling_pair_counts.values()) - int(cell_counts.sum()),
        change=flips.change,
        kappa=flips.kappa,
        flips=load_verdict_flips(db, *sides, max_listed),
        not_listed=max(0, n_flipped - max_listed),
    )
