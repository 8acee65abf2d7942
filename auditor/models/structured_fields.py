"""The fields of a structured answer, and the value that each takes from a number, a label or a text.

A number is read in the notations of any language, a label from the beginning of a text unless what follows takes it
back. Whatever is not read without doubt is returned as it is, and fails validation.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from auditor.models.json_extraction import NumberText, parse_number, to_ascii, to_plain

FieldKind = Literal["number", "integer", "boolean", "label", "text", "numbers", "texts"]

_FREE_TEXTS = frozenset({"norms", "reasoning", "reason", "justification"})
"""Texts that explain an answer, and do not decide which of two is meant."""
BOOLEANS = {"true": True, "false": False}
_MINUS_SIGNS = "\u2212\u2013\uff0d\ufe63"
"""Minus sign, en dash, and the full-width and small hyphens of Chinese and Japanese texts."""
_TO_NUMBER = str.maketrans({**dict.fromkeys(_MINUS_SIGNS, "-"), ",": "."})
_SIGN = rf"[-+{_MINUS_SIGNS}]?"
SIGNED_NUMBER = rf"{_SIGN}(?:\d+(?:\.\d*)?|\.\d+)"
"""Pattern of a number with a decimal point, without exponent."""
_NUMBER = re.compile(
    rf"\s*({SIGNED_NUMBER}(?:[eE][-+]?\d+)?|{_SIGN}(?:0?,\d+|\d+,\d{{1,2}}))\s*(%|per\s?cent)?\s*\Z", re.IGNORECASE
)
"""A number in a text, with a decimal point or a comma that separates no thousands, and a percent sign."""
_LABEL = re.compile(
    r"[\s*_`\"'(\[\u2705\u2713\u2714\ufe0f]*(?:(?:option|answer|choice|verdict)\b[\s*_`\"'(\[:=]*)?([A-Za-z]+)(?![?\w])(.*)\Z",
    re.DOTALL | re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[\s*_`\"')\].!]*\Z|[\s*_`\"'\].!]*(?:[-\u2013\u2014:;,.()\n]|\b(?:because|since|as)\b)")
_DOUBT = re.compile(
    r"\W*(?:or|but|however|al?though|though|except|unless|if|maybe|perhaps|part(?:ly|ially)|mostly|only|false|would"
    r"|is what|that would|(?P<negation>not?|never|nor|neither))\b|.*\?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""What, after a label, takes it back or asks."""
_NO_FAULT = re.compile(
    r"\W*(?:no|not a single)\s+(?:\w+\s+)?(?:errors?|faults?|flaws?|gaps?|issues?|mistakes?|problems?|contradictions?"
    r"|inconsistenc(?:y|ies)|(?:step|part)s? (?:is|are) missing)\b",
    re.IGNORECASE,
)
"""Praise that begins with a negation."""
_FULL_NEGATION = re.compile(
    r"\W*(?:no|not|never)\s+(?!really\b|quite\b|at all\b|exactly\b|entirely\b|so\b|sure\b|necessarily\b)\w+\s+\w",
    re.IGNORECASE,
)
"""A negation of something else than the label, such as "not all steps follow"."""
_APOSTROPHE = "['`\u2019\u02bc\u00b4\ufffd]"
"""Also the character that stands for a byte that is not UTF-8, as of an apostrophe of Windows."""
_FILLER = (
    r"(?!(?:without|free|only|just|merely|simply|few|fewer|more|lack|deny|ignore|overlook|exclude|hide|shortage|end"
    r"|doubt|question|mind)\b)\w+\s+"
)
"""A word between a negation and a fault that leaves the fault denied."""
_PRAISE = re.compile(
    r"(?:\b(?:fails?|contradicts?|violates?|lacks?|misses)\s+(?:nothing|nowhere|none|(?:in\s+)?no\s+\w+)\b"
    rf"|\b(?:no|not|never|none of the|without|cannot|\w+n{_APOSTROPHE}t)\s+(?:{_FILLER}){{0,2}}?"
    rf"(?:{_FILLER}(?:is|are)\s+)?"
    r"(?:errors?|fail\w*|fault(?!less)\w*|flaw(?!less)\w*|incorrect\w*|gaps?|issues?|mistakes?|problems?"
    r"|contradict\w*|inconsisten\w*|missing|wrong|violat\w*|unsupported|objections?|concerns?|weakness\w*|doubts?"
    r"|conflicts?|leaps?|jumps?)\b(?![-\s]free\b))"
    r"(?!(?:\s+\w+){0,4}?\s+but\b|(?:[,\s]+\w+){0,4}?[,\s]+(?:except|apart from|aside from|other than|save for)\b)",
    re.IGNORECASE,
)
"""A negation of a fault without an exception, such as "does not contradict" and "contradicts nothing"."""
_FAULT = re.compile(
    r"\A\W*(?:wrong|incorrect|flawed|fails?|contradicts?|violates?)\b"
    r"|\b(?:it|this|they|these|score|reasoning|steps?|logic|trace|answer|conclusion|argument|norms?|verdict|judge?ment)"
    r"\s+(?:\w+\s+)?(?:(?:is|are|was|were|seems?|looks?)\s+(?:\w+ly\s+)?"
    r"(?:wrong|incorrect|flawed|faulty|unsupported|inconsistent|unjustified|implausible)"
    r"|fails?|contradicts?|violates?)\b"
    r"|\bthere\s+(?:is|are)\s+(?:(?:an?|some|several|many|two|clear|serious|major)\s+){0,2}"
    r"(?:errors?|faults?|flaws?|mistakes?|contradictions?|inconsistenc(?:y|ies))\b"
    r"|\b(?:far from (?:valid|sound)|anything but|by no means)\b",
    re.IGNORECASE,
)
"""A fault that a reason states, such as "the score is wrong"."""
_NEGATED = re.compile(rf"\b(?:no|not|never|nor|neither|hardly|cannot|\w+n{_APOSTROPHE}t)\b", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"\b(?:hmm+|wait|actually|on second thoughts?|on the contrary)\b|\bfar from (?:it|that)(?=\W*\Z|[.,:;!])"
    r"|\b(?:anything but|by no means)\W*\Z|(?:\A|[.;,!?\n-])\s{0,9}no\W{0,9}\Z",
    re.IGNORECASE,
)
"""Second thoughts after a label."""
NEGATION = rf"(?:\b(?:not|never|hardly)|n{_APOSTROPHE}t)\W+(?:\w+\W+)?"
"""Pattern of a negation up to the word that it denies."""


class AnswerField(NamedTuple):
    """One field of a schema: its name, kind, labels, and whether two answers that differ in it are two answers."""

    name: str
    kind: FieldKind
    labels: tuple[str, ...]
    is_measured: bool


@functools.cache
def find_fields(structure: type[BaseModel]) -> Mapping[str, AnswerField]:
    """The fields of a schema by their names, and by their names in another spelling."""
    kinds: dict[Any, FieldKind] = {float: "number", int: "integer", bool: "boolean", str: "text"}
    fields: dict[str, AnswerField] = {}
    for name, info in structure.model_fields.items():
        annotations = [kind for kind in (info.annotation, *get_args(info.annotation)) if kind is not type(None)]
        labels = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
        kind = "label" if labels else next(kinds[part] for part in _flatten(annotations) if part in kinds)
        if get_origin(info.annotation) is list:
            kind = "texts" if kind == "text" else "numbers"
        field = AnswerField(name, kind, tuple(map(str, labels)), name not in _FREE_TEXTS)
        fields[name] = fields[normalize_key(name)] = field
    return fields


def _flatten(annotations: Sequence[Any]) -> Iterator[Any]:
    """Yield annotations and, for those with arguments, the arguments."""
    for annotation in annotations:
        yield annotation
        yield from _flatten(get_args(annotation)) if get_origin(annotation) is not Literal else ()


def to_float(number: str) -> float:
    """The value of a text that `SIGNED_NUMBER` matches."""
    return float(number.translate(_TO_NUMBER))


def normalize_key(key: str) -> str:
    """A key in lower case without spaces, hyphens and underscores."""
    return re.sub(r"[\s_\-]+", "", key).casefold()


def read_value(field: AnswerField, value: Any) -> Any:
    """Convert a value to the kind of its field, or return it in the form in which validation rejects it."""
    if field.kind == "text":
        if isinstance(value, NumberText):
            return str(value) if field.name == "answer" else parse_number(value)
        if field.name in _FREE_TEXTS and isinstance(value, list) and value and all(type(part) is str for part in value):
            return "\n".join(value)
        return to_plain(value)
    if field.kind in ("number", "integer"):
        return _read_number(field, value)
    if field.kind == "boolean":
        return BOOLEANS.get(value.strip().lower(), value) if type(value) is str else value
    if field.kind == "label":
        return _read_label(value, field.labels) if type(value) is str else to_plain(value)
    if field.kind == "numbers" and isinstance(value, list):
        return [_read_number(field, element) for element in value]
    return to_plain(value)


def _read_number(field: AnswerField, value: Any) -> Any:
    """A number as it is, or in a text of its own; a percentage for a confidence. Other values unchanged."""
    if not isinstance(value, str):
        return to_plain(value)
    match = _NUMBER.match(to_ascii(value))
    if match is None or (match[2] and field.name != "confidence"):
        return str(value)
    number = parse_number(match[1].translate(_TO_NUMBER))
    if not math.isfinite(number):
        return str(value)
    if match[2] or (field.kind == "integer" and field.name != "confidence"):
        return int(number) if number == int(number) else str(value)
    return float(number) if field.kind == "number" else number


def _read_label(text: str, labels: Sequence[str]) -> str:
    """The label with which a text begins, if nothing after it takes it back or names another; else the text."""
    match = _LABEL.match(text)
    if match is None or (label := match[1].upper()) not in labels:
        return text
    explanation = match[2]
    others = set(labels) - {label}
    denies_other = any(label.endswith(other) for other in others)  # INVALID denies VALID
    if denies_other:
        explanation = re.sub(rf"{NEGATION}(?:{'|'.join(others)})\b", "", explanation, flags=re.IGNORECASE)
    if (separator := _SEPARATOR.match(explanation)) is None:
        return text
    reason = explanation[separator.end() :]
    praise = _FULL_NEGATION.match(reason) if denies_other else _PRAISE.match(reason.lstrip())
    if (doubt := _DOUBT.match(reason)) is not None and not (doubt["negation"] and (praise or _NO_FAULT.match(reason))):
        return text
    if _TAKES_BACK.search(reason) is not None:
        return text
    if any(other.endswith(label) for other in others):  # a negation or a fault as a reason for VALID is one for INVALID
        doubts = _PRAISE.sub("", reason)
        if _NEGATED.search(doubts) is not None or _FAULT.search(doubts) is not None:
            return text
    is_negated = re.search(rf"{NEGATION}{label}\b", explanation, re.IGNORECASE)
    return text if is_negated or set(re.findall(r"[^\W_]+", explanation.upper())) & others else label
