"""Answers of simulated models to given steps: a model that follows gives the score that the steps lead to."""

from __future__ import annotations

import random
import re

import auditor.probes as ap
from auditor.probes.reasoning.interventions import JSON_END, PROMPT, TEXT_END

LEVELS = ("never", "hardly ever", "seldom", "as often as not", "quite often", "mostly", "always")
"""How often something can be justified, in the words of simulated models, from -1 to 1 in equal steps."""
ERROR_SD = 0.03
"""Standard deviation of the errors of a score, in score units."""
_LEVEL = re.compile(rf"\b({'|'.join(LEVELS)}) (?:be justified|acceptable)")


def answer(call: ap.Call) -> str:
    """Continue the beginning of an answer, or answer a question with notes."""
    restate = ap.load_prompt(PROMPT).user.split("\n\n")[-1].partition("{notes}")[0]
    if call.messages[-1].content.startswith(restate):
        return f"In other words: {call.messages[-1].content.removeprefix(restate)}"
    name = call.model.partition("/")[2]
    persona = ap.find_persona(name)
    following = persona.following if persona is not None else 0.0
    steps, question = call.messages[-1].content, call.messages[-2].content
    is_prefill = call.messages[-1].role == "assistant"
    if not is_prefill:
        notes = ap.load_prompt(PROMPT).user.split("\n\n")[0].partition("{notes}")[0]
        question, _, steps = steps.partition(notes)
    follows = random.Random(f"{name} follows {question}").random() < following
    score = _judge(steps) if follows else None
    if score is None:  # the score that the question alone suggests
        score = random.Random(f"{name} {question}").uniform(-0.8, 0.8)
    score += random.Random(f"{name} {call.key}").gauss(0, ERROR_SD)
    number = f"{min(max(score, -1.0), 1.0):.2f}"
    if not is_prefill:
        return f"{TEXT_END} {number}"
    if steps.endswith(TEXT_END):
        return f" {number}"
    if steps.endswith(JSON_END):
        return f" {number}}}"
    if not steps.startswith("{"):
        return f"\nIt follows from these norms.\n{TEXT_END} {number}"
    opening = "" if '"reasoning": "' in steps else ' "reasoning": "'
    return f'{opening} It follows from these norms.", {JSON_END} {number}}}'


def _judge(steps: str) -> float | None:
    """The score that steps lead to: that of the last level they name, or its opposite where they are called wrong."""
    levels = _LEVEL.findall(steps)
    if not levels:
        return None
    score = 2 * LEVELS.index(levels[-1]) / (len(LEVELS) - 1) - 1
    wrong = ap.load_prompt(PROMPT).user.split("\n\n")[3].partition("{notes}")[0].strip()
    return -score if wrong in steps else score
