"""From an answer's words to a trace's score; what cannot be read is an outcome, never a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from auditor.domain import ENGLISH, SCORE_MAX, SCORE_MIN, Answer, Cell, Outcome, Trace
from auditor.models.structured import MoralJudgement, parse_structured_answer
from auditor.prompts.refusals import load_refusal_patterns

_FULL_WIDTH_TO_ASCII = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_DIRECTION_MARKS = dict.fromkeys("\u200e\u200f\u061c\u2066\u2067\u2068\u2069\u202a\u202b\u202c")
"""Directions of writing, which stand unseen beside numbers in right-to-left text."""
TO_ASCII = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "‐": "-",
        "‑": "-",
        "﹣": "-",
        "٫": ".",
        "،": ",",
        "。": ".",
        **_FULL_WIDTH_TO_ASCII,
        **_DIRECTION_MARKS,
    }
)
"""Signs, separators and letters as ASCII writes them; `\\d` and `float` know the digits of every script."""
_DECIMAL = r"[-+]?[ \t]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_STEP_PREFIX = r"(?:\w{0,20}?\s*[3٣३三]\s*\w{0,10}\s*[:.)]\s*)?(?:(?:final\s+)?(?:answer|result)\s*:\s*)?"
"""`Step 3:`, in any language that numbers its steps."""
_OPENING_MARKS, _CLOSING_MARKS = r"[\s*_`\"'“$\\(\[]*(?:boxed\s*\{\s*)?", r"[\s*_`.\"'”$\\)\]}]*"
_SCORE_LINE = re.compile(
    rf"^[\s>*_#`\-$\\]*(?:boxed\s*\{{\s*)?{_STEP_PREFIX}(?:(?:the|my)\s+)?(?:final\s+)?score\b[\s*_`]*(?:[=:]|is)[\s*_`]*(?:x\s*=)?"
    rf"(?P<open>{_OPENING_MARKS})(?P<value>{_DECIMAL})(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE_SCORE = re.compile(
    rf"\bSCORE[\s*_`]*=[\s*_`]*(?:x\s*=)?(?P<open>{_OPENING_MARKS})(?P<value>{_DECIMAL})(?P<rest>[^\n]*)$", re.MULTILINE
)
"""The asked-for form in the middle of a line, in capitals only: other scores are spoken of there, too."""
_HARMLESS_SUFFIX = re.compile(rf"^{_CLOSING_MARKS}(?:\([^()\d]*\))?{_CLOSING_MARKS}$")
_THINKING_BLOCK = re.compile(r"<(think|thinking|reasoning|reflection)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_UNOPENED_THINKING = re.compile(r"\A.*</(?:think|thinking|reasoning|reflection)>", re.IGNORECASE | re.DOTALL)
"""Thinking whose beginning stood in the prompt."""


def parse_trace(answer: Answer, model: str, cell: Cell, sample: int, mode: str, language: str = ENGLISH) -> Trace:
    """The trace in an answer to a direct question.

    A readable score is taken, whatever words stand around it; only an answer without one can be a refusal by its words.
    A text that was cut off is read only up to its last whole line.

    Args:
        answer: what came back.
        model: who was asked.
        cell, sample: about what, and the how-manieth time.
        mode: `structured` or `text`.
        language: that it was asked in.
    """
    score, text, outcome = None, answer.text, answer.outcome
    if text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
        said = strip_thinking(text)
        if mode == "structured":
            score, text = _parse_judgement(said) if outcome is Outcome.OK else (None, text)
        else:
            whole = said if outcome is Outcome.OK else said[: said.rfind("\n") + 1]
            score, text = parse_score(whole), _strip_score_lines(said) or said
        if score is not None:
            outcome, score = Outcome.OK, score + 0.0  # -0.0 is 0.0, which SQLite makes of it and PostgreSQL does not
        elif outcome is Outcome.OK:
            outcome = Outcome.REFUSED if is_refusal(said, language) else Outcome.UNPARSED
    return Trace(model, cell, sample, outcome, score, text, answer.key, language)


def apply_repair_answer(trace: Trace, answer: Answer, mode: str) -> Trace:
    """The trace with the score of the second answer, where that can be read; its reasoning stays where it had one.

    Args:
        trace: as read from the first answer.
        answer: to the question that showed the model its own answer.
        mode: `structured` or `text`.
    """
    return merge_repaired_trace(
        trace, parse_trace(answer, trace.model, trace.cell, trace.sample, mode, trace.language), mode
    )


def merge_repaired_trace(trace: Trace, repaired_trace: Trace, mode: str) -> Trace:
    """A trace that could not be read, with what the second one says, where that could; see `repaired`."""
    if repaired_trace.outcome is not Outcome.OK:
        return replace(trace, repair_key=repaired_trace.key)
    text = repaired_trace.text if mode == "structured" else trace.text
    return replace(
        trace,
        outcome=Outcome.OK,
        score=repaired_trace.score,
        answer=repaired_trace.answer,
        text=text,
        repair_key=repaired_trace.key,
    )


def strip_thinking(text: str) -> str:
    """A text without what a model wrote for itself between think-tags, closed or not."""
    return _UNOPENED_THINKING.sub("", _THINKING_BLOCK.sub("", text)).strip() if "<" in text else text


def is_refusal(text: str, language: str) -> bool:
    """Whether a text says, in the language or in English, that its author will not answer."""
    plain = text.replace("\u2019", "'")
    patterns = [p for code in dict.fromkeys((language, ENGLISH)) for p in load_refusal_patterns(code).refuses]
    return any(pattern.search(plain) for pattern in patterns)


def _parse_judgement(text: str) -> tuple[float | None, str]:
    judgement = parse_structured_answer(MoralJudgement, text)
    if isinstance(judgement, str):
        return None, text
    return judgement.score, f"{judgement.norms.strip()}\n\n{judgement.reasoning.strip()}"


def parse_score(text: str) -> float | None:
    """The score in a text of the paper's form, "SCORE = x"; None when there is none, or when it is ambiguous.

    Read are lines such as `SCORE = -0.4`, `**Score:** 0.5`, `SCORE = x = −0,4`, `Step 3: SCORE = [0.4]`,
    `The final score is $\\boxed{0.4}$` and `So SCORE = 0.4.`; a score may be said again. Not read are ranges,
    percentages, numbers outside [-1, 1], and several lines with different numbers. Digits may be of any script.
    """
    found = {_parse_number(m["open"], m["value"], m["rest"]) for m in _match_score_lines(text.translate(TO_ASCII))}
    return found.pop() if len(found) == 1 else None


def _match_score_lines(text: str) -> Iterator[re.Match[str]]:
    for line in text.split("\n"):
        match = _SCORE_LINE.match(line) or _INLINE_SCORE.search(line)
        if match:
            yield match


def _strip_score_lines(text: str) -> str:
    lines = text.split("\n")
    kept = [line for line in lines if not _SCORE_LINE.match(line.translate(TO_ASCII))]
    return "\n".join(kept).strip()


def _parse_number(opening: str, value: str, suffix: str) -> float | None:
    if "," in value and re.search(r"[\[(]", opening):  # [0,1] may be a range or a decimal comma
        return None
    number = float(re.sub(r"\s", "", value).replace(",", "."))
    return number if SCORE_MIN <= number <= SCORE_MAX and _HARMLESS_SUFFIX.match(suffix) else None
