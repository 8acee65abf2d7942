from __future__ import annotations

from auditor.review.session import ReviewSession
from auditor.review.summary import summarize_ratings
from auditor.storage.database import Database
from tests.review.test_judge_calibration import B, L, R
from tests.support.review_audit import save_review_audit


def test_the_summary_has_tables_of_raters_judges_and_weights(db: Database) -> None:
    audit = save_review_audit(db)
    assert [t.note for t in summarize_ratings(db, audit).tables] == [
        "Nobody has decided anything blind yet.",
        "No judged side has been decided blind yet.",
        "Nothing to learn from yet.",
    ]
    for rater in ("ada", "grace"):
        session = ReviewSession(db, audit, rater)
        for number, k in enumerate(sorted(session.conflict_keys())):
            item = session.load_item(k)
            negative_side = L if (item.left.score or 0.0) < (item.right.score or 0.0) else R
            session.decide(item, B if rater == "grace" and number < 2 else negative_side)
    raters, judges, weights = summarize_ratings(db, audit).tables
    rows = {row.name: row for table in (raters, judges, weights) for row in table.rows}
    assert rows["ada"].text == "20 decided blind"
    assert rows["ada and grace: same"].text == "90% [70%, 97%] of 20"
    assert rows["cedar: same"].text == "100% [90%, 100%] of 36"
    assert rows["cedar: curve"].text.startswith("0% VALID is ")
    assert "held out" in rows["cedar: error"].text
    assert float(rows["cedar: weight"].text) > 0
    assert "needs 30 ratings" in rows["alder: curve"].text
