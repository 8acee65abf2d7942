"""Whether what stands beside a structured answer takes it back: another key of its object, or the text around it.

An answer that says two things is none: which of them a person would publish is not for a program to choose.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from auditor.domain import SCORE_MAX
from auditor.models.json_extraction import JsonObject
from auditor.models.structured_fields import (
    BOOLEANS,
    NEGATION,
    SIGNED_NUMBER,
    AnswerField,
    normalize_key,
    read_value,
    to_float,
)

MAX_LABEL_CHARS = 60
"""Longest text that may be nothing but a label, with marks around it."""
MAX_OTHER_ANSWER = 100
"""Largest number in a remark after an answer that may be another answer."""
_ADDED_WORDS = frozenset({"final", "revised", "new", "updated", "corrected", "adjusted", "overall", "value", "number"})
"""Words that make another name for a field, as in `score_final`."""
_OTHER_QUANTITIES = frozenset(
    {"confidence", "certainty", "probability", "min", "minimum", "max", "maximum", "lowest", "highest", "possible"}
)
"""Words before a field's name that make it the name of something else, as in `confidence_score` and `max_score`."""
_ANSWER_NAMES = frozenset({"answer", "conclusion", "decision", "judgement", "judgment", "rating", "result", "ruling"})
"""Names that an answer as a whole may have, as in `final_decision`."""
_MAIN_FIELDS = frozenset({"answer", "better", "choice", "score", "verdict"})
"""Fields that are the answer as a whole."""
_WORD_OF_KEY = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_WHOLE_NUMBER = re.compile(rf"(?<![\w.]){SIGNED_NUMBER}(?![\w%])")
_BARE_LABEL = re.compile(
    r"[\W_]*(?:(?:so|thus|hence|therefore|i\.e\.)\W+)?(?P<negation>not\W+)?(?P<label>[A-Za-z]+)[\W_]*", re.IGNORECASE
)
"""A text that is a label, or its negation, and nothing else."""
_STATEMENT = re.compile(
    r"\b(?:is|are|as|seems|looks|be|rules?|say|vote)\s{1,9}(?:\w{1,20}ly\s{1,9})?[*_\"'`]{0,4}"
    r"(?P<negation>(?i:not)\s{1,9})?[*_\"'`]{0,4}(?P<label>[A-Z]{2,9})\b(?!\W{0,9}(?:or|if|when|and)\b)"
)
"""A sentence that gives a label in capitals, as in "This trace is INVALID."."""
_SENTENCE_END = re.compile(r"[.!?\n]")
_HYPOTHETICAL = re.compile(
    r"\b(?:if|whether|when|would|could|may|might|should|either|decide|not|never|or|unless|hard|difficult)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"\b(?:actually|correction|revised|instead|rather|make (?:that|it)|wait|sorry|(?:final|my|the) answer"
    r"|on (?:(?:a )?second (?:thoughts?|look)|reflection)"
    r"|I(?:'d| would| will| should| must)? (?:change|revise|raise|lower|correct|adjust|withdraw|choose|pick)"
    r"|should (?:rather )?(?:be|have been))\b(?P<words>[^\n]{0,80})",
    re.IGNORECASE,
)
"""A sentence after an answer in which it may be taken back."""
_OF_ANOTHER = re.compile(
    r"\b(?:if|when|where|a|an|any|each|every|average|mean|median|neutral|global|(?:confidence|certainty|probability"
    r"|min(?:imum)?|max(?:imum)?|lowest|highest|possible))(?:\s+the)?[\s*_`]*\Z",
    re.IGNORECASE,
)
"""Words before a field's name that make a statement one about something else than the answer."""
_DEFINITION = re.compile(
    r"[\"'*_`)]*\s*(?:=|\b(?:means?|would|indicates?|represents?|denotes?|stands for|corresponds to"
    r"|is (?:always|never))\b)",
    re.IGNORECASE,
)
"""Words after a value that explain the scale, as in "score = 1 means always acceptable"."""


def differs(fields: Any, first: BaseModel, second: BaseModel) -> bool:
    """Whether two answers differ in a measured field."""
    return any(
        field.is_measured and _comparable(getattr(first, field.name)) != _comparable(getattr(second, field.name))
        for field in fields
    )


def _comparable(value: Any) -> Any:
    """A text without regard to case and white space; other values as they are."""
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def has_rival(field: AnswerField, value: Any, unknown: Sequence[tuple[str, Any]]) -> bool:
    """Whether a key that the schema lacks, at any depth, is named like a measured field and has another value."""
    if not field.is_measured or field.kind in ("texts", "numbers"):
        return False
    for key, other in unknown:
        if isinstance(other, JsonObject):
            if has_rival(field, value, other):
                return True
        elif isinstance(other, list):
            if has_rival(field, value, [pair for part in other if isinstance(part, JsonObject) for pair in part]):
                return True
        elif _is_named_like(field, key) or _names_answer(field, key):
            if _states_other(field, value, other) and _is_possible(field, other):
                return True
        elif _is_denied(field, value, key, other) or (field.kind == "label" and _is_other_label(field, value, other)):
            return True
    return False


def _names_answer(field: AnswerField, key: str) -> bool:
    """Whether a key names the answer as a whole, such as `final` or `decision`, and the field is that."""
    words = {word.lower() for word in _WORD_OF_KEY.findall(key)}
    return field.name in _MAIN_FIELDS and field.kind != "text" and words <= _ANSWER_NAMES | _ADDED_WORDS


def _is_possible(field: AnswerField, other: Any) -> bool:
    """Whether a number may be a score; any other value may be one of the field's."""
    number = read_value(field, other) if field.name == "score" else 0
    return not isinstance(number, (int, float)) or abs(number) <= SCORE_MAX


def _is_other_label(field: AnswerField, value: Any, other: Any) -> bool:
    """Whether a text consists of another label, or of a negation of the answer's, whatever its case."""
    if not isinstance(other, str) or len(other) > MAX_LABEL_CHARS:
        return False
    match = _BARE_LABEL.fullmatch(other)
    if match is None or match["label"].upper() not in field.labels:
        return False
    return (match["label"].upper() == value) is (match["negation"] is not None)


def _is_named_like(field: AnswerField, key: str) -> bool:
    """Whether a key is another name for a field, such as `final_score` or `scoreRevised`."""
    words = [word.lower() for word in _WORD_OF_KEY.findall(key)]
    name = field.name.split("_")
    n = len(name)
    if any(normalize_key(key) in (word + "".join(name), "".join(name) + word) for word in _ADDED_WORDS):
        return True
    if set(words) & _OTHER_QUANTITIES - {field.name}:
        return False
    return words[-n:] == name or (
        words[:n] == name and all(word in _ADDED_WORDS or word.isdigit() for word in words[n:])
    )


def _is_denied(field: AnswerField, value: Any, key: str, flag: Any) -> bool:
    """Whether a key that is named for a label, such as `is_valid`, says by true or false that it is another one."""
    label = normalize_key(key).removeprefix("is").upper()
    if type(flag) is str:
        flag = BOOLEANS.get(flag.strip().lower())
    return label in field.labels and isinstance(flag, bool) and (label == value) != flag


def _states_other(field: AnswerField, value: Any, other: Any) -> bool:
    """Whether a value states another number, label or text than the field's."""
    read = read_value(field, other)
    if field.kind in ("number", "integer"):
        is_number = isinstance(read, (int, float)) and not isinstance(read, bool)
        scale = 100 if field.name == "confidence" and isinstance(read, float) and read <= 1 else 1
        return is_number and value is not None and read * scale != value
    if field.kind == "boolean":
        return isinstance(read, bool) and read != value
    if field.kind == "label":
        denied = str(other).upper().removeprefix("NOT ").strip() if str(other).upper().startswith("NOT ") else None
        return denied == value if denied else read in field.labels and read != value
    return isinstance(read, str) and _comparable(read) != _comparable(value)


@functools.cache
def _claim_pattern(field: AnswerField) -> re.Pattern[str]:
    """A statement of a field's value in prose or in JSON, such as `score: 0.5`, `"score": 0.5` and `score is 0.5`."""
    value = {
        "label": r"(?:not\s+)?[A-Za-z]+",
        "boolean": r"true|false",
        "text": rf"(?:{SIGNED_NUMBER}|(?-i:[A-Z]))(?=[.!*_`\"')\]]*(?:\s*\n|\s*\Z|\s+(?-i:[A-Z])))",
    }.get(field.kind, rf"{SIGNED_NUMBER}(?![\d.]*\s*(?:to|and|or|\.\.|[-\u2013/])\s*[-+\u2212]?[\d.])")
    name = re.escape(field.name).replace("_", r"[\s_]")
    return re.compile(
        rf"\b{name}[\"'*_`]*\s{{0,9}}(?:[:=]|\b(?:is|was|(?:should|would|must) be)\b)[\s\"'*_`]{{0,9}}({value})",
        re.IGNORECASE,
    )


def _claims(field: AnswerField, text: str) -> Iterator[str]:
    """Yield the values that a text states of a field of the answer."""
    for match in _claim_pattern(field).finditer(text):
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if _OF_ANOTHER.search(before) is None and _DEFINITION.match(after) is None:
            yield match[1]


def is_contradicted(fields: Any, answer: BaseModel, surroundings: Sequence[str]) -> bool:
    """Whether the text around an answer states another value of a measured field.

    Args:
        surroundings: the text before the answer and between its repetitions, and, last, the text after it.
    """
    if not any(any(char.isalpha() for char in part) for part in surroundings):
        return False
    return any(
        _is_stated_otherwise(field, getattr(answer, field.name), surroundings)
        for field in fields
        if field.is_measured and field.kind not in ("texts", "numbers")
    )


def _is_stated_otherwise(field: AnswerField, value: Any, surroundings: Sequence[str]) -> bool:
    """Whether the text around an answer states another value of one field; see `is_contradicted`."""
    text_after = surroundings[-1]
    if field.kind == "text":
        return _is_corrected(field, value, text_after)
    if any(_states_other(field, value, claim) for part in surroundings for claim in _claims(field, part)):
        return True
    if field.kind == "label":
        return _names_other_label(field, value, text_after) or any(
            _states_other_label(field, value, part) for part in surroundings
        )
    if field.kind == "boolean":
        return value is True and re.search(rf"{NEGATION}{field.name}\b", text_after, re.IGNORECASE) is not None
    retractions = _RETRACTION.finditer(text_after) if field.name in ("score", "answer", "choice") else ()
    numbers = [number for match in retractions for number in _WHOLE_NUMBER.findall(match["words"])]
    return any(_states_other(field, value, number) for number in numbers if _may_answer(field, number))


def _may_answer(field: AnswerField, number: str) -> bool:
    """Whether a number may be the field's value, and not a year or a percentage."""
    return abs(to_float(number)) <= (SCORE_MAX if field.name == "score" else MAX_OTHER_ANSWER)


def _is_corrected(field: AnswerField, value: str, text: str) -> bool:
    """Whether a text after an answer that is a number or a letter says that it is another one."""
    if re.fullmatch(rf"{SIGNED_NUMBER}|[A-Z]", value) is None:
        return False
    return any(
        to_float(claim) != to_float(value) if not value.isalpha() and not claim.isalpha() else claim != value
        for claim in _claims(field, text)
    )


def _states_other_label(field: AnswerField, value: str, text: str) -> bool:
    """Whether a line of a text beside an answer is another label, or a sentence says that it is the one."""
    if any(_is_other_label(field, value, line) for line in text.split("\n")):
        return True
    return any(
        match["label"] in field.labels
        and (match["label"] == value) == bool(match["negation"])
        and _HYPOTHETICAL.search(_SENTENCE_END.split(text[max(0, match.start() - 200) : match.start()])[-1]) is None
        for match in _STATEMENT.finditer(text)
    )


def _names_other_label(field: AnswerField, value: str, text: str) -> bool:
    """Whether a text after an answer names another label than the answer's, or denies the answer's."""
    if re.search(rf"(?i:{NEGATION}){value}\b", text):
        return True
    words = set(re.findall(r"\b[A-Z]{2,}\b", re.sub(rf"(?i:{NEGATION})[A-Z]{{2,}}\b", "", text)))
    others = set(field.labels) - {value}
    return bool(value not in words and words & others) or any(
        others & set(re.findall(r"\b[A-Z]+\b", match["words"])) for match in _RETRACTION.finditer(text)
    )
