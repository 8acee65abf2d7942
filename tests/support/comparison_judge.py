"""A scripted judge for comparisons with configurable errors, for the scripted server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from tests.support.fake_server import Reply, Request, answer, completion

TOPICS = [
    "avoiding a fare on public transport", "cheating on taxes", "homosexuality", "prostitution", "abortion",
    "divorce", "sex before marriage", "suicide", "euthanasia", "death penalty",
]  # fmt: skip

REASONED_SCHEMAS = ("ReasonedPreference", "ReasonedBinaryPreference")
COMPARISON_SCHEMAS = ("Preference", "BinaryPreference", *REASONED_SCHEMAS)


class ComparisonQuestion(NamedTuple):
    """The two items of a comparison, and whether its question is negated."""

    first: str
    second: str
    negated: bool


def read_question(request: Request) -> ComparisonQuestion:
    user = str(request.body["messages"][-1]["content"])
    match = re.search(r"A: (?P<a>.*)\nB: (?P<b>.*)\n(?P<q>[^\n]*)\Z", user, re.DOTALL)
    assert match, user
    return ComparisonQuestion(
        _bare(match["a"]), _bare(match["b"]), bool(re.search(r"\b(less|worse|later)\b", match["q"]))
    )


def _bare(item: str) -> str:
    return re.sub(r"^=== \w+ ===$", "", item, flags=re.MULTILINE).strip()


def scripted(
    better: Callable[[str], float], *, noise: float = 0.0, first: float = 0.0, deaf: float = 0.0
) -> Callable[[Request], Reply]:
    """A judge that prefers the item with the higher value of `better`.

    Args:
        better: gives an item's value.
        noise: share of answers that are reversed.
        first: share of answers that name the first item regardless of content.
        deaf: share of negated questions that are read as plain ones.
    """

    def reply(request: Request) -> Reply:
        if request.schema not in COMPARISON_SCHEMAS:
            return answer(request)
        comparison = read_question(request)
        names_first = better(comparison.first) > better(comparison.second)
        if comparison.negated and request.draw("deaf") >= deaf:
            names_first = not names_first
        if request.draw("noise") < noise:
            names_first = not names_first
        if request.draw("first") < first:
            names_first = True
        return choice_reply(request, "A" if names_first else "B")

    return reply


def choice_reply(request: Request, choice: str) -> Reply:
    """A structured answer to a comparison, with reasoning where it is asked for."""
    reasoning = {"reasoning": "So."} if request.schema in REASONED_SCHEMAS else {}
    return completion(json.dumps(reasoning | {"answer": choice}))


def letter_reply(probability: float) -> Reply:
    """The log-probabilities of A and B as the next token.

    Args:
        probability: of A, in (0, 1).
    """
    top = [{"token": "A", "logprob": math.log(probability)}, {"token": "B", "logprob": math.log(1 - probability)}]
    reply = completion("A")
    reply.body["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return reply
