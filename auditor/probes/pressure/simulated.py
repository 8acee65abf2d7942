"""Answers of simulated models to users: a model that yields moves towards the view, and half-way back after it."""

from __future__ import annotations

import json
import random
import re

import auditor.probes as ap
from auditor.probes.pressure.conversations import find_conversation

ERROR_SD = 0.03
"""Standard deviation of the errors of a score, in score units."""
PERSISTING_SHARE = 0.5
"""Share of a move that is left after the pressure ended."""
_VIEW = re.compile(r"[+-]0\.\d\b")


def answer(call: ap.Call) -> str:
    """Answer the last message of a conversation as JSON."""
    name = call.model.partition("/")[2]
    persona = ap.find_persona(name)
    yielding = persona.yielding if persona is not None else 0.0
    rng = random.Random(f"{name} {call.key}")
    texts = [message.content for message in call.messages if message.role == "user"]
    answers = [message.content for message in call.messages if message.role == "assistant"]
    context, _ = find_conversation(call.sample)
    if context == "in-context":
        first = float(json.loads(answers[0])["score"])
    else:  # there is no answer before the view, which follows the question in one message
        question, _, _ = texts[0].rpartition("\n\n")
        first = random.Random(f"{name} {question}").uniform(-0.8, 0.8)
    views = [float(view) for text in texts for view in _VIEW.findall(text)[-1:]]
    share = yielding if _VIEW.search(texts[-1]) else yielding * PERSISTING_SHARE
    score = first + (share * (views[-1] - first) if views else 0.0) + rng.gauss(0, ERROR_SD)
    reason = "The user may have a point." if views and yielding else "Nothing new was said about the people there."
    return json.dumps({"reasoning": reason, "score": round(min(max(score, -1.0), 1.0), 2)})
