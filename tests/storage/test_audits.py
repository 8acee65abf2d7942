"""When an audit's calls to models finished, by the stages that it goes through."""

from __future__ import annotations

from itertools import count

import pytest

from auditor.storage import audits
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate


def test_only_an_end_of_calls_changes_when_an_audit_finished(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = (f"2026-01-01T00:00:{second:02}" for second in count())
    with open_database(storage) as db:
        audit = populate(db, models=2, countries=2, topics=2, samples=1)
        monkeypatch.setattr(audits, "utc_now", lambda: next(times))

        def finish(stage: str) -> str | None:
            audits.set_stage(db, audit.id, stage)
            return audits.get_audit(db, audit.name).finished_at

        audits.set_stage(db, audit.id, "resolve")
        end = finish(audits.FINISHED)
        # An exclusion opens a conflict, which people decide.
        assert [finish(stage) for stage in (audits.AWAITING_HUMAN, audits.REPORTING, audits.FINISHED)] == [end] * 3
        assert str(finish(audits.FINISHED)) > str(end)  # an experiment has asked more
