from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from auditor.models.answer_schemas import MoralJudgement
from auditor.models.litellm_client import drop_schema_keywords
from auditor.models.structured import enumerate_bounded_numbers, list_schemas, response_format

SENT_SCHEMAS = Path(__file__).with_name("sent_schemas.json")
"""What is sent for each schema, by the schema's name. Names of removed schemas stay, so that none is reused."""
RETIRED: set[str] = set()
"""Names of recorded schemas that were replaced on purpose."""
MAX_WORDS = 40


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
        recorded = {name: response_format(schema, MAX_WORDS) for name, schema in list_schemas().items()} | recorded
        SENT_SCHEMAS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return recorded


@pytest.mark.parametrize("name", list_schemas())
def test_a_schema_never_changes_under_its_name(name: str, sent_schemas: dict[str, Any]) -> None:
    """Titles, descriptions (docstrings and field descriptions), the order of fields and every keyword are compared.

    To record a new schema: `AUDITOR_GOLDEN=write pytest tests/models/test_structured.py`. This never overwrites an
    entry: to change a schema, give it a new name.
    """
    assert name in sent_schemas, (
        f"The schema {name} is not recorded. If it is new, add it: AUDITOR_GOLDEN=write pytest {__file__}. "
        "If it is an old one under a new name, restore the old name: answers paid for under it would be asked again."
    )
    assert json.dumps(response_format(list_schemas()[name], MAX_WORDS)) == json.dumps(sent_schemas[name]), (
        f"The schema {name} changed under its name. The ledger's key holds only the name, so paid answers to the old "
        "wording would be taken for answers to the new one. Give it a new name."
    )


def test_no_recorded_schema_is_lost(sent_schemas: dict[str, Any]) -> None:
    """A renamed schema class would ask all its paid answers again."""
    assert set(sent_schemas) - set(list_schemas()) == RETIRED
