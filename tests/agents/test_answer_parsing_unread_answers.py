"""The notice about a model none of whose answers can be read."""

from __future__ import annotations

from auditor.agents.answer_parsing import MAX_UNREAD_ANSWERS, IgnoredKeys, UnreadAnswers
from auditor.domain import Answer, Call, Message, Outcome, Purpose


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


def test_keys_that_were_not_asked_for_are_counted_by_model() -> None:
    ignored = IgnoredKeys()
    for name, more in (("birch", ', "country": "x"'), ("birch", ', "country": "y", "note": 1'), ("cedar", "")):
        call = Call(name, "openai/x", (Message("user", "?"),), Purpose.DIRECT, schema="MoralJudgement")
        text = f'{{"norms": "a", "reasoning": "b", "score": 0.5{more}}}'
        ignored.record(call, Answer("k", Outcome.OK, text=text))
        ignored.record(call, Answer("k", Outcome.OK, text="no JSON"))
        ignored.record(call, Answer("k", Outcome.REFUSED))
    assert list(ignored.notices()) == [
        "2 answers of 'birch' have keys that were not asked for, which are ignored: 'country' (2), 'note' (1)."
    ]
