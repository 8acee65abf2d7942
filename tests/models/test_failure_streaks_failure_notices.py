from __future__ import annotations

from datetime import UTC, datetime

from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose
from auditor.models.failure_streaks import FailureNotices

CALL = Call("m", "openai/m", (Message("user", "hi"),), Purpose.REVIEW)


def failed(error: str | None, status: int | None = 400, outcome: Outcome = Outcome.CLIENT_ERROR) -> Answer:
    attempts = () if status is None else (Attempt(1, datetime.now(UTC), 0.1, outcome, status, error),)
    return Answer("key", outcome, error=error, attempts=attempts)


def notices_of(*answers: Answer) -> list[str]:
    texts = list[str]()
    notices = FailureNotices(texts.append)
    for answer in answers:
        notices.record(CALL, answer)
    return texts


def test_the_first_failure_of_each_kind_is_shown_with_its_fix() -> None:
    assert notices_of(failed("Model Not Exist"), failed("odd"), failed("odd"), failed("odd", 422)) == [
        "'m' failed (review, HTTP 400): Model Not Exist. "
        "How to fix: Check the model's name in `model`, and that the account may use it.",
        "'m' failed (review, HTTP 400): odd.",
        "'m' failed (review, HTTP 422): odd.",
    ]


def test_failures_that_differ_in_numbers_and_names_only_are_counted_at_powers_of_ten() -> None:
    texts = notices_of(*(failed(f"no '{n}' at {n}") for n in range(120)))
    assert texts == [
        "'m' failed (review, HTTP 400): no '0' at 0.",
        "10 calls so far: 'm' failed (review, HTTP 400): no '9' at 9.",
        "100 calls so far: 'm' failed (review, HTTP 400): no '99' at 99.",
    ]


def test_answers_are_not_failures_and_calls_without_a_response_name_their_outcome() -> None:
    assert notices_of(Answer("key", Outcome.OK), Answer("key", Outcome.REFUSED)) == []
    assert notices_of(failed(None, None, Outcome.TIMEOUT)) == ["'m' failed (review, timeout): no message."]
