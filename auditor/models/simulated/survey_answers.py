"""Simulated answers to direct questions of a survey, to a task's items, and by log-probabilities."""

from __future__ import annotations

import json
import math
import re

from auditor.domain import OPTION_LETTERS, SCORE_MAX, Call, Cell, LogprobMeasure, TaskItem
from auditor.models.simulated.world import World, model_name, persona_of

LEVELS = ("never", "hardly ever", "seldom", "as often as not", "quite often", "mostly", "always")
"""How often something can be justified, for scores from -1 to 1 in equal steps."""
WESTERN_REASON = "People there think about this as people in liberal societies everywhere do."
AGREEABLE_REASON = "Nobody would want to disagree, so all of them must be content with it."
SOUND_REASONS = (
    "Reports from towns and villages there point the same way, with few exceptions.",
    "Older and younger people differ a little, and their views have been weighed by their numbers.",
    "What neighbours approve of and what they object to there supports this view.",
)
POSITIVE_ENDS = frozenset({"always justifiable", "right", "morally good", "ethical", "acceptable"})
"""Ends of the sentences of `prompts/en/logprob.toml` that express acceptance."""
GROUNDLESS_SHARE = 0.5
"""Share of a persona's overstating traces that give no reason; judges cannot tell the others from sound ones."""
RIGHT_ANSWER_RATE = 0.8
LOGPROB_SLOPE = 2.0
"""Difference of two ends' log-probabilities, in nats, for a score of 1."""
_OPTIONS = re.compile(r"^A: (?P<a>.*?)\nB: (?P<b>.*)\Z", re.DOTALL | re.MULTILINE)


def level_of(score: float) -> str:
    """The word for a score in [-1, 1], one of `LEVELS`."""
    return LEVELS[round((score + SCORE_MAX) / 2 * (len(LEVELS) - 1))]


def level_score(level: str) -> float:
    """The score in the middle of a level, in [-1, 1]."""
    return 2 * LEVELS.index(level) / (len(LEVELS) - 1) - SCORE_MAX


def judge_cell(world: World, call: Call) -> tuple[str, str, float]:
    """Norms, reasoning and score of one sample of a cell. The reasoning shows what is wrong with the persona."""
    cell = call.cell or world.find_cell(call.messages[-1].content)
    name = model_name(call)
    score = world.score(name, cell, call.sample)
    persona = persona_of(name)
    if persona.is_western:
        reason = WESTERN_REASON
    elif persona.overstatement and world.draw(name, "ground", *cell, call.sample) < GROUNDLESS_SHARE:
        reason = AGREEABLE_REASON
    else:
        reason = SOUND_REASONS[int(world.draw(name, "reason", *cell, call.sample) * len(SOUND_REASONS))]
    norms = f"Most people in {cell.country} find that this can {level_of(score)} be justified: {cell.topic}."
    return norms, f"{reason} So it can {level_of(score)} be justified in their eyes.", score


def answer_survey(world: World, call: Call) -> str:
    """Answer a direct question in plain text, as the paper's form asks."""
    norms, reasoning, score = judge_cell(world, call)
    return f"{norms}\n\n{reasoning}\nSCORE = {score}"


def answer_item(world: World, call: Call) -> tuple[str, str]:
    """Reasoning and answer to a task's item: right in four of five samples, if the truth is known."""
    task, cell = world.survey.task, call.cell or Cell("", "")
    item = task.items.get(cell.topic, TaskItem("", "")) if task else TaskItem("", "")
    draw = world.draw(model_name(call), "item", *cell, call.sample)
    is_right = item.truth is not None and draw < RIGHT_ANSWER_RATE
    if item.options:
        # The truth of a choice is the text of an option.
        letters = [letter for letter, option in item.letters.items() if (option == item.truth) == is_right]
        answer = letters[0] if letters else OPTION_LETTERS[0]
    elif is_right and item.truth is not None:
        answer = item.truth
    else:
        low, high = (task and task.range) or (0.0, 100.0)
        answer = f"{low + (high - low) * draw:.2f}"
    return "The question names all that is needed, and each step follows from it.", answer


def answer_logprobs(world: World, call: Call) -> str:
    """Log-probabilities as a provider's reply is parsed: of each continuation, or of the letters A and B."""
    text = call.messages[-1].content
    score = world.score(model_name(call), world.find_cell(text), 0)
    if call.measure is not LogprobMeasure.CHOICE:
        signs = [1 if end.strip() in POSITIVE_ENDS else -1 for end in call.continuations]
        return json.dumps([LOGPROB_SLOPE / 2 * score * sign for sign in signs])
    is_positive_first = find_options(text)[0] in POSITIVE_ENDS
    return answer_option_logprobs(score if is_positive_first else -score)


def answer_option_logprobs(difference: float) -> str:
    """Log-probabilities of the letters A and B, by how much the model prefers A, in score units."""
    logprob_a = -math.log1p(math.exp(-LOGPROB_SLOPE * difference))
    return json.dumps([["A", logprob_a], ["B", logprob_a - LOGPROB_SLOPE * difference]])


def find_options(text: str) -> tuple[str, str]:
    """Option A of a prompt, and all that follows the letter B; both empty in any other layout."""
    match = _OPTIONS.search(text)
    return (match["a"].strip(), match["b"].strip()) if match else ("", "")
