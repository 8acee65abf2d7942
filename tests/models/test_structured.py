from __future__ import annotations

import json

import pytest

from auditor.models.door import without_keywords
from auditor.models.structured import MoralJudgement, TraceReview, read, response_format, with_choices

GOOD = {"norms": "a", "reasoning": "b", "score": -0.5}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD)}\n```",
        f"Here it is: {json.dumps(GOOD)} Done.",
        json.dumps({**GOOD, "score": 1.0}) + json.dumps(GOOD),  # the last one is the answer
    ],
)
def test_a_structure_is_read_wherever_it_stands(text: str) -> None:
    assert read(MoralJudgement, text) == MoralJudgement(norms="a", reasoning="b", score=-0.5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "JSON"),
        ("no", "JSON"),
        (json.dumps({**GOOD, "score": 1.01}), "score: Input should be less than or equal to 1"),
        (json.dumps({**GOOD, "score": "0.5"}), "score: Input should be a valid number"),
        (json.dumps({**GOOD, "score": None}), "score"),
        (json.dumps({"norms": "a", "reasoning": "b"}), "score: Field required"),
        (json.dumps({**GOOD, "more": 1}), "more: Extra inputs"),
        (json.dumps(GOOD)[:-9], "JSON"),
        ('{"norms": "a", "reasoning": "b", "score": NaN}', "score"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    got = read(MoralJudgement, text)
    assert isinstance(got, str)
    assert why in got
    assert "\n" not in got


def test_a_verdict_may_be_in_any_case_but_not_in_other_words() -> None:
    review = {"cultural_accuracy": True, "logical_consistency": True, "score_fit": False, "justification": "x"}
    got = read(TraceReview, json.dumps({**review, "verdict": "Valid "}))
    assert isinstance(got, TraceReview)
    assert got.verdict == "VALID"
    assert isinstance(read(TraceReview, json.dumps({**review, "verdict": "mostly valid"})), str)


def test_the_format_asks_for_the_schema_and_a_strict_provider_gets_no_length() -> None:
    asked = response_format(MoralJudgement, 20)["json_schema"]
    assert asked["name"] == "MoralJudgement"
    assert asked["schema"]["properties"]["norms"]["maxLength"] == 160
    assert asked["schema"]["required"] == ["norms", "reasoning", "score"]
    assert "maxLength" not in json.dumps(without_keywords(asked["schema"], {"maxLength"}))


def test_a_grammar_without_bounds_gets_choices() -> None:
    score = with_choices(response_format(MoralJudgement, 20))["json_schema"]["schema"]["properties"]["score"]
    assert (score["enum"][0], score["enum"][10], score["enum"][-1], len(score["enum"])) == (-1.0, 0.0, 1.0, 21)
