"""Sentence pairs of the log-probability score: building their calls, and parsing the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from auditor.agents.call_builders import build_logprob_call
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, LogprobMeasure, Message, Outcome, Purpose, SentencePairScore
from auditor.models.logprobs import find_impossible_candidates
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.language_data import load_sentence_pairs

ANSWER_LETTERS = ("A", "B")


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence with two opposite endings on a cell, and the calls that measure them.

    Attributes:
        number: index of the pair on the cell, from 0.
        call: the call that measures both endings; None if the model supports no measure.
        swapped_call: the same question with the two endings in the other order; None if order does not matter.
    """

    cell: Cell
    number: int
    positive: str
    negative: str
    call: Call | None = None
    swapped_call: Call | None = None

    @property
    def calls(self) -> list[Call]:
        """All calls of the pair."""
        return [call for call in (self.call, self.swapped_call) if call is not None]


def build_sentence_pairs(model: ModelSection, cell: Cell, measure: LogprobMeasure | None) -> Iterator[SentencePair]:
    """Yield all sentence pairs on one cell, with the calls of one measure; without calls if the measure is None."""
    sentences = load_sentence_pairs()
    number = 0
    for text in sentences.beginnings:
        beginning = fill_placeholders(text, {"country": cell.country, "topic": cell.topic})
        sentence_call = (
            _build_sentence_call(model, beginning, measure) if measure not in (None, LogprobMeasure.CHOICE) else None
        )
        for positive, negative in sentences.ends:
            call, swapped_call = sentence_call, None
            if measure is LogprobMeasure.CHOICE:
                call = _build_choice_call(model, beginning, positive, negative)
                swapped_call = _build_choice_call(model, beginning, negative, positive)
            yield SentencePair(cell, number, positive, negative, call, swapped_call)
            number += 1


def _build_sentence_call(model: ModelSection, beginning: str, measure: LogprobMeasure) -> Call:
    """Build the call that measures the log-probabilities of all endings of one beginning."""
    ends = tuple(f" {end}" for pair in load_sentence_pairs().ends for end in pair)
    return build_logprob_call(model, Purpose.LOGPROB, (Message("user", beginning),), measure, ends)


def _build_choice_call(model: ModelSection, beginning: str, option_a: str, option_b: str) -> Call:
    """Build the call that offers two endings as options A and B."""
    messages = load_prompt("logprob.choice").render(preamble=model.system, beginning=beginning, a=option_a, b=option_b)
    return build_logprob_call(model, Purpose.LOGPROB, messages, LogprobMeasure.CHOICE)


def parse_sentence_pair_score(
    pair: SentencePair, model: str, measure: LogprobMeasure | None, answers: Mapping[str, Answer], min_mass: float
) -> SentencePairScore | None:
    """Compute a pair's score from its answers; its outcome is not `ok` on failure. None if an answer is missing.

    Args:
        min_mass: see `LogprobProbe.min_mass`.
    """
    pair_answers = [answers.get(call.key) for call in pair.calls]
    if None in pair_answers:
        return None
    outcome = next(
        (answer.outcome for answer in pair_answers if answer and answer.outcome is not Outcome.OK), Outcome.OK
    )
    difference = None
    if not pair_answers:
        outcome = Outcome.NOT_MEASURABLE
    elif outcome is Outcome.OK:
        texts = [answer.text or "" for answer in pair_answers if answer]
        difference = _logprob_difference(pair, measure, texts, min_mass)
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


def _logprob_difference(
    pair: SentencePair, measure: LogprobMeasure | None, texts: list[str], min_mass: float
) -> float | None:
    """log P(positive) - log P(negative) in nats from the texts of the pair's answers; averaged over both orders."""
    if measure is LogprobMeasure.CHOICE:
        # A is the positive ending in the first order, and the negative one in the swapped order.
        difference, swapped_difference = (letter_logprob_difference(text, min_mass) for text in texts)
        return None if difference is None or swapped_difference is None else (difference - swapped_difference) / 2
    assert pair.call
    # The one answer lists the log-probabilities of all endings of the sentence, in the order of the call.
    end_logprobs: list[float] = json.loads(texts[0])
    ends = pair.call.continuations
    logprob_by_end = dict(zip(ends, end_logprobs, strict=True))
    return logprob_by_end[f" {pair.positive}"] - logprob_by_end[f" {pair.negative}"]


def letter_logprob_difference(text: str, min_mass: float = 0.0) -> float | None:
    """log P(A) - log P(B) in nats, from the most likely next tokens; None if either letter is not among them.

    A letter that is not among the tokens has a small but unknown probability, which is not imputed.

    Args:
        text: JSON list of pairs (token, log-probability).
        min_mass: minimum probability of both letters together; None is returned below it.
    """
    logprob_a, logprob_b = sum_letter_logprobs(text, ANSWER_LETTERS).values()
    if logprob_a is None or logprob_b is None or math.exp(logprob_a) + math.exp(logprob_b) < min_mass:
        return None
    return logprob_a - logprob_b


def sum_letter_logprobs(text: str, letters: Sequence[str]) -> dict[str, float | None]:
    """Log-probability of each letter in nats, from the most likely next tokens; None if it is not among them.

    All are None if the tokens are impossible: an answer that was recorded before may not have been checked for it.
    Tokens that equal the letter except for spaces and marks, such as ` A` and `A.`, are added up.

    Args:
        text: JSON list of pairs (token, log-probability).
    """
    logprobs_by_letter: dict[str, list[float]] = {letter: [] for letter in letters}
    candidates = json.loads(text)
    if find_impossible_candidates(candidates) is not None:
        return dict.fromkeys(letters)
    for token, logprob in candidates:
        # U+2581 and U+0120 stand for a space in the tokens of some tokenizers.
        stripped_token = token.strip(" \n\t\u2581\u0120\"'().:*")
        if stripped_token in logprobs_by_letter:
            logprobs_by_letter[stripped_token].append(logprob)
    return {letter: _log_sum_exp(logprobs) if logprobs else None for letter, logprobs in logprobs_by_letter.items()}


def _log_sum_exp(logprobs: list[float]) -> float:
    """log(sum(exp(x))), computed without overflow."""
    max_logprob = max(logprobs)
    return max_logprob + math.log(math.fsum(math.exp(logprob - max_logprob) for logprob in logprobs))
