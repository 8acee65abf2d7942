"""Simulated judges: verdicts on traces, comparisons of two traces, guesses, and restated traces.

A judge reads only what the prompt shows it. It can notice a fault that is written in the trace, and misses some.
"""

from __future__ import annotations

import re
from typing import Any

from auditor.domain import Call, Ruling
from auditor.domain.review_aspects import TASK_REVIEWS, aspect_questions
from auditor.models.simulated.survey_answers import AGREEABLE_REASON, LEVELS, level_score
from auditor.models.simulated.world import World, model_name, persona_of

FLAW_MARKS = ("liberal societies everywhere", "therefore the view just stated follows", AGREEABLE_REASON)
"""Words of a reason that does not support the view: of two personas, and of the faults of `auditor experiment planted`
(`prompts/en/faults.toml`)."""
MAX_LEVEL_DISTANCE = 0.3
"""Larger distances between a level in the text and the score are noticed, in score units; rounding causes 0.17."""
_LEVEL = re.compile(rf"\bcan ({'|'.join(LEVELS)}) be justified")
_FENCED = re.compile(r"^(?P<fence>=== [0-9a-f]+ ===)[^\n]*\n(?P<text>.*?)\n(?P=fence)", re.DOTALL | re.MULTILINE)
_SCORE = re.compile(r"[Ss]core[^:\n]*: (?P<score>[-+]?\d+(?:\.\d+)?)")


def review(world: World, call: Call) -> dict[str, Any]:
    """A judge's verdict on the trace of a prompt, with the aspects that the verdict's schema asks for."""
    text, score = _read_trace(call.messages[1].content)
    is_valid = rules_valid(world, model_name(call), text, score, call.params.get("seed"))
    confidence = 60 + int(35 * world.draw(model_name(call), "confidence", text, score))
    justification = (
        "The steps follow from the norms, and the score fits them."
        if is_valid
        else "The conclusion rests on a step that nothing in the text supports."
    )
    aspects = {question.key: is_valid for question in aspect_questions(for_task=call.schema in TASK_REVIEWS).values()}
    verdict = (Ruling.VALID if is_valid else Ruling.INVALID).value
    return {**aspects, "justification": justification, "verdict": verdict, "confidence": confidence}


def rules_valid(world: World, name: str, text: str, score: float | None, seed: object) -> bool:
    """Whether a judge finds a trace VALID.

    Args:
        name: of the judge, without the prefix.
        text, score: of the trace as shown; the score is None if the prompt shows none.
        seed: of the call: equal for all judges of a trace, and different for equal texts on different cells.
    """
    persona = persona_of(name)
    identity = (seed, text, score)
    if persona.copies is not None and world.draw(name, "copy", *identity) < persona.copy_rate:
        return rules_valid(world, persona.copies, text, score, seed)
    invalid_rate = persona.detection_rate if has_flaw(text, score) else persona.false_alarm_rate
    return world.draw(name, "verdict", *identity) >= invalid_rate


def has_flaw(text: str, score: float | None) -> bool:
    """Whether a trace has a fault that a careful reader can see: a mark of one, or a level that the score contradicts.

    Levels are read in simulated traces only; of other texts none is known to be wrong.
    """
    if any(mark in text for mark in FLAW_MARKS):
        return True
    levels = [level_score(level) for level in _LEVEL.findall(text)]
    return bool(levels) and (
        max(levels) - min(levels) > MAX_LEVEL_DISTANCE
        or (score is not None and any(abs(level - score) > MAX_LEVEL_DISTANCE for level in levels))
    )


def compare_sides(world: World, call: Call) -> dict[str, Any]:
    """Which of two traces is better reasoned: the one without a flaw, else one at random, whatever their order."""
    message = call.messages[1].content
    fence = message.split(" FIRST", 1)[0]
    texts = [part.strip() for part in message.split(fence)[1:4]]
    first, second = texts[0].removeprefix("FIRST").strip(), texts[-1].removeprefix("SECOND").strip()
    scores = [float(match["score"]) for match in _SCORE.finditer(message)][-2:]
    valid = [
        rules_valid(world, model_name(call), text, score, call.params.get("seed"))
        for text, score in zip((first, second), scores, strict=False)
    ]
    is_first_better = valid[0] > valid[-1] or (
        valid[0] == valid[-1]
        and world.draw(model_name(call), "side", *sorted((first, second))) < 0.5 == (first <= second)
    )
    return {"reason": "Its steps support its view.", "better": "FIRST" if is_first_better else "SECOND"}


def guess(world: World, call: Call) -> dict[str, Any]:
    """A guess at country, practice and author: drawn at random from each list, since the trace names none of them."""
    rng = world.rng(model_name(call), "guess", call.messages[1].content)
    tail = call.messages[1].content.rpartition("Countries:")[2]
    parts = re.split(r"^(?:Practices|Analysts):$", tail, flags=re.MULTILINE)
    counts = [max(len(part.strip().splitlines()), 1) for part in (*parts, "", "")[:3]]
    return dict(zip(("country", "practice", "analyst"), (rng.randint(1, n) for n in counts), strict=True))


def guess_author(world: World, call: Call) -> dict[str, Any]:
    """A guess at the author of an answer to an item of a task, drawn at random from the list."""
    analysts = call.messages[1].content.rpartition("Analysts:")[2].strip().splitlines()
    rng = world.rng(model_name(call), "guess", call.messages[1].content)
    return {"analyst": rng.randint(1, max(len(analysts), 1))}


def restate(world: World, call: Call) -> dict[str, Any]:
    """The trace without its blank lines: a restatement that keeps every claim."""
    return {"text": " ".join(_read_trace(call.messages[1].content)[0].split())}


def _read_trace(message: str) -> tuple[str, float | None]:
    """The text between the delimiter lines of a prompt, and the score that it shows."""
    match = _FENCED.search(message)
    scores = list(_SCORE.finditer(message))
    return (match["text"] if match else message), float(scores[-1]["score"]) if scores else None
