"""Simulated opinions on a survey's own scale: shares, single answers and probabilities, with planted faults."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from statistics import fmean

from auditor.domain import OPTION_LETTERS, Call, Cell
from auditor.domain.personas import OpinionPlant
from auditor.models.simulated import PeopleOpinions, World, model_name, persona_of
from auditor.probes.distribution.opinion_questions import OpinionAnswer

FIRST_OPTION_SHARE = 0.3
N_PEOPLE = 100
N_LINES_BEFORE_ANSWERS = 3
_LABEL = re.compile(r"^\w+: ")


def answer_opinion(world: World, call: Call) -> str:
    """Answer a question of the probe `distribution` as the prompt asks: counts, a number, or letters."""
    assert world.opinions is not None
    name, text = model_name(call), call.messages[-1].content
    people, lines = world.opinions, text.splitlines()[N_LINES_BEFORE_ANSWERS:-1]
    cell = world.find_cell("\n".join(text.splitlines()[: N_LINES_BEFORE_ANSWERS - 1]))
    is_up = _LABEL.sub("", lines[0]).split(" (")[0] == people.points_of(cell.topic)[0][0].replace("_", " ")
    in_order = _plant_opinions(name, people, cell, _find_group(people, text))
    shares = in_order if is_up else in_order[::-1]
    if persona_of(name).opinions is OpinionPlant.FIRST_OPTION:
        shares = [(1 - FIRST_OPTION_SHARE) * share for share in shares]
        shares[0] += FIRST_OPTION_SHARE
    if call.measure is not None:
        letters = zip(OPTION_LETTERS, shares, strict=False)
        return json.dumps([[letter, math.log(share)] for letter, share in letters if share > 0])
    if call.schema == OpinionAnswer.__name__:
        chosen = _draw(shares, world.draw(name, "opinion", text, call.sample, call.params.get("seed")))
        return json.dumps({"answer": int(re.split(r"[: ]", lines[chosen])[0])})
    return json.dumps({"counts": _round_to_counts(shares)})


def _find_group(people: PeopleOpinions, text: str) -> str:
    """The group that a prompt names in parentheses; empty for everyone, and for a group that people do not have."""
    first_line = text.splitlines()[0]
    return next((group for _, group in people.shares if group and f"({group})" in first_line), "")


def _plant_opinions(name: str, people: PeopleOpinions, cell: Cell, group: str) -> list[float]:
    """A persona's shares in the order of the scale; without a known country the mean over all countries."""
    persona, points = persona_of(name), people.points_of(cell.topic)
    average = _average(people, cell.topic)
    everyone = list(people.shares.get((cell, ""), average))
    factor = persona.gap_factor
    members = people.shares.get((cell, group), everyone)
    shares = [all_people + factor * (member - all_people) for member, all_people in zip(members, everyone, strict=True)]
    shares = [max(share, 0.0) for share in shares]
    plant = persona.opinions
    if plant is OpinionPlant.COLLAPSED:
        mean = sum(share * score for share, (_, score) in zip(shares, points, strict=True))
        nearest = min(range(len(shares)), key=lambda i: abs(points[i][1] - mean))
        shares = [float(i == nearest) for i in range(len(shares))]
    elif plant is OpinionPlant.SHARPENED:
        shares = [share**2 for share in shares]
    elif plant is OpinionPlant.WORLD:
        shares = average
    elif plant is OpinionPlant.UNIFORM:
        shares = [1.0] * len(shares)
    elif plant is OpinionPlant.REVERSED:
        shares = shares[::-1]
    return [share / sum(shares) for share in shares]


def _average(people: PeopleOpinions, topic: str) -> list[float]:
    """Mean shares over all countries on a topic; equal shares for an unknown topic."""
    n_points = len(people.points_of(topic))
    rows = [shares for (cell, group), shares in people.shares.items() if cell.topic == topic and not group]
    return [fmean(column) for column in zip(*rows, strict=True)] or [1 / n_points] * n_points


def _draw(shares: Sequence[float], random_number: float) -> int:
    """Position of the answer that a random number in [0, 1) falls on."""
    total = 0.0
    for position, share in enumerate(shares):
        total += share
        if random_number < total:
            return position
    return len(shares) - 1


def _round_to_counts(shares: Sequence[float]) -> list[int]:
    """Whole numbers that add up to 100: the largest remainders are rounded up."""
    exact = [N_PEOPLE * share for share in shares]
    counts = [int(number) for number in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])
    for i in by_remainder[: N_PEOPLE - sum(counts)]:
        counts[i] += 1
    return counts
