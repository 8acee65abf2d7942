"""Comparisons of items by simulated models."""

from __future__ import annotations

import json
import re

from auditor.domain import Call, Cell, LogprobMeasure
from auditor.models.simulated.survey_answers import answer_option_logprobs, find_options
from auditor.models.simulated.world import World, model_name
from auditor.probes.logic.answer_schemas import (
    BinaryPreference,
    Preference,
    ReasonedBinaryPreference,
    ReasonedPreference,
)
from auditor.probes.logic.comparisons import LOGIC_PURPOSE

TIE_DIFFERENCE = 0.01
"""Items whose scores differ by less are a tie."""
REASON = "The two were weighed by how often people justify them."
BINARY_SCHEMAS = (BinaryPreference.__name__, ReasonedBinaryPreference.__name__)
REASONED_SCHEMAS = (ReasonedPreference.__name__, ReasonedBinaryPreference.__name__)
SCHEMAS = {Preference.__name__, *BINARY_SCHEMAS, *REASONED_SCHEMAS}
_NEGATED_QUESTION = re.compile(r"\b(?:less|worse|later)\b")


def answer_comparison(world: World, call: Call) -> str | None:
    """Compare two items, as a structure or by log-probabilities; None for a call of another kind."""
    if call.purpose is LOGIC_PURPOSE and call.measure is LogprobMeasure.CHOICE:
        return answer_option_logprobs(_measure_preference(world, call))
    if call.schema not in SCHEMAS:
        return None
    difference = _measure_preference(world, call)
    if call.schema in BINARY_SCHEMAS:
        answer = "A" if difference >= 0 else "B"
    else:
        answer = "TIE" if abs(difference) < TIE_DIFFERENCE else "A" if difference > 0 else "B"
    return json.dumps(
        {"reasoning": REASON, "answer": answer} if call.schema in REASONED_SCHEMAS else {"answer": answer}
    )


def _measure_preference(world: World, call: Call) -> float:
    """By how much a model prefers item A to item B of a comparison, in score units, as the question asks."""
    option_a, remainder = find_options(call.messages[-1].content)
    option_b, _, question = remainder.rpartition("\n")
    country = world.find_cell(call.messages[-1].content).country
    score_a, score_b = (
        world.score(model_name(call), Cell(country, world.find_cell(option).topic), call.sample)
        for option in (option_a, option_b)
    )
    return score_b - score_a if _NEGATED_QUESTION.search(question) else score_a - score_b
