"""Opinions and the shares of people's answers are stored as they were, and replaced as a whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from auditor.domain import Cell, Outcome, Survey, SurveyCell
from auditor.probes.distribution.opinion_rows import load_survey_shares, replace_opinions
from auditor.probes.distribution.opinions import Opinion, OpinionMode, ScaleOrder
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import load_records

CELL = Cell("Japan", "divorce")
SURVEY = Survey("s", "s", "s", "{topic} {country}", ("low", "high"), (SurveyCell(CELL, 0.1),))
OPINIONS = [
    Opinion("a", CELL, "", "", OpinionMode.SAMPLED, ScaleOrder.DOWN, 0, Outcome.UNPARSED, None, 1),
    Opinion("a", CELL, "", "", OpinionMode.SAMPLED, ScaleOrder.UP, 0, Outcome.OK, (0.0, 1.0), 1),
    Opinion("a", CELL, "sex", "women", OpinionMode.VERBALIZED, ScaleOrder.UNKNOWN, 0, Outcome.OK, (1 / 3, 2 / 3)),
]


def test_stored_opinions_are_read_in_the_order_of_their_key(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/a.db") as db:
        audit = audits.save_audit(db, name="a", config=None, config_hash="x", survey=SURVEY, environment={})
        assert load_records(db, audit.id, Opinion) == []
        assert load_survey_shares(db, audit.id) is None
        db.write(partial(replace_opinions, audit_id=audit.id, opinions=OPINIONS[::-1], survey_shares="{}"))
        assert load_records(db, audit.id, Opinion) == OPINIONS
        db.write(partial(replace_opinions, audit_id=audit.id, opinions=OPINIONS[:1], survey_shares='{"points": []}'))
        assert load_records(db, audit.id, Opinion) == OPINIONS[:1]
        assert load_survey_shares(db, audit.id) == '{"points": []}'


def test_a_deleted_audit_has_no_opinions(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/a.db") as db:
        audit = audits.save_audit(db, name="a", config=None, config_hash="x", survey=SURVEY, environment={})
        db.write(partial(replace_opinions, audit_id=audit.id, opinions=OPINIONS, survey_shares="{}"))
        audits.delete_audit(db, audit)
        assert load_records(db, audit.id, Opinion) == []
        assert load_survey_shares(db, audit.id) is None
