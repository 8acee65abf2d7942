"""Failed requests are grouped by cause, and the models without a usable answer are named with the main one."""

from __future__ import annotations

from pathlib import Path

from auditor.error_messages import TRUNCATED_FIX
from auditor.reports.data.failures import ADAPTED_NOTE, find_unusable_models, group_failures, load_failure_groups
from auditor.storage.database import open_database
from auditor.storage.failure_queries import FailedRequestCount, count_model_outcomes
from tests.support.synthetic_audit import populate

DAY = "2026-01-0{}T00:00:00.000+00:00"


def failed(
    error: str | None,
    *,
    status: int | None = 400,
    requests: int = 1,
    unusable: int = 0,
    day: int = 1,
    purpose: str = "direct",
    name: str = "m",
) -> FailedRequestCount:
    first, last = DAY.format(day), DAY.format(day + 1)
    return FailedRequestCount(
        name, "openai/m", purpose, "client_error", status, error, requests, unusable, first, last, None
    )


def test_equal_causes_are_one_group_with_the_first_message() -> None:
    [group] = group_failures(
        [
            failed("Unsupported value 0.7 (request id: abc)", requests=3, day=2, purpose="review"),
            failed("Unsupported value 0.3 (request id: xyz)", requests=4, unusable=2),
        ]
    )
    assert group.message == "Unsupported value 0.3 (request id: xyz)"
    assert (group.requests, group.unusable, group.purposes) == (7, 2, ["direct", "review"])
    assert (group.first_at, group.last_at) == (DAY.format(1), DAY.format(3))


def test_other_statuses_models_and_words_are_other_groups_and_lost_calls_come_first() -> None:
    groups = group_failures(
        [
            failed("slow", requests=99, status=429),
            failed("bad", unusable=2),
            failed("bad", status=422),
            failed("bad", name="n", unusable=1),
            failed("other"),
        ]
    )
    assert [(group.name, group.message, group.status) for group in groups[:3]] == [
        ("m", "bad", 400),
        ("n", "bad", 400),
        ("m", "slow", 429),
    ]
    assert len(groups) == 5


def test_bodies_recorded_by_earlier_versions_are_shown_as_their_message() -> None:
    [group] = group_failures(
        [
            failed('{"error": {"message": "Model Not Exist", "type": "invalid_request_error"}}', day=1),
            failed("Model Not Exist", day=2),
        ]
    )
    assert group.message == "Model Not Exist"
    assert "model's name" in group.how_to_fix


def test_a_failure_without_a_message_says_so() -> None:
    groups = group_failures([failed(None), failed(None, status=None)])
    assert {group.message for group in groups} == {"the server answered with HTTP status 400", "no message"}


def test_a_model_without_a_usable_answer_is_named_with_its_main_failure(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audits.db") as db:
        populate(db)
        assert find_unusable_models(count_model_outcomes(db, 1), load_failure_groups(db, 1)) == []
        db.write(lambda c: c.exec_driver_sql("UPDATE trace SET outcome='client_error', score=NULL WHERE model='alder'"))
        db.write(lambda c: c.exec_driver_sql("UPDATE score SET score=NULL WHERE model='alder'"))
        db.write(lambda c: c.exec_driver_sql("UPDATE verdict SET outcome='unparsed' WHERE judge='birch'"))
        failures = group_failures([failed("bad", name="alder", unusable=3), failed("x", name="birch")])
        answers, verdicts = find_unusable_models(count_model_outcomes(db, 1), failures)
    assert (answers.name, answers.is_judge, answers.reason) == ("alder", False, "HTTP 400: bad")
    assert (verdicts.name, verdicts.is_judge) == ("birch", True)
    assert verdicts.reason == f"{verdicts.planned} of {verdicts.planned} are 'unparsed'"


def test_requests_by_which_the_audit_learned_need_no_fix() -> None:
    message = "Unsupported value: 'temperature' does not support 0.7 with this model."
    assert [group.how_to_fix for group in group_failures([failed(message)])] == [ADAPTED_NOTE]
    assert "temperature" in group_failures([failed(message, unusable=1)])[0].how_to_fix
    assert "API key" in group_failures([failed("Wrong key", status=401)])[0].how_to_fix
    assert "later" in group_failures([failed("overloaded", status=503)._replace(outcome="server_error")])[0].how_to_fix
    assert group_failures([failed(message, status=500)._replace(outcome="server_error")])[0].how_to_fix == ADAPTED_NOTE


def test_the_fix_of_an_answer_that_was_cut_off_is_more_room() -> None:
    cut_off = failed("set max_tokens", status=200, unusable=1)._replace(outcome="truncated")
    assert group_failures([cut_off])[0].how_to_fix == TRUNCATED_FIX
    assert group_failures([cut_off._replace(unusable_calls=0)])[0].how_to_fix == ADAPTED_NOTE
