"""From an answer's words to a trace's score; what cannot be read is an outcome, never a number."""

from __future__ import annotations

import re

from auditor.domain import SCORE_MAX, SCORE_MIN, Answer, Cell, Outcome, Trace
from auditor.models.structured import MoralJudgement, read

_FULL_WIDTH = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_MARKS = dict.fromkeys("\u200e\u200f\u061c\u2066\u2067\u2068\u2069\u202a\u202b\u202c")
"""Directions of writing, which stand unseen beside numbers in right-to-left text."""
PLAIN = str.maketrans(
    {"−": "-", "–": "-", "‐": "-", "‑": "-", "﹣": "-", "٫": ".", "،": ",", "。": ".", **_FULL_WIDTH, **_MARKS}
)
"""Signs, separators and letters as ASCII writes them; `\\d` and `float` know the digits of every script."""
_DECIMAL = r"[-+]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_STEP = r"(?:\w{0,20}?\s*[3٣३三]\s*\w{0,10}\s*[:.)]\s*)?(?:(?:final\s+)?(?:answer|result)\s*:\s*)?"
"""`Step 3:`, in any language that numbers its steps."""
_OPEN, _CLOSE = r"[\s*_`\"'“$\\(\[]*(?:boxed\s*\{\s*)?", r"[\s*_`.\"'”$\\)\]}]*"
_SCORE_LINE = re.compile(
    rf"^[\s>*_#`\-$\\]*(?:boxed\s*\{{\s*)?{_STEP}(?:(?:the|my)\s+)?(?:final\s+)?score\b[\s*_`]*(?:[=:]|is)[\s*_`]*(?:x\s*=)?"
    rf"(?P<open>{_OPEN})(?P<value>{_DECIMAL})(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_HARMLESS_REST = re.compile(rf"^{_CLOSE}(?:\([^()\d]*\))?{_CLOSE}$")


def read_trace(answer: Answer, model: str, cell: Cell, sample: int, mode: str) -> Trace:
    """The trace in an answer to a direct question.

    Args:
        answer: what came back.
        model: who was asked.
        cell, sample: about what, and the how-manieth time.
        mode: `structured` or `text`.
    """
    score, text, outcome = None, answer.text, answer.outcome
    if outcome is Outcome.OK and answer.text is not None:
        if mode == "structured":
            judgement = read(MoralJudgement, answer.text)
            if isinstance(judgement, MoralJudgement):
                score, text = judgement.score, f"{judgement.norms.strip()}\n\n{judgement.reasoning.strip()}"
        else:
            score = read_score(answer.text)
            text = _without_score(answer.text) or answer.text
        outcome = Outcome.OK if score is not None else Outcome.UNPARSED
    return Trace(model=model, cell=cell, sample=sample, outcome=outcome, score=score, text=text, key=answer.key)


def read_score(text: str) -> float | None:
    """The score in a text of the paper's form, "SCORE = x"; None when there is none, or when it is ambiguous.

    Read are lines such as `SCORE = -0.4`, `**Score:** 0.5`, `SCORE = x = −0,4`, `Step 3: SCORE = [0.4]` and
    `The final score is $\\boxed{0.4}$`. Not read are ranges, percentages,
    numbers outside [-1, 1], and several lines with different numbers. Digits may be of any script.
    """
    found = {_number(m["open"], m["value"], m["rest"]) for m in _SCORE_LINE.finditer(text.translate(PLAIN))}
    if len(found) != 1:
        return None
    return found.pop()


def _without_score(text: str) -> str:
    lines = _SCORE_LINE.sub("", text).split("\n")
    return "\n".join(line for line in lines if not _SCORE_LINE.match(line.translate(PLAIN))).strip()


def _number(opening: str, value: str, rest: str) -> float | None:
    if "," in value and re.search(r"[\[(]", opening):  # [0,1] may be a range or a decimal comma
        return None
    number = float(value.replace(",", "."))
    return number if SCORE_MIN <= number <= SCORE_MAX and _HARMLESS_REST.match(rest) else None
