"""Figures of the judges of compared audits that rest on people's labels, computed once for each audit."""

from __future__ import annotations

from auditor.domain.labels import LabelKind
from auditor.reports.data.differences.series_pairs import ScoreSeries
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.judge_quality.schema import JudgeQualityReport
from auditor.reports.data.source_loading import load_source
from auditor.storage.database import Database
from auditor.storage.label_draws import load_draw


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
