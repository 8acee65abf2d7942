"""One more review aspect needs its declaration only: no other source changes, and no migration of the database.

`tests/support/added_aspect.py` declares the aspect in a process of its own, since schemas are created at import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.domain.decisions import REVIEW_ASPECTS, aspect_questions
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.storage.database import open_database
from auditor.storage.schema import REVISION
from tests.support.added_aspect import ASPECT
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.synthetic_audit import populate

ROOT = Path(__file__).parents[2]
NAMES = [aspect.name for aspect in REVIEW_ASPECTS]
Results = dict[str, Any]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What `tests/support/added_aspect.py` prints, on a database that was made without the aspect."""
    folder = tmp_path_factory.mktemp("added")
    storage = f"sqlite:///{folder / 'audits.db'}"
    with open_database(storage) as db:
        populate(db, countries=5, topics=5)
    environment = {**os.environ, KEY_VARIABLE: KEY, "AUDITOR_TRUST": f"{KEY_VARIABLE}@127.0.0.1"}
    command = [sys.executable, "-m", "tests.support.added_aspect", storage, str(folder / "tables")]
    completed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    with open_database(storage, create=False) as db:  # which refuses another revision
        assert db.upgraded is None, REVISION
    printed: Results = json.loads(completed.stdout.splitlines()[-1])
    return printed


def test_judges_are_asked_for_it(results: Results) -> None:
    assert ASPECT.survey is not None
    keys = [question.key for question in aspect_questions(for_task=False).values()]
    for body in results["requests"]:
        schema = body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"])[: len(keys) + 1] == [*keys, ASPECT.survey.key]
        assert ASPECT.survey.key in schema["required"]
        (system, *_) = [message["content"] for message in body["messages"] if message["role"] == "system"]
        assert f'; "{ASPECT.survey.key}": {ASPECT.survey.question}, true or false; "justification"' in system
    assert results["requests"]
    assert ASPECT.survey.key not in results["task_schema"], "it does not apply to tasks"


def test_their_ratings_are_stored_and_exported(results: Results) -> None:
    assert {frozenset(ratings) for ratings in results["stored"]} == {frozenset([*NAMES, ASPECT.name])}
    ratings = [ratings[ASPECT.name] for ratings in results["stored"]]
    assert set(ratings) == {True, False}
    assert [row[ASPECT.name] for row in results["exported"]] == ratings
    assert [name for name in results["exported"][0] if name in (*NAMES, ASPECT.name)] == [*NAMES, ASPECT.name]
    assert {ASPECT.name, *NAMES} <= set(results["inspect"][0])


def test_the_report_has_its_share_and_its_column(results: Results) -> None:
    shares = [row[ASPECT.name] for row in results["report"]]
    assert sum(share["n"] for share in shares) == len(results["stored"])
    met = sum(share["value"] * share["n"] for share in shares)
    assert met == pytest.approx(sum(ratings[ASPECT.name] for ratings in results["stored"]))
    assert results["report_schema"] == [*PeerAgreementRow.model_fields, ASPECT.name]
    assert ASPECT.survey is not None
    last_title = list(aspect_questions(for_task=False).values())[-1].title
    assert f"{last_title} | {ASPECT.survey.title} |" in results["markdown"]


def test_the_terminal_names_it_where_a_trace_lacks_it(results: Results) -> None:
    assert any(f"lacks {ASPECT.label}" in text or f", {ASPECT.label}" in text for text in results["evidence"])


def test_an_audit_made_without_it_has_no_share_of_it(results: Results) -> None:
    assert results["earlier"]
    for row in results["earlier"]:
        assert (row[ASPECT.name]["value"], row[ASPECT.name]["reason"]) == (None, "no verdict rates this aspect")
        assert all(row[name]["value"] is not None for name in NAMES)
