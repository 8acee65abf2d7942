"""A sample to label in the audit of `save_review_audit`."""

from __future__ import annotations

from auditor.domain.labels import LabelKind
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit


def save_labelling_audit(db: Database, n: int = 30) -> Audit:
    """Fill a database with the audit `moral`, unless it has it, and a sample of `n` of its 180 traces, at least 30."""
    audit = audits.find_audit(db, "moral") or save_review_audit(db)
    draw_label_sample(db, audit, LabelKind.TRACE, n, stratify=("model",))
    return audit


def open_session(db: Database, audit: Audit, rater: str = "ada", share: float = 0.0) -> LabellingSession:
    """A rater's session in which a share of the units has two raters."""
    return LabellingSession(db, audit, rater, second_rater_share=share)
