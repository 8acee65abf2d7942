"""Parsing answers to questions and to items of a task into traces; unreadable ones get an outcome, never a number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from auditor.agents.refusals import are_all_refusals, is_refusal, is_refusal_in_any_language
from auditor.config.base import Structure
from auditor.domain import (
    ENGLISH,
    SCORE_MAX,
    SCORE_MIN,
    Answer,
    AnswerKind,
    Call,
    Cell,
    Outcome,
    Task,
    TaskItem,
    Trace,
)
from auditor.models.answer_schemas import MoralJudgement, ScoredAnswer, TaskAnswer
from auditor.models.json_extraction import to_ascii
from auditor.models.reasoning import strip_thinking
from auditor.models.structured import find_schema
from auditor.models.structured_reading import parse_structured_answer, read_structured_answer
from auditor.tasks import canonical_answer

MAX_UNREAD_ANSWERS = 20
"""Consecutive answers of a model without a score, after which the user is told."""
UNREAD_OUTCOMES = frozenset({Outcome.UNPARSED, Outcome.TRUNCATED, Outcome.REFUSED})
"""Answers without a score. Failed requests have notices of their own."""
MAX_SHOWN_KEYS = 5
MAX_KEY_CHARS = 40


@dataclass
class UnreadAnswers:
    """Counts each model's consecutive answers without a score, and tells the user once."""

    notify: Callable[[str], None]
    asks_for_text: bool = True
    """Whether direct questions ask for free text, so that another form may help."""
    _streaks: dict[str, Counter[Outcome]] = field(default_factory=dict)

    def record(self, model: str, outcome: Outcome) -> None:
        """Record how an answer was read; one with a score ends the streak."""
        streak = self._streaks.setdefault(model, Counter())
        if outcome is Outcome.OK and streak.total() < MAX_UNREAD_ANSWERS:
            streak.clear()
        if outcome not in UNREAD_OUTCOMES:
            return
        streak[outcome] += 1
        if streak.total() == MAX_UNREAD_ANSWERS:
            causes = ", ".join(f"{count} {cause.value}" for cause, count in streak.most_common())
            self.notify(
                f"None of the last {MAX_UNREAD_ANSWERS} answers of '{model}' has a score ({causes}). The run goes on. "
                "How to fix: Stop the run, and read some answers with `auditor traces`. If they are cut off, raise "
                "probes.direct.max_tokens; if they have another form, use mode = "
                f'"{"structured" if self.asks_for_text else "text"}".'
            )


@dataclass
class IgnoredKeys:
    """Counts keys of structured answers that their schema lacks, which are ignored."""

    _n_answers: Counter[str] = field(default_factory=Counter)
    _counts: dict[str, Counter[str]] = field(default_factory=dict)

    def record(self, call: Call, answer: Answer) -> None:
        """Count the ignored keys of an answer by its model."""
        if call.schema is None or answer.outcome is not Outcome.OK or answer.text is None:
            return
        schema = find_schema(call.schema)
        keys = read_structured_answer(schema, answer.text, call.request_text, explains=False).ignored_keys
        if keys:
            self._n_answers[call.name] += 1
            self._counts.setdefault(call.name, Counter()).update(key[:MAX_KEY_CHARS] for key in keys)

    def notices(self) -> Iterator[str]:
        """Yield a notice for each model with ignored keys."""
        for model, counts in self._counts.items():
            keys = ", ".join(f"{key!r} ({count})" for key, count in counts.most_common(MAX_SHOWN_KEYS))
            others = f" and {len(counts) - MAX_SHOWN_KEYS} more" if len(counts) > MAX_SHOWN_KEYS else ""
            yield (
                f"{self._n_answers[model]} answers of '{model}' have keys that were not asked for, which are ignored: "
                f"{keys}{others}."
            )


_DECIMAL = r"[-+]?[ \t]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_STEP_PREFIX = r"(?:\w{0,20}?\s*[3٣३三]\s*\w{0,10}\s*[:.)]\s*)?(?:(?:final\s+)?(?:answer|result)\s*:\s*)?"
"""`Step 3:` in any language."""
_OPENING_MARKS, _CLOSING_MARKS = r"[\s*_`\"'“$\\(\[]*(?:boxed\s*\{\s*)?", r"[\s*_`.;\"'”$\\)\]}]*"
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
_SCALE_REMARK = re.compile(
    rf"[\s,(\[]*(?:(?:on|in|within)\s+)?(?:(?:a|the)\s+)?(?:scale|range)\s*(?:(?:of|from|between)\s+)?[(\[]?"
    rf"(?P<low>{_DECIMAL})\s*(?:to|and|,|\.\.+|…)\s*(?P<high>{_DECIMAL})",
    re.IGNORECASE,
)
"""The scale, named after a score: it is no second number."""
_LABEL_LINE = re.compile(
    rf"^[\s>*_#`-]*{_STEP_PREFIX}(?:(?:the|my)\s+)?(?:final\s+)?(?P<label>score|answer)[\s*_`]*[=:]?[\s*_`]*$",
    re.IGNORECASE,
)
"""A heading, or a label before a line break: what it names is the next line."""
MAX_LABEL_CHARS = 80
"""Longer lines are no labels."""
_NUMBER_LINE = re.compile(rf"^{_OPENING_MARKS}{_DECIMAL}[\s*_`\"'”$\\)\]}}]*$")


def _join_labels(text: str) -> str:
    """Write a score or an answer that stands below its label beside it, as in "**Score:**", an empty line, and "0.4".

    A score is a number alone on its line, and not followed by another one; an answer is the last line.
    """
    lines = text.split("\n")
    filled = [index for index, line in enumerate(lines) if line.strip()]
    joined: list[tuple[int, int, str]] = []
    for position, (index, end) in enumerate(pairwise(filled)):
        if len(lines[index]) > MAX_LABEL_CHARS or (match := _LABEL_LINE.match(to_ascii(lines[index]))) is None:
            continue
        later = [to_ascii(lines[later_index]) for later_index in filled[position + 1 : position + 3]]
        if match["label"].lower() == "score":
            is_joined = [bool(_NUMBER_LINE.match(line)) for line in later] in ([True], [True, False])
        else:
            is_joined = len(later) == 1
        if is_joined:
            joined.append((index, end, f"{match['label']} = {lines[end].strip()}"))
    for index, end, line in reversed(joined):
        lines[index : end + 1] = [line]
    return "\n".join(lines)


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
        visible_text = strip_thinking(text) if mode == "structured" else _join_labels(strip_thinking(text))
        score, text = _read_score(text, visible_text, mode, language, request, is_complete=outcome is Outcome.OK)
        if score is not None:
            outcome, score = Outcome.OK, score + 0.0  # turns -0.0 into 0.0, as SQLite does and PostgreSQL does not
        elif outcome is Outcome.OK:
            free_texts = read_free_texts(MoralJudgement, answer.text or "", request) if "{" in visible_text else []
            outcome = find_unread_outcome(visible_text, free_texts, language)
    return Trace(model, cell, sample, outcome, score, text, answer.key, language)


def _read_score(
    text: str, visible_text: str, mode: str, language: str, request: str, *, is_complete: bool
) -> tuple[float | None, str]:
    """Read the score and the reasoning; in text mode, a text without a score line may be the JSON of a judgement."""
    if mode == "structured":
        return _parse_judgement(text, language, request) if is_complete else (None, visible_text)
    complete_lines = visible_text if is_complete else visible_text[: visible_text.rfind("\n") + 1]
    if is_complete and "{" in text and not any(_match_score_lines(to_ascii(visible_text))):
        score, reasoning = _parse_judgement(text, language, request)
        if score is not None:
            return score, reasoning
    lines = visible_text.split("\n")
    other_lines = [line for line in lines if not _SCORE_LINE.match(to_ascii(line))]
    return parse_score(complete_lines), "\n".join(other_lines).strip() or visible_text


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


def read_free_texts(structure: type[Structure], text: str, request: str) -> list[str]:
    """Read the texts of a structured answer that explain it; empty if it cannot be read."""
    answer = read_structured_answer(structure, text, request, explains=False).answer
    values = {} if answer is None else answer.model_dump()
    return [values[name] for name in ("norms", "reasoning") if name in values]


def find_unread_outcome(visible_text: str, free_texts: Sequence[str], language: str) -> Outcome:
    """Outcome of a complete answer without a usable score: a refusal, in any language, or an unreadable answer.

    Args:
        visible_text: the answer without thinking.
        free_texts: the texts of a structured answer; empty for another one.
        language: ISO 639-1 code of the language of the question.
    """
    is_refused = is_refusal_in_any_language(visible_text) or are_all_refusals(free_texts, language)
    return Outcome.REFUSED if is_refused else Outcome.UNPARSED


def _parse_judgement(text: str, language: str, request: str) -> tuple[float | None, str]:
    """Parse a structured answer into its score and its reasoning; score None and the visible text if invalid.

    An answer whose texts are all refusals is invalid.
    """
    judgement = parse_structured_answer(MoralJudgement, text, request)
    if isinstance(judgement, str) or are_all_refusals((judgement.norms, judgement.reasoning), language):
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
        for match in _match_score_lines(to_ascii(text))
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


def _parse_number(opening: str, number_text: str, suffix: str, low: float, high: float) -> float | None:
    """Convert a matched number; None if it is ambiguous, outside the scale, or followed by more than closing marks.

    Args:
        opening, number_text, suffix: the marks before the number, the number, and the rest of its line.
        low, high: ends of the scale.
    """
    if "," in number_text and re.search(r"[\[(]", opening):  # [0,1] may be a range or a decimal comma
        return None
    scale = _SCALE_REMARK.match(suffix)
    if scale is not None and (_to_number(scale["low"]), _to_number(scale["high"])) == (low, high):
        suffix = suffix[scale.end() :]
    number = _to_number(number_text)
    return number if low <= number <= high and _HARMLESS_SUFFIX.match(suffix) else None


def _to_number(text: str) -> float:
    """The value of a matched number."""
    return float(re.sub(r"\s", "", text).replace(",", "."))


TaskAnswerSchema: TypeAlias = ScoredAnswer | TaskAnswer
PLACEHOLDER = "x"
"""Placeholder for the answer in the requested form, "ANSWER = x"."""
_LINE_PREFIX = r"[\s>*_#`\-$]*(?:step\s*\d+\s*[:.)]\s*)?(?:(?:so|thus|therefore|hence)\b,?\s*)?"
_ANSWER_LINE = re.compile(
    rf"^{_LINE_PREFIX}(?:(?:the|my)\s+)?(?:final\s+|correct\s+|right\s+)?answer\b[\s*_`]*(?:[=:]|is\b:?)[\s*_`]*(?:x\s*=)?"
    r"(?P<value>[^\n]+)$",
    re.IGNORECASE,
)
_INLINE_ANSWER = re.compile(r"\bANSWER[\s*_`]*=[\s*_`]*(?:x\s*=)?(?P<value>[^\n]+)$")
"""The requested form, in capitals, anywhere in a line."""
_INLINE_START = (
    r"(?<!\b[eE]\.[gG]\.)(?<!\b[iI]\.[eE]\.)"
    r"(?:(?<=[.!;])|(?<=[.!;][)*_])|\b(?:[Ss]o|[Tt]hus|[Hh]ence|[Tt]herefore)\b,?)"
)
"""Where a statement begins within a line: text that quotes the form, or negates it, has it elsewhere."""
_INLINE_ANSWER_STATEMENT = re.compile(
    rf"{_INLINE_START}[ \t]+[*_]{{0,3}}(?:FINAL )?ANSWER[*_]{{0,3}}[ \t]*:[\s*_`]*(?P<value>[^\n]+)$"
)
"""Nearly the requested form: in capitals, with a colon, at the beginning of a statement."""
_CONTINUED = re.compile(r"[.!?;]\s+\S|\b(?:not|is|are|was|were|would|could|which|but|or|answer)\b", re.IGNORECASE)
"""What follows is no answer alone, but a text about one."""
_NO_STATEMENT = re.compile(r"[\"'`“”‘’«»]|\b(?:example|format|if|wrong\w*|e\.g|i\.e|write|writes)\b", re.IGNORECASE)
"""What comes before is about answers in general."""


def parse_task_trace(
    answer: Answer, task: Task, model: str, cell: Cell, sample: int, mode: str, request: str = ""
) -> Trace:
    """Parse the answer to an item of a task into a trace; only the outcome `ok` has an answer.

    A scored item also gets its score in [-1, 1]. As in `parse_trace`, a readable answer is used regardless of the text
    around it, only an unreadable one is checked for a refusal, and a truncated text is read only up to its last
    complete line.

    Args:
        answer: the model's answer.
        task: the task.
        model: name of the model.
        cell, sample: the cell of the item, and the index of the sample.
        mode: `structured` or `text`.
        request: what the model was asked; an answer that only repeats it does not count.
    """
    item, canonical, text, outcome = task.item_for(cell), None, answer.text, answer.outcome
    if text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
        visible_text = strip_thinking(text)
        if mode == "structured":
            canonical, text = (
                _parse_structured(task, item, text, request) if outcome is Outcome.OK else (None, visible_text)
            )
        else:
            visible_text = _join_labels(visible_text)
            complete_lines = visible_text if outcome is Outcome.OK else visible_text[: visible_text.rfind("\n") + 1]
            canonical, text = (
                parse_answer_line(task, item, complete_lines),
                "\n".join(line for line in visible_text.split("\n") if not _ANSWER_LINE.match(line)).strip()
                or visible_text,
            )
        if canonical is not None and not (task.kind is AnswerKind.EXACT and is_refusal(canonical, ENGLISH)):
            outcome = Outcome.OK
        elif outcome is Outcome.OK:
            free_texts = (
                read_free_texts(_answer_schema(task), answer.text or "", request) if mode == "structured" else []
            )
            canonical, outcome = None, find_unread_outcome(visible_text, free_texts, ENGLISH)
        else:
            canonical = None
    score = task.scale_score(float(canonical)) if canonical is not None and task.kind is AnswerKind.SCORE else None
    return Trace(model, cell, sample, outcome, score, text, answer.key, answer=canonical)


def parse_answer_line(task: Task, item: TaskItem, text: str) -> str | None:
    """Parse the canonical answer from a text with "ANSWER = x"; None if it is missing, invalid or ambiguous.

    Accepted are lines such as `ANSWER = B`, `**Answer:** (b) Rome`, `The final answer is $\\boxed{42}$.` and
    `So ANSWER = 42`; the same answer may be repeated. Rejected are several lines with different answers. A text that is
    one line, such as `B` or `42`, is the answer, except where any words would be one.
    """
    candidates = _candidate_answers(text)
    if not candidates and "\n" not in text.strip() and (task.kind is not AnswerKind.EXACT or task.numbers):
        candidates = [text]
    answers = {canonical_answer(task, item, candidate) for candidate in candidates}
    return answers.pop() if len(answers) == 1 else None


def describe_parse_problem(task: Task, text: str, request: str = "") -> str:
    """Explain in one line why a structured answer is invalid, for the model that gave it."""
    parsed_answer = parse_structured_answer(_answer_schema(task), text, request)
    return (
        parsed_answer
        if isinstance(parsed_answer, str)
        else f"answer: '{parsed_answer.answer}' is not one of the allowed answers"
    )


def _answer_schema(task: Task) -> type[TaskAnswerSchema]:
    """Schema of a structured answer to the task."""
    return ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer


def _parse_structured(task: Task, item: TaskItem, text: str, request: str) -> tuple[str | None, str]:
    """Parse a structured answer into the canonical answer and the reasoning; None and the visible text if invalid.

    The canonical answer is also None if the answer is not valid for the item, or if all free texts are refusals: a
    server that enforces the structure makes a model that refuses add some answer.
    """
    parsed_answer = parse_structured_answer(_answer_schema(task), text, request)
    if isinstance(parsed_answer, str):
        return None, strip_thinking(text)
    has_free_answer = task.kind is AnswerKind.EXACT and not task.numbers
    free_texts = [parsed_answer.reasoning, *([str(parsed_answer.answer)] if has_free_answer else [])]
    if are_all_refusals(free_texts, ENGLISH):
        return None, strip_thinking(text)
    return canonical_answer(task, item, str(parsed_answer.answer)), parsed_answer.reasoning.strip()


def _candidate_answers(text: str) -> list[str]:
    """Texts that follow the requested "ANSWER ="; if there are none, those after "answer is" and the like."""
    lines = text.split("\n")
    inline_answers = [match["value"] for line in lines if (match := _INLINE_ANSWER.search(to_ascii(line)))]
    # A repetition of the instruction, "ANSWER = x", is no answer.
    inline_answers = [candidate for candidate in inline_answers if candidate.strip(" .*_`'\"") != PLACEHOLDER]
    return inline_answers or [value for line in lines if (value := _find_loose_answer(line)) is not None]


def _find_loose_answer(line: str) -> str | None:
    """What a line names as the answer in another form than the requested one; None if it names none."""
    if match := _ANSWER_LINE.match(line):
        return match["value"]
    match = _INLINE_ANSWER_STATEMENT.search(to_ascii(line))
    if match is None or _NO_STATEMENT.search(line[: match.start("value")]) or _CONTINUED.search(match["value"]):
        return None
    return match["value"] if match["value"].strip(" .*_`'\"") != PLACEHOLDER else None
