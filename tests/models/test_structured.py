from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from auditor.models.answer_schemas import MoralJudgement, Paraphrases
from auditor.models.litellm_client import drop_schema_keywords
from auditor.models.review_schemas import TraceReview
from auditor.models.structured import (
    SCHEMA_BY_NAME,
    enumerate_bounded_numbers,
    parse_structured_answer,
    response_format,
)
from tests.support.review_answers import rate_aspects

SENT_SCHEMAS = Path(__file__).with_name("sent_schemas.json")
"""What is sent for each schema, by the schema's name. Names of removed schemas stay, so that none is reused."""
RETIRED: set[str] = set()
"""Names of recorded schemas that were replaced on purpose."""
MAX_WORDS = 40
VALID_JUDGEMENT = {"norms": "a", "reasoning": "b", "score": -0.5}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(VALID_JUDGEMENT),
        f"```json\n{json.dumps(VALID_JUDGEMENT)}\n```",
        f"Here it is: {json.dumps(VALID_JUDGEMENT)} Done.",
        json.dumps({**VALID_JUDGEMENT, "score": 1.0}) + json.dumps(VALID_JUDGEMENT),  # the last one is the answer
    ],
)
def test_json_is_read_anywhere_in_the_text(text: str) -> None:
    assert parse_structured_answer(MoralJudgement, text) == MoralJudgement(norms="a", reasoning="b", score=-0.5)


@pytest.mark.parametrize(
    ("text", "expected_error"),
    [
        ("", "JSON"),
        ("no", "JSON"),
        (json.dumps({**VALID_JUDGEMENT, "score": 1.01}), "score: Input should be less than or equal to 1"),
        (json.dumps({**VALID_JUDGEMENT, "score": "0.5"}), "score: Input should be a valid number"),
        (json.dumps({**VALID_JUDGEMENT, "score": None}), "score"),
        (json.dumps({"norms": "a", "reasoning": "b"}), "score: Field required"),
        (json.dumps({**VALID_JUDGEMENT, "more": 1}), "more: Extra inputs"),
        (json.dumps(VALID_JUDGEMENT)[:-9], "JSON"),
        ('{"norms": "a", "reasoning": "b", "score": NaN}', "score"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_an_unreadable_answer_gives_the_reason(text: str, expected_error: str) -> None:
    error_text = parse_structured_answer(MoralJudgement, text)
    assert isinstance(error_text, str)
    assert expected_error in error_text
    assert "\n" not in error_text


def test_a_verdict_may_be_in_any_case_but_not_in_other_words() -> None:
    review = {**rate_aspects(score_fit=False), "justification": "x"}
    parsed_review = parse_structured_answer(TraceReview, json.dumps({**review, "verdict": "Valid "}))
    assert isinstance(parsed_review, TraceReview)
    assert parsed_review.verdict == "VALID"
    assert isinstance(parse_structured_answer(TraceReview, json.dumps({**review, "verdict": "mostly valid"})), str)


def test_the_format_asks_for_the_schema_and_a_strict_provider_gets_no_length() -> None:
    json_schema = response_format(MoralJudgement, 20)["json_schema"]
    assert json_schema["name"] == "MoralJudgement"
    assert json_schema["schema"]["properties"]["norms"]["maxLength"] == 160
    assert json_schema["schema"]["required"] == ["norms", "reasoning", "score"]
    assert "maxLength" not in json.dumps(drop_schema_keywords(json_schema["schema"], {"maxLength"}))


def test_bounded_numbers_become_enumerations() -> None:
    score = enumerate_bounded_numbers(response_format(MoralJudgement, 20))["json_schema"]["schema"]["properties"][
        "score"
    ]
    assert (score["enum"][0], score["enum"][10], score["enum"][-1], len(score["enum"])) == (-1.0, 0.0, 1.0, 21)


# --- what is sent for each schema ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sent_schemas() -> dict[str, Any]:
    """The recorded schemas; with AUDITOR_GOLDEN=write, schemas with new names are added to the file first."""
    recorded: dict[str, Any] = json.loads(SENT_SCHEMAS.read_text(encoding="utf-8")) if SENT_SCHEMAS.exists() else {}
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        recorded = {name: response_format(schema, MAX_WORDS) for name, schema in SCHEMA_BY_NAME.items()} | recorded
        SENT_SCHEMAS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return recorded


@pytest.mark.parametrize("name", SCHEMA_BY_NAME)
def test_a_schema_never_changes_under_its_name(name: str, sent_schemas: dict[str, Any]) -> None:
    """Titles, descriptions (docstrings and field descriptions), the order of fields and every keyword are compared.

    To record a new schema: `AUDITOR_GOLDEN=write pytest tests/models/test_structured.py`. This never overwrites an
    entry: to change a schema, give it a new name.
    """
    assert name in sent_schemas, (
        f"The schema {name} is not recorded. If it is new, add it: AUDITOR_GOLDEN=write pytest {__file__}. "
        "If it is an old one under a new name, restore the old name: answers paid for under it would be asked again."
    )
    assert json.dumps(response_format(SCHEMA_BY_NAME[name], MAX_WORDS)) == json.dumps(sent_schemas[name]), (
        f"The schema {name} changed under its name. The ledger's key holds only the name, so paid answers to the old "
        "wording would be taken for answers to the new one. Give it a new name."
    )


def test_no_recorded_schema_is_lost(sent_schemas: dict[str, Any]) -> None:
    """A renamed schema class would ask all its paid answers again."""
    assert set(sent_schemas) - set(SCHEMA_BY_NAME) == RETIRED


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (MoralJudgement, json.dumps(dict.fromkeys(map(str, range(600_000)), 1))),
        (Paraphrases, json.dumps({"paraphrases": [1] * 2_000_000})),
        (MoralJudgement, "<" * 7_500_000),
    ],
    ids=["many fields", "many faulty texts", "many marks"],
)
def test_eight_megabytes_are_read_in_less_than_a_second(structure: type[BaseModel], text: str) -> None:
    parse_structured_answer(structure, "{}")  # imports instructor
    started_at = time.thread_time()
    assert isinstance(parse_structured_answer(structure, text), str)
    assert time.thread_time() - started_at < 1
