"""The notice about a model none of whose answers can be read."""

from __future__ import annotations

from auditor.agents.unread_answers import MAX_UNREAD_ANSWERS, UnreadAnswers
from auditor.domain import Outcome


def test_one_notice_after_twenty_answers_in_a_row_without_a_score() -> None:
    notices: list[str] = []
    unread = UnreadAnswers(notices.append)
    for i in range(MAX_UNREAD_ANSWERS - 1):
        unread.record("birch", Outcome.TRUNCATED if i % 2 else Outcome.UNPARSED)
        unread.record("cedar", Outcome.UNPARSED)
    assert notices == []
    unread.record("birch", Outcome.UNPARSED)
    unread.record("birch", Outcome.UNPARSED)
    [notice] = notices
    assert "the last 20 answers of 'birch' has a score (11 unparsed, 9 truncated)" in notice
    assert "max_tokens" in notice


def test_an_answer_with_a_score_ends_the_streak_and_a_failed_request_is_not_counted() -> None:
    notices: list[str] = []
    unread = UnreadAnswers(notices.append)
    for outcome in [Outcome.UNPARSED] * 19 + [Outcome.TIMEOUT] * 5 + [Outcome.OK] + [Outcome.UNPARSED] * 19:
        unread.record("birch", outcome)
    assert notices == []
    unread.record("birch", Outcome.REFUSED)
    assert len(notices) == 1
