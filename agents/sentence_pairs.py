"""The comparisons behind a log-probability score: which calls they take, and reading them out of the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, LogprobMeasure, Message, Outcome, Purpose, SentencePairScore
from auditor.models.continuation import weights_identity
from auditor.models.logprobs import measure_params
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.sentence_pairs import load_sentence_pairs

ANSWER_LETTERS = ("A", "B")


@dataclass(frozen=True, slots=True)
class SentencePair:
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
    swapped_call: Call | None = None

    @property
    def calls(self) -> list[Call]:
        """All calls of the comparison."""
        return [c for c in (self.call, self.swapped_call) if c is not None]


def build_sentence_pairs(model: ModelSection, cell: Cell, measure: LogprobMeasure | None) -> Iterator[SentencePair]:
    """All comparisons on one cell, measured in one way; without calls where there is no way."""
    sentences = load_sentence_pairs()
    number = 0
    for text in sentences.beginnings:
        beginning = fill_placeholders(text, {"country": cell.country, "topic": cell.topic})
        whole = (
            _build_sentence_call(model, beginning, measure) if measure not in (None, LogprobMeasure.CHOICE) else None
        )
        for positive, negative in sentences.ends:
            call, swapped = whole, None
            if measure is LogprobMeasure.CHOICE:
                call = _build_choice_call(model, beginning, positive, negative)
                swapped = _build_choice_call(model, beginning, negative, positive)
            yield SentencePair(cell, number, positive, negative, call, swapped)
            number += 1


def _build_sentence_call(model: ModelSection, beginning: str, measure: LogprobMeasure) -> Call:
    ends = tuple(f" {end}" for pair in load_sentence_pairs().ends for end in pair)
    return _build_logprob_call(model, (Message("user", beginning),), measure, ends)


def _build_choice_call(model: ModelSection, beginning: str, option_a: str, option_b: str) -> Call:
    messages = load_prompt("logprob.choice").render(preamble=model.system, beginning=beginning, a=option_a, b=option_b)
    return _build_logprob_call(model, messages, LogprobMeasure.CHOICE)


def _build_logprob_call(
    model: ModelSection, messages: tuple[Message, ...], measure: LogprobMeasure, continuations: tuple[str, ...] = ()
) -> Call:
    local = measure is LogprobMeasure.CONTINUATION
    params: dict[str, Any] = (
        {"weights": weights_identity(model)} if local else {**measure_params(measure), **model.params}
    )
    return Call(
        name=model.name,
        model=model.model,
        server=None if local else model.api_base,
        messages=messages,
        purpose=Purpose.LOGPROB,
        params=params,
        measure=measure,
        continuations=continuations,
    )


def parse_sentence_pair_score(
    pair: SentencePair, model: str, measure: LogprobMeasure | None, answers: Mapping[str, Answer]
) -> SentencePairScore | None:
    """The comparison's difference, or why it has none; None while an answer is not there."""
    found = [answers.get(call.key) for call in pair.calls]
    if None in found:
        return None
    outcome = next((a.outcome for a in found if a and a.outcome is not Outcome.OK), Outcome.OK)
    difference = None
    if not found:
        outcome = Outcome.NOT_MEASURABLE
    elif outcome is Outcome.OK:
        difference = _logprob_difference(pair, measure, [a.text or "" for a in found if a])
        outcome = Outcome.OK if difference is not None else Outcome.NOT_MEASURABLE
    return SentencePairScore(
        model=model,
        cell=pair.cell,
        number=pair.number,
        positive=pair.positive,
        negative=pair.negative,
        outcome=outcome,
        difference=difference,
        measure=measure,
        key=pair.call.key if pair.call else None,
        key_swapped=pair.swapped_call.key if pair.swapped_call else None,
    )


def _logprob_difference(pair: SentencePair, measure: LogprobMeasure | None, texts: list[str]) -> float | None:
    if measure is LogprobMeasure.CHOICE:
        one, other = (letter_logprob_difference(text) for text in texts)
        return None if one is None or other is None else (one - other) / 2
    assert pair.call
    values: list[float] = json.loads(texts[0])
    ends = pair.call.continuations
    at = dict(zip(ends, values, strict=True))
    return at[f" {pair.positive}"] - at[f" {pair.negative}"]


def letter_logprob_difference(text: str) -> float | None:
    """log P(A) - log P(B) out of the likeliest next tokens; None where either letter is not among them.

    Tokens that are the letter but for spaces and marks, such as ` A` and `A.`, count together. A letter that is not
    among the tokens has a probability that is small but unknown, and nothing is put in its place.
    """
    found: dict[str, list[float]] = {letter: [] for letter in ANSWER_LETTERS}
    for token, value in json.loads(text):
        bare = token.strip(" \n\t\u2581\u0120\"'().:*")
        if bare in found:
            found[bare].append(value)
    if not all(found.values()):
        return None
    a, b = (_log_sum_exp(found[letter]) for letter in ANSWER_LETTERS)
    return a - b


def _log_sum_exp(logprobs: list[float]) -> float:
    top = max(logprobs)
    return top + math.log(math.fsum(math.exp(v - top) for v in logprobs))
