"""Stored values are read back as the types that records declare."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from auditor.domain import Outcome, Rating, Ruling, Verdict
from auditor.domain.semantic import MoralAnswerRecord
from auditor.storage.record_parsing import field_parsers, parse_values


@dataclass
class Sample:
    text: str
    outcome: Outcome | None
    answered_at: datetime | None = None


def test_enums_and_times_are_parsed_and_other_values_stay() -> None:
    stored = {"text": "ok", "outcome": "ok", "answered_at": "2026-01-02T03:04:05+00:00"}
    parsed = {"text": "ok", "outcome": Outcome.OK, "answered_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
    assert parse_values(Sample, stored) == parsed
    missing = {"text": None, "outcome": None, "answered_at": None}
    assert parse_values(Sample, missing) == missing


@pytest.mark.parametrize(
    ("record_class", "names"),
    [
        (Verdict, {"outcome", "ruling", "aspects", "first_outcome"}),
        (Rating, {"decision", "act", "decided_at"}),
        (MoralAnswerRecord, {"outcome", "rot_outcome"}),
    ],
)
def test_only_enums_times_and_mappings_of_a_record_have_a_parser(record_class: type, names: set[str]) -> None:
    assert field_parsers(record_class).keys() == names
    assert field_parsers(Verdict)["ruling"]("VALID") is Ruling.VALID
