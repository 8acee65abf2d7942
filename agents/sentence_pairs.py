"""The comparisons behind a log-probability score: which calls they take, and reading them out of the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, Contrast, Measure, Message, Outcome, Purpose
from auditor.models.continuation import weights_of
from auditor.models.logprobs import params_of
from auditor.prompts import fill, load_prompt
from auditor.prompts.sentence_pairs import load_contrasts

LETTERS = ("A", "B")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison on a cell, and the calls that it takes.

    Attributes:
        call: where both ends are measured; None where nothing can be asked.
        swapped: the same question with the two ends in the other order, where order matters.
    """

    cell: Cell
    number: int
    positive: str
    negative: str
    call: Call | None = None
    swapped: Call | None = None

    @property
    def calls(self) -> list[Call]:
        """All calls of the comparison."""
        return [c for c in (self.call, self.swapped) if c is not None]


def comparisons(model: ModelSection, cell: Cell, measure: Measure | None) -> Iterator[Comparison]:
    """All comparisons on one cell, measured in one way; without calls where there is no way."""
    sentences = load_contrasts()
    number = 0
    for text in sentences.beginnings:
        beginning = fill(text, {"country": cell.country, "topic": cell.topic})
        whole = _sentence_call(model, beginning, measure) if measure not in (None, Measure.CHOICE) else None
        for positive, negative in sentences.ends:
            call, swapped = whole, None
            if measure is Measure.CHOICE:
                call = _choice_call(model, beginning, positive, negative)
                swapped = _choice_call(model, beginning, negative, positive)
            yield Comparison(cell, number, positive, negative, call, swapped)
            number += 1


def _sentence_call(model: ModelSection, beginning: str, measure: Measure) -> Call:
    ends = tuple(f" {end}" for pair in load_contrasts().ends for end in pair)
    return _call(model, (Message("user", beginning),), measure, ends)


def _choice_call(model: ModelSection, beginning: str, a: str, b: str) -> Call:
    messages = load_prompt("logprob.choice").render(preamble=model.system, beginning=beginning, a=a, b=b)
    return _call(model, messages, Measure.CHOICE)


def _call(model: ModelSection, messages: tuple[Message, ...], measure: Measure, ends: tuple[str, ...] = ()) -> Call:
    local = measure is Measure.CONTINUATION
    params: dict[str, Any] = {"weights": weights_of(model)} if local else {**params_of(measure), **model.params}
    return Call(
        name=model.name,
        model=model.model,
        server=None if local else model.api_base,
        messages=messages,
        purpose=Purpose.LOGPROB,
        params=params,
        measure=measure,
        continuations=ends,
    )


def read_contrast(
    comparison: Comparison, model: str, measure: Measure | None, answers: Mapping[str, Answer]
) -> Contrast | None:
    """The comparison's difference, or why it has none; None while an answer is not there."""
    found = [answers.get(call.key) for call in comparison.calls]
    if None in found:
        return None
    outcome = next((a.outcome for a in found if a and a.outcome is not Outcome.OK), Outcome.OK)
    difference = None
    if not found:
        outcome = Outcome.NOT_MEASURABLE
    elif outcome is Outcome.OK:
        difference = _difference(comparison, measure, [a.text or "" for a in found if a])
        outcome = Outcome.OK if difference is not None else Outcome.NOT_MEASURABLE
    return Contrast(
        model=model,
        cell=comparison.cell,
        number=comparison.number,
        positive=comparison.positive,
        negative=comparison.negative,
        outcome=outcome,
        difference=difference,
        measure=measure,
        key=comparison.call.key if comparison.call else None,
        key_swapped=comparison.swapped.key if comparison.swapped else None,
    )


def _difference(comparison: Comparison, measure: Measure | None, texts: list[str]) -> float | None:
    if measure is Measure.CHOICE:
        one, other = (letters_apart(text) for text in texts)
        return None if one is None or other is None else (one - other) / 2
    assert comparison.call
    values: list[float] = json.loads(texts[0])
    ends = comparison.call.continuations
    at = dict(zip(ends, values, strict=True))
    return at[f" {comparison.positive}"] - at[f" {comparison.negative}"]


def letters_apart(text: str) -> float | None:
    """log P(A) - log P(B) out of the likeliest next tokens; None where either letter is not among them.

    Tokens that are the letter but for spaces and marks, such as ` A` and `A.`, count together. A letter that is not
    among the tokens has a probability that is small but unknown, and nothing is put in its place.
    """
    found: dict[str, list[float]] = {letter: [] for letter in LETTERS}
    for token, value in json.loads(text):
        bare = token.strip(" \n\t\u2581\u0120\"'().:*")
        if bare in found:
            found[bare].append(value)
    if not all(found.values()):
        return None
    a, b = (_log_sum(found[letter]) for letter in LETTERS)
    return a - b


def _log_sum(values: list[float]) -> float:
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values))
