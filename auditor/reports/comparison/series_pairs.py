"""Which series of scores are compared: from what a person names, `AUDIT` or `AUDIT:MODEL`, to pairs of series."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, Survey
from auditor.errors import UsageError
from auditor.reports.report_source import ReportSource, require_survey_audit
from auditor.storage import audits, results
from auditor.storage.database import Database

SeriesPair = tuple["ScoreSeries", "ScoreSeries"]
TASK_COMPARISON_HINT = (
    "`auditor report` has each model's accuracy with its interval; --judge, twice, compares judges of one audit."
)


class ComparisonTarget(NamedTuple):
    """What a person named; without a model, all of the audit's."""

    audit: str
    model: str | None

    @property
    def label(self) -> str:
        return self.audit if self.model is None else f"{self.audit}:{self.model}"


@dataclass(frozen=True)
class ScoreSeries:
    """One model's scores in one audit by one method, over the cells people were asked about."""

    label: str
    audit_id: int
    audit: str
    model: str
    method: str
    complete: bool
    survey: Survey
    scores: dict[Cell, float]
    """Usable scores only."""

    @property
    def survey_scores(self) -> dict[Cell, float]:
        return self.survey.scores

    def scores_on(self, cells: Iterable[Cell]) -> NDArray[np.float64]:
        """Scores on cells, nan where there is none."""
        return np.array([self.scores.get(cell, np.nan) for cell in cells], dtype=np.float64)


def parse_target(text: str) -> ComparisonTarget:
    """`AUDIT` or `AUDIT:MODEL`; an audit's name holds no colon, a model's may."""
    audit, _, model = text.partition(":")
    return ComparisonTarget(audit, model or None)


def load_series(
    db: Database, audit_name: str, methods: Sequence[str] = (), *, label_prefix: str = ""
) -> list[ScoreSeries]:
    """Every series of an audit, by method and then in the order of its models; `prefix` goes before its label.

    Raises:
        StorageError: there is no such audit.
        UsageError: it is of a task.
    """
    audit = audits.get_audit(db, audit_name)
    config = AuditConfig.model_validate_json(audit.config) if audit.config else None
    survey = audits.load_audit_survey(db, audit)
    require_survey_audit(audit_name, survey, "comparing scores", TASK_COMPARISON_HINT)
    source = ReportSource(audit, config, survey, results.load_scores(db, audit.id))
    several = len({method for method, _ in source.columns}) > 1
    return [
        ScoreSeries(
            label=f"{label_prefix}{model}" + (f" ({method})" if several else ""),
            audit_id=audit.id,
            audit=audit_name,
            model=model,
            method=method,
            complete=audit.stage in audits.FINAL_STAGES,
            survey=survey,
            scores={
                c: float(v) for c, v in zip(source.cells, row, strict=True) if not np.isnan(v) and c in survey.scores
            },
        )
        for (method, model), row in zip(source.columns, source.score_matrix, strict=True)
        if not methods or method in methods
    ]


def match_series_pairs(
    db: Database,
    targets: Sequence[ComparisonTarget],
    methods: Sequence[str] = (),
    *,
    all_pairs: bool = False,
    renamed_models: Mapping[str, str] = MappingProxyType({}),
) -> list[SeriesPair]:
    """The pairs to compare; the first of a pair is what the other is measured against.

    One audit alone: all pairs of its models. Several: each against the first, model by model of the same name; where
    models are named, or each side has only one, those.

    Args:
        methods: only these; none is all.
        every: all pairs of targets, not only those with the first.
        renamed: models that have another name in the audits after the first: old name to new.

    Raises:
        StorageError: there is no such audit.
        UsageError: nothing can be paired, or nothing bears a name that is renamed; the message says what there is.
    """
    audits_named = dict.fromkeys(t.audit for t in targets)
    several = len(audits_named) > 1
    loaded = {name: load_series(db, name, methods, label_prefix=f"{name}:" * several) for name in audits_named}
    if len(targets) == 1:
        found = list(itertools.combinations(_select_series(loaded, targets[0]), 2))
        found = [(a, b) for a, b in found if a.method == b.method]
        if targets[0].model is None and found:
            return found
        names = ", ".join(dict.fromkeys(s.model for s in loaded[targets[0].audit])) or "no series of scores"
        raise UsageError(
            f"'{targets[0].label}' alone gives nothing to compare: it has {names}.",
            "Name two audits, or AUDIT:MODEL twice.",
        )
    chosen = itertools.combinations(targets, 2) if all_pairs else ((targets[0], t) for t in targets[1:])
    pairs = [pair for first, second in chosen for pair in _match_by_model(loaded, first, second, renamed_models)]
    for old, new in renamed_models.items():
        if not any((a.model, b.model) == (old, new) for a, b in pairs):
            raise UsageError(
                f"no '{old}' on the first side was paired with a '{new}' on another.",
                "Write --map OLD=NEW with the names as `auditor report` gives them.",
            )
    return pairs


def _match_by_model(
    series_by_audit: dict[str, list[ScoreSeries]],
    first: ComparisonTarget,
    second: ComparisonTarget,
    renamed_models: Mapping[str, str],
) -> list[SeriesPair]:
    """Series of one name, or of what a name became; where there are none and each side has one model, these."""
    ones, others = _select_series(series_by_audit, first), _select_series(series_by_audit, second)
    found = [(a, b) for a in ones for b in others if a.method == b.method and a is not b]
    by_name = [(a, b) for a, b in found if b.model == renamed_models.get(a.model, a.model)]
    if by_name or (
        found and len({s.model for pair in found for s in pair}) == 2 == len({s.model for s in ones + others})
    ):
        return by_name or found
    sides = zip((first, second), (ones, others), strict=True)
    told = [f"'{t.label}' has {', '.join(dict.fromkeys(s.model for s in side)) or 'no scores'}" for t, side in sides]
    raise UsageError(
        f"{' and '.join(told)}: nothing to pair.",
        "Name both as AUDIT:MODEL, of one method, or say with --map OLD=NEW what became of a name.",
    )


def _select_series(series_by_audit: dict[str, list[ScoreSeries]], target: ComparisonTarget) -> list[ScoreSeries]:
    series = series_by_audit[target.audit]
    if target.model is None:
        return series
    found = [s for s in series if s.model == target.model]
    if not found:
        names = ", ".join(dict.fromkeys(s.model for s in series)) or "none"
        raise UsageError(f"audit '{target.audit}' has no scores of '{target.model}'.", f"Its models: {names}.")
    return found
