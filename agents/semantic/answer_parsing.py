"""From a model's words to an answer, a rule of thumb, wordings or a verdict; what cannot be read is an outcome."""

from __future__ import annotations

import re
from typing import Literal

from auditor.domain import Answer, Outcome, Purpose
from auditor.metrics.paraphrase import normalize_text
from auditor.models.structured import (
    Choice,
    Contradiction,
    MoralAnswer,
    Paraphrases,
    RuleOfThumb,
    Support,
    parse_structured_answer,
)

AnswerMode = Literal["structured", "text"]
_LABEL = re.compile(r"^\W*(?:rule of thumb|rot|rule|answer)\W*?:\W*?(?=\w)", re.IGNORECASE)
_QUOTED = re.compile(r'^[“"«„](.*)[”"»“]$', re.DOTALL)


def parse_answer(answer: Answer, mode: AnswerMode) -> tuple[Outcome, str | None]:
    """How the call ended, and the answer in it, which only `ok` has."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        return _require_letters(answer.text.strip())
    found = parse_structured_answer(MoralAnswer, answer.text)
    return (Outcome.UNPARSED, None) if isinstance(found, str) else _require_letters(found.answer)


def parse_rule(answer: Answer, mode: AnswerMode, prompt_text: str = "") -> tuple[Outcome, str | None]:
    """How the call ended, and the rule of thumb in it, which only `ok` has.

    Args:
        answer: what came back.
        mode: `structured` or `text`.
        told: what the model was told; small models repeat an example of it, which is no rule of theirs.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        rule = strip_label_and_quotes(next((line for line in answer.text.splitlines() if line.strip()), ""))
    else:
        found = parse_structured_answer(RuleOfThumb, answer.text)
        if isinstance(found, str):
            return Outcome.UNPARSED, None
        rule = strip_label_and_quotes(found.rule)
    return (Outcome.UNPARSED, None) if normalize_text(rule) in normalize_text(prompt_text) else _require_letters(rule)


def parse_choice(answer: Answer, n_choices: int) -> tuple[int | None, str | None]:
    """The number of the answer chosen, from 1, and why; None where that cannot be read, or there is no such number."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return None, None
    found = parse_structured_answer(Choice, answer.text)
    if isinstance(found, str) or not 1 <= found.choice <= n_choices:
        return None, None
    return found.choice, found.reason


def strip_label_and_quotes(text: str) -> str:
    """A sentence without a label before it or quotes around it."""
    text = _LABEL.sub("", text.strip()).strip()
    quoted = _QUOTED.match(text)
    return quoted[1].strip() if quoted else text


def parse_paraphrases(answer: Answer) -> list[str]:
    """The wordings in an answer; none where it cannot be read."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return []
    found = parse_structured_answer(Paraphrases, answer.text)
    return [] if isinstance(found, str) else [text for p in found.paraphrases if (text := strip_label_and_quotes(p))]


def parse_pair_verdict(answer: Answer, purpose: Purpose) -> tuple[Outcome, bool | None, str | None]:
    """How the call ended, whether the judge says yes, and why."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None, None
    if purpose is Purpose.CONSISTENCY:
        support = parse_structured_answer(Support, answer.text)
        return (
            (Outcome.UNPARSED, None, None)
            if isinstance(support, str)
            else (Outcome.OK, support.supported, support.reason)
        )
    found = parse_structured_answer(Contradiction, answer.text)
    return (Outcome.UNPARSED, None, None) if isinstance(found, str) else (Outcome.OK, found.contradict, found.reason)


def _require_letters(text: str) -> tuple[Outcome, str | None]:
    """Words without a letter say nothing."""
    return (Outcome.OK, text) if any(c.isalnum() for c in text) else (Outcome.UNPARSED, None)
