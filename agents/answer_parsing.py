"""Parsing answers to direct questions into traces with a score; unreadable ones get an outcome, never a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from auditor.domain import ENGLISH, LANGUAGES, SCORE_MAX, SCORE_MIN, Answer, Cell, Outcome, Trace
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.structured_reading import parse_structured_answer
from auditor.models.thinking import strip_thinking
from auditor.prompts.refusals import load_refusal_patterns

MAX_REFUSAL_START_CHARS = 18
"""Room for `As an AI model, ` before a refusal."""
_FULL_WIDTH_TO_ASCII = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_DIRECTION_MARKS = dict.fromkeys("\u200e\u200f\u061c\u2066\u2067\u2068\u2069\u202a\u202b\u202c")
"""Invisible directional marks, which surround numbers in right-to-left text."""
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
"""Maps signs, separators and full-width letters to ASCII. `\\d` and `float` accept the digits of every script."""
_DECIMAL = r"[-+]?[ \t]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_STEP_PREFIX = r"(?:\w{0,20}?\s*[3٣३三]\s*\w{0,10}\s*[:.)]\s*)?(?:(?:final\s+)?(?:answer|result)\s*:\s*)?"
"""`Step 3:` in any language."""
_OPENING_MARKS, _CLOSING_MARKS = r"[\s*_`\"'“$\\(\[]*(?:boxed\s*\{\s*)?", r"[\s*_`.\"'”$\\)\]}]*"
_SCORE_LINE = re.compile(
    rf"^[\s>*_#`\-$\\]*(?:boxed\s*\{{\s*)?{_STEP_PREFIX}(?:(?:the|my)\s+)?(?:final\s+)?score\b[\s*_`]*(?:[=:]|is)[\s*_`]*(?:x\s*=)?"
    rf"(?P<open>{_OPENING_MARKS})(?P<value>{_DECIMAL})(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE_SCORE = re.compile(
    rf"\bSCORE[\s*_`]*=[\s*_`]*(?:x\s*=)?(?P<open>{_OPENING_MARKS})(?P<value>{_DECIMAL})(?P<rest>[^\n]*)$", re.MULTILINE
)
"""The requested form within a line; in capitals only, as running text may mention other scores.

Groups of both patterns: `open`, marks before the number; `value`, the number; `rest`, what follows it on the line."""
_HARMLESS_SUFFIX = re.compile(rf"^{_CLOSING_MARKS}(?:\([^()\d]*\))?{_CLOSING_MARKS}$")
"""What may follow a score on its line: closing marks, and a remark in parentheses without digits."""


def parse_trace(
    answer: Answer, model: str, cell: Cell, sample: int, mode: str, language: str = ENGLISH, request: str = ""
) -> Trace:
    """Parse the answer to a direct question into a trace.

    A readable score is used regardless of the text around it; only an answer without one is checked for a refusal, and
    a structured one whose texts all refuse: a server that enforces the structure makes a model add some score. A
    truncated text is read only up to its last complete line. Thinking is no part of the trace; the answer keeps it.

    Args:
        answer: the model's answer.
        model: name of the model.
        cell, sample: the cell, and the index of the sample.
        mode: `structured` or `text`.
        language: ISO 639-1 code of the language of the question.
        request: what the model was asked; an answer that only repeats it does not count.
    """
    score, text, outcome = None, answer.text, answer.outcome
    if text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
        visible_text = strip_thinking(text)
        score, text = _read_score(text, visible_text, mode, language, request, is_complete=outcome is Outcome.OK)
        if score is not None:
            outcome, score = Outcome.OK, score + 0.0  # turns -0.0 into 0.0, as SQLite does and PostgreSQL does not
        elif outcome is Outcome.OK:
            outcome = Outcome.REFUSED if is_refusal(visible_text, language) else Outcome.UNPARSED
    return Trace(model, cell, sample, outcome, score, text, answer.key, language)


def _read_score(
    text: str, visible_text: str, mode: str, language: str, request: str, *, is_complete: bool
) -> tuple[float | None, str]:
    """Read the score and the reasoning; in text mode, a text without a score line may be the JSON of a judgement."""
    if mode == "structured":
        return _parse_judgement(text, language, request) if is_complete else (None, visible_text)
    complete_lines = visible_text if is_complete else visible_text[: visible_text.rfind("\n") + 1]
    if is_complete and "{" in text and not any(_match_score_lines(visible_text.translate(TO_ASCII))):
        score, reasoning = _parse_judgement(text, language, request)
        if score is not None:
            return score, reasoning
    return parse_score(complete_lines), _strip_score_lines(visible_text) or visible_text


def merge_repaired_trace(trace: Trace, repaired_trace: Trace, mode: str) -> Trace:
    """Complete an unreadable trace with the score from the answer to the repair call, if that could be parsed.

    Args:
        trace: parsed from the first answer.
        repaired_trace: parsed from the answer to the repair call, which shows the model its first answer.
        mode: `structured` or `text`; in `text` mode the trace keeps its reasoning.

    Returns:
        If the second trace is `ok`: its score and answer, and in `structured` mode its text. Otherwise the first trace.
        Both with the key of the repair call.
    """
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


def is_refusal(text: str, language: str) -> bool:
    """Whether a text matches a known phrase of refusal, in the given language (ISO 639-1 code) or in English."""
    return bool(_find_refusals(text, language))


def is_refusal_in_any_language(text: str) -> bool:
    """Whether a text matches a known phrase of refusal in any language that has prompts."""
    return any(is_refusal(text, language) for language in LANGUAGES)


def begins_with_refusal(text: str, language: str) -> bool:
    """Whether a text refuses in its first words, as a judge does that must write a structure; later it may quote."""
    return any(start <= MAX_REFUSAL_START_CHARS for start in _find_refusals(text, language))


def _find_refusals(text: str, language: str) -> list[int]:
    """Positions at which a text matches phrases of refusal in a language or in English: of each phrase the first."""
    normalized_text = text.replace("\u2019", "'")
    patterns = [
        pattern for code in dict.fromkeys((language, ENGLISH)) for pattern in load_refusal_patterns(code).refuses
    ]
    return [match.start() for pattern in patterns if (match := pattern.search(normalized_text))]


def _parse_judgement(text: str, language: str, request: str) -> tuple[float | None, str]:
    """Parse a structured answer into its score and its reasoning; score None and the visible text if invalid.

    An answer whose texts are all refusals is invalid.
    """
    judgement = parse_structured_answer(MoralJudgement, text, request)
    if isinstance(judgement, str) or all(is_refusal(part, language) for part in (judgement.norms, judgement.reasoning)):
        return None, strip_thinking(text)
    return judgement.score, f"{judgement.norms.strip()}\n\n{judgement.reasoning.strip()}"


def parse_score(text: str, low: float = SCORE_MIN, high: float = SCORE_MAX) -> float | None:
    """Parse the score from a text in the paper's form, "SCORE = x"; None if it is missing or ambiguous.

    Args:
        low, high: ends of the scale.

    Accepted are lines such as `SCORE = -0.4`, `**Score:** 0.5`, `SCORE = x = −0,4`, `Step 3: SCORE = [0.4]`,
    `The final score is $\\boxed{0.4}$` and `So SCORE = 0.4.`; the same score may be repeated. Rejected are ranges,
    percentages, numbers outside the scale, and several lines with different numbers. Digits may be of any script.
    """
    scores = {
        _parse_number(match["open"], match["value"], match["rest"], low, high)
        for match in _match_score_lines(_to_ascii(text))
    }
    return scores.pop() if len(scores) == 1 else None


def _match_score_lines(text: str) -> Iterator[re.Match[str]]:
    """Yield one match per line that states a score, with the groups `open`, `value` and `rest`."""
    for line in text.split("\n"):
        if "score" not in line.casefold():  # saves most of the time: few lines state a score
            continue
        match = _SCORE_LINE.match(line)
        if match is None and (start := line.find("SCORE")) >= 0:  # a search from the start of the line takes longer
            match = _INLINE_SCORE.search(line, start)
        if match:
            yield match


def _strip_score_lines(text: str) -> str:
    """Return a text without the lines that state a score; empty if nothing else is left."""
    lines = text.split("\n")
    other_lines = [line for line in lines if not _SCORE_LINE.match(_to_ascii(line))]
    return "\n".join(other_lines).strip()


def _to_ascii(text: str) -> str:
    """A text with signs, separators and full-width letters in ASCII."""
    return text if text.isascii() else text.translate(TO_ASCII)


def _parse_number(opening: str, number_text: str, suffix: str, low: float, high: float) -> float | None:
    """Convert a matched number; None if it is ambiguous, outside the scale, or followed by more than closing marks.

    Args:
        opening, number_text, suffix: the marks before the number, the number, and the rest of its line.
        low, high: ends of the scale.
    """
    if "," in number_text and re.search(r"[\[(]", opening):  # [0,1] may be a range or a decimal comma
        return None
    number = float(re.sub(r"\s", "", number_text).replace(",", "."))
    return number if low <= number <= high and _HARMLESS_SUFFIX.match(suffix) else None
