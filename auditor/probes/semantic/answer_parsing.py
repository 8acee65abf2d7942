"""Parsing answers, rules of thumb, paraphrases and verdicts; unreadable ones get an outcome."""

from __future__ import annotations

import re
from typing import Literal

from auditor.domain import Answer, Outcome, Purpose
from auditor.metrics.paraphrase import normalize_text
from auditor.models.structured_reading import parse_structured_answer
from auditor.models.thinking import strip_thinking
from auditor.probes.semantic.answer_schemas import Choice, Contradiction, MoralAnswer, Paraphrases, RuleOfThumb, Support
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE

AnswerMode = Literal["structured", "text"]
_LABEL = re.compile(r"^\W*(?:rule of thumb|rot|rule|answer)\W*?:\W*?(?=\w)", re.IGNORECASE)
_CLAUSE = r"(?:it|this|that|these|those|the|they|there|i|we|he|she|both|because|since|as)\b"
_VERDICT = re.compile(rf"\W*(?:(yes|true)|no|false)\b(?![ \t]*/|[ \t]+(?!{_CLAUSE})\w)", re.IGNORECASE)
"""The word at the beginning of a verdict, alone or before a clause; "No context was sent" and "yes/no" are none. The
prompt is English and asks for yes or no; the published example has the verdicts True and False."""
_QUOTED = re.compile(r'^[“"«„](.*)[”"»“]$', re.DOTALL)


def parse_answer(answer: Answer, mode: AnswerMode) -> tuple[Outcome, str | None]:
    """Parse an answer to a moral question: the outcome, and the text if it is `ok`."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        return _require_letters(strip_thinking(answer.text).strip())
    moral_answer = parse_structured_answer(MoralAnswer, answer.text)
    return (Outcome.UNPARSED, None) if isinstance(moral_answer, str) else _require_letters(moral_answer.answer)


def parse_rule(answer: Answer, mode: AnswerMode, prompt_text: str = "") -> tuple[Outcome, str | None]:
    """Parse a rule of thumb: the outcome, and the text if it is `ok`.

    Args:
        answer: the model's answer.
        mode: `structured` or `text`.
        prompt_text: text of the prompt; a rule that it contains is rejected, since small models repeat its example.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        rule = strip_label_and_quotes(
            next((line for line in strip_thinking(answer.text).splitlines() if line.strip()), "")
        )
    else:
        rule_of_thumb = parse_structured_answer(RuleOfThumb, answer.text)
        if isinstance(rule_of_thumb, str):
            return Outcome.UNPARSED, None
        rule = strip_label_and_quotes(rule_of_thumb.rule)
    return (Outcome.UNPARSED, None) if normalize_text(rule) in normalize_text(prompt_text) else _require_letters(rule)


def parse_choice(answer: Answer, n_choices: int, request: str = "") -> tuple[Outcome, int | None, str | None]:
    """Parse a choice: the outcome, and the number of the option, from 1, and the reason if it is `ok`."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None, None
    choice = parse_structured_answer(Choice, answer.text, request)
    if isinstance(choice, str) or not 1 <= choice.choice <= n_choices:
        return Outcome.UNPARSED, None, None
    return Outcome.OK, choice.choice, choice.reason


def strip_label_and_quotes(text: str) -> str:
    """Remove a label before a sentence ("Rule of thumb:") and quotes around it."""
    text = _LABEL.sub("", text.strip()).strip()
    quoted = _QUOTED.match(text)
    return quoted[1].strip() if quoted else text


def parse_paraphrases(answer: Answer) -> list[str]:
    """Parse the paraphrases in an answer; empty if it is invalid."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return []
    paraphrases = parse_structured_answer(Paraphrases, answer.text)
    return (
        []
        if isinstance(paraphrases, str)
        else [text for paraphrase in paraphrases.paraphrases if (text := strip_label_and_quotes(paraphrase))]
    )


def parse_pair_verdict(
    answer: Answer, purpose: Purpose, *, is_paper_form: bool = False, request: str = ""
) -> tuple[Outcome, bool | None, str | None]:
    """Parse a verdict on a pair of answers: the outcome, whether the judge says yes, and the reason.

    The last two are None unless the outcome is `ok`.

    Args:
        is_paper_form: whether the verdict is the word yes or no (or true or false) at the beginning, without a reason.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None, None
    if is_paper_form:
        verdict = _VERDICT.match(strip_thinking(answer.text))
        return (Outcome.OK, verdict[1] is not None, None) if verdict else (Outcome.UNPARSED, None, None)
    if purpose is CONSISTENCY_PURPOSE:
        support = parse_structured_answer(Support, answer.text, request)
        return (
            (Outcome.UNPARSED, None, None)
            if isinstance(support, str)
            else (Outcome.OK, support.supported, support.reason)
        )
    contradiction = parse_structured_answer(Contradiction, answer.text, request)
    return (
        (Outcome.UNPARSED, None, None)
        if isinstance(contradiction, str)
        else (Outcome.OK, contradiction.contradict, contradiction.reason)
    )


def _require_letters(text: str) -> tuple[Outcome, str | None]:
    """Return `ok` and the text; `unparsed` and None for a text without a letter or digit."""
    return (Outcome.OK, text) if any(char.isalnum() for char in text) else (Outcome.UNPARSED, None)
