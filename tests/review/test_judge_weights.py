from __future__ import annotations

import tomllib
from math import log

import pytest

from auditor.config import AuditConfig
from auditor.domain import Decision
from auditor.errors import ReviewError
from auditor.review.judge_weights import estimate_panel_weights, format_weights_toml, weights_to_dict
from auditor.review.session import ReviewSession
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit


def decide(db: Database, audit: Audit, conflicts: int, *, with_judges: bool = True) -> None:
    """Decide the first `conflicts` for the negative side, which the case's judges prefer, or against it."""
    session = ReviewSession(db, audit, "ada")
    for key in sorted(session.conflict_keys())[:conflicts]:
        item = session.load_item(key)
        strict_left = (item.left.score or 0.0) < (item.right.score or 0.0)
        session.decide(item, Decision.LEFT if strict_left == with_judges else Decision.RIGHT)


def test_exported_weights_are_a_valid_configuration(db: Database) -> None:
    audit = save_review_audit(db)
    decide(db, audit, 20)
    panel_weights = estimate_panel_weights(db, audit)
    panel = tomllib.loads(format_weights_toml(panel_weights))["panel"]
    assert panel["vote"] == "weighted"
    config = AuditConfig.model_validate(
        AuditConfig.model_validate_json(audit.config or "").model_dump() | {"panel": panel}
    )
    assert list(config.panel.weights) == ["alder", "birch", "cedar"]
    assert panel == weights_to_dict(panel_weights)["panel"]
    # cedar agrees on all n sides: its weight is log((n + 1) / 1) over the mean of the estimated judges' weights.
    estimated_judges = [j for j in panel_weights.judges if j.is_estimated]
    assert sum(j.weight for j in estimated_judges) == pytest.approx(len(estimated_judges))
    cedar = next(j for j in panel_weights.judges if j.judge == "cedar")
    mean = sum(
        log(
            (j.raw_agreement.n * (j.raw_agreement.value or 0) + 1)
            / (j.raw_agreement.n * (1 - (j.raw_agreement.value or 0)) + 1)
        )
        for j in estimated_judges
    )
    mean /= len(estimated_judges)
    assert cedar.weight == pytest.approx(log(cedar.raw_agreement.n + 1) / mean)
    assert f"agrees with people on 100% of {cedar.raw_agreement.n} sides" in format_weights_toml(panel_weights)


def test_a_judge_with_too_few_sides_gets_the_average_weight(db: Database) -> None:
    audit = save_review_audit(db)
    decide(db, audit, 6)
    panel_weights = estimate_panel_weights(db, audit)
    by_judge = {j.judge: j for j in panel_weights.judges}
    assert by_judge["cedar"].is_estimated
    assert not by_judge["alder"].is_estimated
    assert by_judge["alder"].weight == 1.0
    assert f"too few sides ({by_judge['alder'].raw_agreement.n} of at least 10)" in format_weights_toml(panel_weights)


def test_too_few_decisions_are_refused_with_the_counts_per_judge(db: Database) -> None:
    audit = save_review_audit(db)
    with pytest.raises(ReviewError, match=r"at least 10 answers .*alder 0, birch 0, cedar 0"):
        estimate_panel_weights(db, audit)
    decide(db, audit, 4)
    with pytest.raises(ReviewError, match=r"cedar 8\."):
        estimate_panel_weights(db, audit)


def test_judges_no_better_than_chance_are_refused(db: Database) -> None:
    audit = save_review_audit(db)
    decide(db, audit, 20, with_judges=False)
    with pytest.raises(ReviewError, match="no judge of 'moral' agrees with people more often than chance"):
        estimate_panel_weights(db, audit)
