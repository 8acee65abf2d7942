"""Simulated answers to moral questions, and judgements of such answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from auditor.domain import Call
from auditor.models.simulated import World, model_name, persona_of
from auditor.probes.semantic.call_builders import (
    Choice,
    Contradiction,
    MoralAnswer,
    OpenAnswer,
    Paraphrases,
    RuleOfThumb,
    Support,
)
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, MORAL_PURPOSE, RULE_PURPOSE

STANDS = (
    ("No. It would hurt somebody who has done nothing wrong.", "It is wrong to hurt people who did nothing wrong."),
    ("Yes. Everyone may decide about their own life.", "People should decide about their own lives."),
)
"""An answer and its rule of thumb, for each stand that a model may take."""
DEFAULT_PARAPHRASES = 5
_COUNT = re.compile(r"a list of (\d+) wordings")
_FENCED = re.compile(r"^(?P<fence>=== [0-9a-f]+ ===)\n(?P<text>.*?)\n(?P=fence)", re.DOTALL | re.MULTILINE)


def answer_question(world: World, call: Call) -> str:
    """The stand of a model on a moral question: always the first, but of an inconsistent persona a random one."""
    name = model_name(call)
    is_consistent = not persona_of(name).swing
    number = 0 if is_consistent else int(len(STANDS) * world.draw(name, call.messages[-1].content, call.sample))
    return STANDS[number][0]


def state_rule(world: World, call: Call) -> str:
    """The rule of thumb behind an answer, as the answer's own words suggest it."""
    message = call.messages[-1].content
    return next((rule for answer, rule in STANDS if answer in message), STANDS[0][1])


def choose(world: World, call: Call) -> dict[str, Any]:
    """One of several answers, drawn at random: simulated models know nothing of the subject."""
    n_choices = len(re.findall(r"^\d+\. ", call.messages[-1].content, re.MULTILINE)) or 1
    return {"reason": "It fits best.", "choice": world.rng(model_name(call), call.key).randint(1, n_choices)}


def paraphrase(world: World, call: Call) -> dict[str, Any]:
    """Stand-ins for paraphrases, as many as the prompt asks for: the words of the question in other orders."""
    match = _COUNT.search(call.messages[0].content)
    words = call.messages[-1].content.removeprefix("Question: ").strip(" ?\n").lower().split()
    rng = world.rng(model_name(call), "paraphrase", call.messages[-1].content, call.sample)
    orders = [rng.sample(words, len(words)) for _ in range(int(match[1]) if match else DEFAULT_PARAPHRASES)]
    return {"paraphrases": [f"{' '.join(order).capitalize()}?" for order in orders]}


def judge_support(world: World, call: Call) -> dict[str, Any]:
    """Whether an answer supports another: if both take the same stand."""
    return {"reason": "Both name the same ground.", "supported": _is_same_stand(call)}


def say_support(world: World, call: Call) -> str:
    """The verdict of `judge_support` as the word yes or no, on a prompt in the published form."""
    context, _, sentence = call.messages[-1].content.removeprefix("Context: ").partition("\n\nSentence: ")
    return "yes" if context.split()[:1] == sentence.split()[:1] else "no"


def judge_contradiction(world: World, call: Call) -> dict[str, Any]:
    """Whether two answers contradict each other: if their stands differ."""
    return {"reason": "The stands were compared.", "contradict": not _is_same_stand(call)}


def _is_same_stand(call: Call) -> bool:
    """Whether the two answers of a prompt begin with the same word."""
    first_words = {match["text"].split(maxsplit=1)[0] for match in _FENCED.finditer(call.messages[-1].content)}
    return len(first_words) <= 1


STRUCTURED_ANSWERS: Mapping[str, Callable[[World, Call], dict[str, Any]]] = {
    MoralAnswer.__name__: lambda world, call: {"answer": answer_question(world, call)},
    OpenAnswer.__name__: lambda world, call: {"answer": answer_question(world, call)},
    RuleOfThumb.__name__: lambda world, call: {"rule": state_rule(world, call)},
    Choice.__name__: choose,
    Paraphrases.__name__: paraphrase,
    Support.__name__: judge_support,
    Contradiction.__name__: judge_contradiction,
}
"""What answers each schema of the probe `semantic`."""


def answer_call(world: World, call: Call) -> str | None:
    """Answer a call of the probe `semantic`; None for any other call."""
    if call.schema is not None:
        answer = STRUCTURED_ANSWERS.get(call.schema)
        return None if answer is None else json.dumps(answer(world, call))
    if call.measure is not None:
        return None
    if call.purpose is MORAL_PURPOSE:
        return answer_question(world, call)
    if call.purpose is CONSISTENCY_PURPOSE:
        return say_support(world, call)
    return state_rule(world, call) if call.purpose is RULE_PURPOSE else None
