"""Hand-written expectations: what a user of each provider should see in each situation, one TOML file a provider."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.domain import AnswerForm, Outcome
from tests.providers.dialect import Situation
from tests.providers.situations import SETUP_ERROR

FOLDER = Path(__file__).with_name("expectations")
OUTCOMES = frozenset({SETUP_ERROR, *(outcome.value for outcome in Outcome)})


@dataclass(frozen=True)
class Expectation:
    """What should happen in one situation, or the reason why it cannot happen with this provider.

    Attributes:
        outcome: as stored, or `model_setup_error`.
        form: of a structured answer; None where none arrives.
        discovery_requests: requests beyond the one that answers.
        words: part of the text that the user is shown; empty for none.
        altered: parameters that the product says were dropped or changed; None if not checked.
        retry_after_s: the wait that the provider asks for; None if it asks for none.
        not_applicable: why the situation cannot happen with this provider.
    """

    outcome: str = ""
    form: AnswerForm | None = None
    discovery_requests: int = 0
    words: str = ""
    altered: str | None = None
    retry_after_s: float | None = None
    not_applicable: str | None = None


def load_expectations(provider: str) -> dict[Situation, Expectation]:
    """Load a provider's file, by its name: one table for each situation.

    Raises:
        TypeError, ValueError: a key or a value is unknown.
    """
    tables: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / f"{provider}.toml").read_text())
    return {Situation(name): _read_expectation(table) for name, table in tables.items()}


def _read_expectation(table: dict[str, Any]) -> Expectation:
    expectation = Expectation(**table)
    if expectation.not_applicable is not None:
        if len(table) > 1 or len(expectation.not_applicable) < 20:
            raise ValueError(f"not_applicable is a reason, and stands alone: {table}")
        return expectation
    if missing := {"outcome", "discovery_requests", "words"} - table.keys():
        raise ValueError(f"{sorted(missing)} missing: {table}")
    if expectation.outcome not in OUTCOMES:
        raise ValueError(f"unknown outcome: {expectation.outcome}")
    form = None if expectation.form is None else AnswerForm(expectation.form)
    return Expectation(**{**table, "form": form})
