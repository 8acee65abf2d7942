"""How direct answers were requested: scores by form, and parameters that were not sent as configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Outcome
from auditor.storage import results
from auditor.storage.capabilities import Alteration, load_direct_alterations, load_scores_by_form
from auditor.storage.database import open_database
from tests.support.request_reports import change_answers, direct_keys
from tests.support.synthetic_audit import populate


async def test_scores_are_averaged_by_model_form_and_cell(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=2, countries=2, topics=2)
        assert load_scores_by_form(db, audit.id) == []
        keys = direct_keys(db, "alder")
        await change_answers(db, keys[:6], form="tool")
        await change_answers(db, keys[6:], form="json_schema")
        scores = load_scores_by_form(db, audit.id)
        traces = [
            trace
            for trace in results.load_traces(db, audit.id)
            if trace.outcome is Outcome.OK and trace.key in keys[:6] and trace.score is not None
        ]
    assert {score.model for score in scores} == {"alder"}
    assert [score.form for score in scores] == sorted(score.form for score in scores)
    by_tool = [score for score in scores if score.form == "tool"]
    assert sum(score.answers for score in by_tool) == len(traces)
    total = sum(score.score * score.answers for score in by_tool)
    assert total == pytest.approx(sum(trace.score or 0.0 for trace in traces))


async def test_alterations_of_direct_questions_are_listed_once_for_each_model(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=2, countries=2, topics=2)
        await change_answers(db, direct_keys(db, "alder"), altered="seed, temperature")
        alterations = load_direct_alterations(db, audit.id)
        assert Alteration("alder", "direct", "seed, temperature") in alterations
        assert len(alterations) == len(set(alterations))
        assert load_direct_alterations(db, audit.id + 1) == []
