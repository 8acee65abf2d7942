"""Read a model's structured answer from its text: what a person would read without doubt, and nothing else.

Every JSON value that fits the schema is considered, after hidden reasoning and chat tokens are removed. Values that
stand in the request do not count. If the others differ in a measured field, the answer is ambiguous. Every number,
boolean and label that is read stands in the text as a whole token.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from auditor.domain import SCORE_MAX
from auditor.models.json_extraction import (
    JsonObject,
    JsonValue,
    NumberText,
    decode_json,
    find_json,
    parse_number,
    to_ascii,
    to_plain,
)
from auditor.models.reasoning import strip_thinking
from auditor.models.structured import UNREADABLE, explain_invalid, find_schema
from auditor.text_safety import map_strings

S = TypeVar("S", bound=BaseModel)
FieldKind = Literal["number", "integer", "boolean", "label", "text", "numbers", "texts"]

MAX_CACHED_READINGS = 512
"""Answers of the batches in flight."""
MAX_FIELDS = 100
"""Members of an object that may be an answer."""
MAX_NESTING = 6
"""Wrappers around an answer, such as a list of one or `{"answer": {...}}`, that are removed."""
MAX_OBJECTS = 1000
"""Objects of one text that are compared with the schema."""
MAX_EXPLAINED_CHARS = 64 * 1024
"""Longest text without any field whose problem is described: each key that the schema lacks costs time."""
MAX_LABEL_CHARS = 60
"""Longest text that may be nothing but a label, with marks around it."""
TWO_ANSWERS = "two answers"
MAX_OTHER_ANSWER = 100
"""Largest number in a remark after an answer that may be another answer."""
REPEATS_REQUEST = "the answer only repeats the request"
_FREE_TEXTS = frozenset({"norms", "reasoning", "reason", "justification"})
"""Texts that explain an answer, and do not decide which of two is meant."""
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
_BOOLEANS = {"true": True, "false": False}
_WORD_OF_KEY = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")

_MINUS_SIGNS = "\u2212\u2013\uff0d\ufe63"
"""Minus sign, en dash, and the full-width and small hyphens of Chinese and Japanese texts."""
_TO_NUMBER = str.maketrans({**dict.fromkeys(_MINUS_SIGNS, "-"), ",": "."})
_SIGN = rf"[-+{_MINUS_SIGNS}]?"
_SIGNED = rf"{_SIGN}(?:\d+(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(
    rf"\s*({_SIGNED}(?:[eE][-+]?\d+)?|{_SIGN}(?:0?,\d+|\d+,\d{{1,2}}))\s*(%|per\s?cent)?\s*\Z", re.IGNORECASE
)
"""A number in a text, with a decimal point or a comma that separates no thousands, and a percent sign."""
_WHOLE_NUMBER = re.compile(rf"(?<![\w.]){_SIGNED}(?![\w%])")
_LABEL = re.compile(
    r"[\s*_`\"'(\[\u2705\u2713\u2714\ufe0f]*(?:(?:option|answer|choice|verdict)\b[\s*_`\"'(\[:=]*)?([A-Za-z]+)(?![?\w])(.*)\Z",
    re.DOTALL | re.IGNORECASE,
)
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
_PRAISE = re.compile(
    r"\b(?:no|not|never|without|cannot|\w+n['\u2019]t)\s+(?:\w+\s+){0,2}?(?:\w+\s+(?:is|are)\s+)?(?:errors?|faults?|flaws?"
    r"|gaps?|issues?|mistakes?|problems?|contradict\w*|inconsisten\w*|missing|wrong|violat\w*|unsupported|objections?"
    r"|concerns?|weakness\w*|doubts?|conflicts?|leaps?|jumps?)\b",
    re.IGNORECASE,
)
"""A negation of a fault, such as "does not contradict"."""
_NEGATED = re.compile(r"\b(?:no|not|never|nor|neither|hardly|cannot|\w+n['\u2019]t)\b", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"\b(?:hmm+|wait|actually|on second thoughts?)\b|(?:\A|[.;,!?\n-])\s{0,9}no\W{0,9}\Z", re.IGNORECASE
)
"""Second thoughts after a label."""
_NEGATION = r"\b(?:not|never|hardly|n't|n\u2019t)\W+(?:\w+\W+)?"
_RETRACTION = re.compile(
    r"\b(?:actually|correction|revised|instead|rather|make (?:that|it)|on (?:second thoughts?|reflection)|wait|sorry"
    r"|(?:final|my|the) answer|I(?:'d| would| will| should| must)? (?:change|revise|raise|lower|correct|adjust|withdraw"
    r"|choose|pick)|should (?:rather )?(?:be|have been))\b(?P<words>[^\n]{0,80})",
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


class _Field(NamedTuple):
    """One field of a schema: its name, kind, labels, and whether two answers that differ in it are two answers."""

    name: str
    kind: FieldKind
    labels: tuple[str, ...]
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Reading(Generic[S]):
    """What was read of an answer.

    Attributes:
        answer: the validated structure; None if there is none, or more than one.
        problem: why there is none, in one line, for the model that gave the answer; None if there is one.
        ignored_keys: keys that the schema lacks.
    """

    answer: S | None
    problem: str | None = None
    ignored_keys: tuple[str, ...] = ()


class _Fit(NamedTuple):
    """A value that fits the schema: the structure, and its keys that the schema lacks."""

    answer: Any
    ignored_keys: tuple[str, ...]


class _Misfit(NamedTuple):
    """A value that does not fit: its fields as read, or why it is ambiguous."""

    fields: Mapping[str, Any]
    problem: str | None


_Unexplained: TypeAlias = tuple[str, Sequence[_Misfit]]
"""Visible text of an answer that is none, and its values that do not fit."""


def parse_structured_answer(structure: type[S], text: str, request: str = "") -> S | str:
    """Parse a structured answer; see `read_structured_answer`.

    Returns:
        The validated structure, or a one-line error message if the text has none, or more than one.
    """
    reading = read_structured_answer(structure, text, request)
    return reading.problem or UNREADABLE if reading.answer is None else reading.answer


def read_structured_answer(structure: type[S], text: str, request: str = "", *, explains: bool = True) -> Reading[S]:
    """Read the one answer that a text gives to a question.

    Args:
        structure: the pydantic model of the answer.
        text: the model's text.
        request: what the model was asked; a value that stands there word for word does not count.
        explains: whether a text without an answer gets a problem from instructor, which takes a second the first time.

    Raises:
        ModelSetupError: the answer is invalid, and the package that describes the problem cannot be imported.
    """
    reading, unexplained = _read(structure, text, request)
    return Reading(None, _explain(structure, *unexplained)) if explains and unexplained is not None else reading


def _read(structure: type[S], text: str, request: str) -> tuple[Reading[S], _Unexplained | None]:
    """Read an answer; the second value is what an explanation needs, None if the problem is said."""
    visible_text, values = _find_visible_json(text)
    is_repeated = values is not None and any(visible_text[value.start : value.end] in request for value in values)
    return _read_values(structure, text, request if is_repeated else "")


@functools.lru_cache(MAX_CACHED_READINGS)
def _read_values(structure: type[S], text: str, request: str) -> tuple[Reading[S], _Unexplained | None]:
    """Do what `_read` does; `request` is empty if no value stands there.

    Cached, since keys that are ignored, the length of a text and its content are read one after another, and judges
    often give equal answers.
    """
    visible_text, values = _find_visible_json(text)
    if values is None:
        return Reading(None, "the answer is too long or too deeply nested to be read"), None
    fits: list[_Fit] = []
    misfits: list[_Misfit] = []
    is_repetition = False
    surroundings: list[str] = []
    end = 0
    for value in values:
        results = list(_compare_with_schema(structure, value.node))
        if not results:
            continue
        is_repeated = bool(request) and visible_text[value.start : value.end] in request
        if is_repeated or any(isinstance(result, _Fit) for result in results):
            surroundings.append(visible_text[end : value.start])
            end = value.end
        if is_repeated:
            is_repetition = True
            continue
        fits += [result for result in results if isinstance(result, _Fit)]
        misfits += [result for result in results if isinstance(result, _Misfit)]
    if problem := next((misfit.problem for misfit in misfits if misfit.problem is not None), None):
        return Reading(None, problem), None
    if not fits and is_repetition:
        return Reading(None, REPEATS_REQUEST), None
    if not fits:
        return Reading(None, UNREADABLE), (visible_text, misfits)
    surroundings.append(visible_text[end:])
    fields = _fields(structure)
    if any(_differs(fields.values(), fit.answer, fits[-1].answer) for fit in fits[:-1]):
        return Reading(None, TWO_ANSWERS), None
    if _is_contradicted(fields.values(), fits[-1].answer, surroundings):
        return Reading(None, TWO_ANSWERS), None
    return Reading(fits[-1].answer, ignored_keys=fits[-1].ignored_keys), None


def is_complete_structure(schema_name: str, text: str) -> bool:
    """Whether all that is visible of a text, and not only a part of it, is valid JSON for the schema of this name."""
    try:
        find_schema(schema_name).model_validate_json(strip_thinking(text))
    except ValidationError:
        return False
    return True


# --- finding values ---------------------------------------------------------------------------------------------------


@functools.lru_cache(MAX_CACHED_READINGS)
def _find_visible_json(text: str) -> tuple[str, list[JsonValue] | None]:
    """The text without thinking and chat tokens, and the JSON in it; None if it takes too long to find."""
    visible_text = strip_thinking(text)
    try:
        if visible_text is not text and (tagged_json := _strip_inside(text)) is not None:
            return tagged_json
        return visible_text, find_json(visible_text)
    except ValueError:
        return visible_text, None


def _strip_inside(text: str) -> tuple[str, list[JsonValue]] | None:
    """The JSON that a text consists of, without thinking inside its texts; None if the tags are around the JSON."""
    start, end = text.find("{"), text.rfind("}") + 1
    around = f"{text[:start]}\n{text[end:]}"
    if start < 0 or strip_thinking(around) is not around:
        return None
    values = find_json(text)
    if len(values) != 1:
        return None
    return text, [values[0]._replace(node=_map_texts(values[0].node))]


def _map_texts(node: Any) -> Any:
    """Copy decoded JSON without thinking in its texts."""
    if isinstance(node, JsonObject):
        return JsonObject((name, _map_texts(value)) for name, value in node)
    return node if isinstance(node, NumberText) else map_strings(node, strip_thinking)


def _compare_with_schema(structure: type[BaseModel], node: Any) -> Iterator[_Fit | _Misfit]:
    """Yield each object in a value that fits the schema, or has some of its fields, but for those inside a fit."""
    stack: list[tuple[Any, int]] = [(node, 0)]
    n_objects = 0
    while stack and n_objects < MAX_OBJECTS:
        current, depth = stack.pop()
        if isinstance(current, str) and not isinstance(current, NumberText):
            if depth == 0 or not current.lstrip().startswith(("{", "[", '"')):
                continue
            try:
                current = decode_json(current)
            except ValueError:
                continue
        children: Sequence[Any] = ()
        if isinstance(current, JsonObject) and len(current) <= MAX_FIELDS:
            n_objects += 1
            result = _read_object(structure, current)
            if result is not None:
                yield result
            children = () if isinstance(result, _Fit) else [value for _, value in current]
        elif isinstance(current, list) and any(isinstance(value, (JsonObject, list, str)) for value in current[:1]):
            children = current
        if depth < MAX_NESTING:
            stack += [(child, depth + 1) for child in reversed(children) if isinstance(child, (JsonObject, list, str))]


def _read_object(structure: type[BaseModel], members: JsonObject) -> _Fit | _Misfit | None:
    """Compare one object with the schema; None if it has none of its fields."""
    fields = _fields(structure)
    values: dict[str, Any] = {}
    unknown: list[tuple[str, Any]] = []
    has_conflict = False
    for key, value in members:
        field = fields.get(key) or fields.get(_normalize_key(key))
        if field is None:
            unknown.append((key, value))
            continue
        read = _read_value(field, value)
        has_conflict |= field.name in values and values[field.name] != read
        values[field.name] = read
    if not values:
        return None
    try:
        answer = structure.model_validate(values)
    except ValidationError:
        return _Misfit(values, None)
    if has_conflict:
        return _Misfit(values, "a key has two different values")
    if unknown and any(_has_rival(field, getattr(answer, field.name), unknown) for field in fields.values()):
        return _Misfit(values, TWO_ANSWERS)
    return _Fit(answer, tuple(key for key, _ in unknown))


# --- reading one value ------------------------------------------------------------------------------------------------


@functools.cache
def _fields(structure: type[BaseModel]) -> Mapping[str, _Field]:
    """The fields of a schema by their names, and by their names in another spelling."""
    kinds: dict[Any, FieldKind] = {float: "number", int: "integer", bool: "boolean", str: "text"}
    fields: dict[str, _Field] = {}
    for name, info in structure.model_fields.items():
        annotations = [kind for kind in (info.annotation, *get_args(info.annotation)) if kind is not type(None)]
        labels = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
        kind = "label" if labels else next(kinds[part] for part in _flatten(annotations) if part in kinds)
        if get_origin(info.annotation) is list:
            kind = "texts" if kind == "text" else "numbers"
        field = _Field(name, kind, tuple(map(str, labels)), name not in _FREE_TEXTS)
        fields[name] = fields[_normalize_key(name)] = field
    return fields


def _flatten(annotations: Sequence[Any]) -> Iterator[Any]:
    """Yield annotations and, for those with arguments, the arguments."""
    for annotation in annotations:
        yield annotation
        yield from _flatten(get_args(annotation)) if get_origin(annotation) is not Literal else ()


def _normalize_key(key: str) -> str:
    """A key in lower case without spaces, hyphens and underscores."""
    return re.sub(r"[\s_\-]+", "", key).casefold()


def _read_value(field: _Field, value: Any) -> Any:
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
        return _BOOLEANS.get(value.strip().lower(), value) if type(value) is str else value
    if field.kind == "label":
        return _read_label(value, field.labels) if type(value) is str else to_plain(value)
    if field.kind == "numbers" and isinstance(value, list):
        return [_read_number(field, element) for element in value]
    return to_plain(value)


def _read_number(field: _Field, value: Any) -> Any:
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
        explanation = re.sub(rf"{_NEGATION}(?:{'|'.join(others)})\b", "", explanation, flags=re.IGNORECASE)
    if (separator := _SEPARATOR.match(explanation)) is None:
        return text
    reason = explanation[separator.end() :]
    if (doubt := _DOUBT.match(reason)) is not None and not (
        doubt["negation"] and (_NO_FAULT.match(reason) or (denies_other and _FULL_NEGATION.match(reason)))
    ):
        return text
    if _TAKES_BACK.search(reason) is not None:
        return text
    is_denied_by_other = any(other.endswith(label) for other in others)  # a negated reason for VALID is one for INVALID
    if is_denied_by_other and _NEGATED.search(_PRAISE.sub("", reason)) is not None:
        return text
    is_negated = re.search(rf"{_NEGATION}{label}\b", explanation, re.IGNORECASE)
    return text if is_negated or set(re.findall(r"[^\W_]+", explanation.upper())) & others else label


# --- doubt ------------------------------------------------------------------------------------------------------------


def _differs(fields: Any, first: BaseModel, second: BaseModel) -> bool:
    """Whether two answers differ in a measured field."""
    return any(
        field.is_measured and _comparable(getattr(first, field.name)) != _comparable(getattr(second, field.name))
        for field in fields
    )


def _comparable(value: Any) -> Any:
    """A text without regard to case and white space; other values as they are."""
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _has_rival(field: _Field, value: Any, unknown: Sequence[tuple[str, Any]]) -> bool:
    """Whether a key that the schema lacks, at any depth, is named like a measured field and has another value."""
    if not field.is_measured or field.kind in ("texts", "numbers"):
        return False
    for key, other in unknown:
        if isinstance(other, JsonObject):
            if _has_rival(field, value, other):
                return True
        elif isinstance(other, list):
            if _has_rival(field, value, [pair for part in other if isinstance(part, JsonObject) for pair in part]):
                return True
        elif _is_named_like(field, key) or _names_answer(field, key):
            if _states_other(field, value, other) and _is_possible(field, other):
                return True
        elif _is_denied(field, value, key, other) or (field.kind == "label" and _is_other_label(field, value, other)):
            return True
    return False


def _names_answer(field: _Field, key: str) -> bool:
    """Whether a key names the answer as a whole, such as `final` or `decision`, and the field is that."""
    words = {word.lower() for word in _WORD_OF_KEY.findall(key)}
    return field.name in _MAIN_FIELDS and field.kind != "text" and words <= _ANSWER_NAMES | _ADDED_WORDS


def _is_possible(field: _Field, other: Any) -> bool:
    """Whether a number may be a score; any other value may be one of the field's."""
    number = _read_value(field, other) if field.name == "score" else 0
    return not isinstance(number, (int, float)) or abs(number) <= SCORE_MAX


def _is_other_label(field: _Field, value: Any, other: Any) -> bool:
    """Whether a text consists of another label, or of a negation of the answer's, whatever its case."""
    if not isinstance(other, str) or len(other) > MAX_LABEL_CHARS:
        return False
    match = _BARE_LABEL.fullmatch(other)
    if match is None or match["label"].upper() not in field.labels:
        return False
    return (match["label"].upper() == value) is (match["negation"] is not None)


def _is_named_like(field: _Field, key: str) -> bool:
    """Whether a key is another name for a field, such as `final_score` or `scoreRevised`."""
    words = [word.lower() for word in _WORD_OF_KEY.findall(key)]
    name = field.name.split("_")
    n = len(name)
    if any(_normalize_key(key) in (word + "".join(name), "".join(name) + word) for word in _ADDED_WORDS):
        return True
    if set(words) & _OTHER_QUANTITIES - {field.name}:
        return False
    return words[-n:] == name or (
        words[:n] == name and all(word in _ADDED_WORDS or word.isdigit() for word in words[n:])
    )


def _is_denied(field: _Field, value: Any, key: str, flag: Any) -> bool:
    """Whether a key that is named for a label, such as `is_valid`, says by true or false that it is another one."""
    label = _normalize_key(key).removeprefix("is").upper()
    if type(flag) is str:
        flag = _BOOLEANS.get(flag.strip().lower())
    return label in field.labels and isinstance(flag, bool) and (label == value) != flag


def _states_other(field: _Field, value: Any, other: Any) -> bool:
    """Whether a value states another number, label or text than the field's."""
    read = _read_value(field, other)
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
def _claim_pattern(field: _Field) -> re.Pattern[str]:
    """A statement of a field's value in prose or in JSON, such as `score: 0.5`, `"score": 0.5` and `score is 0.5`."""
    value = {
        "label": r"(?:not\s+)?[A-Za-z]+",
        "boolean": r"true|false",
        "text": rf"(?:{_SIGNED}|(?-i:[A-Z]))(?=[.!*_`\"')\]]*(?:\s*\n|\s*\Z|\s+(?-i:[A-Z])))",
    }.get(field.kind, rf"{_SIGNED}(?![\d.]*\s*(?:to|and|or|\.\.|[-\u2013/])\s*[-+\u2212]?[\d.])")
    name = re.escape(field.name).replace("_", r"[\s_]")
    return re.compile(
        rf"\b{name}[\"'*_`]*\s{{0,9}}(?:[:=]|\b(?:is|was|(?:should|would|must) be)\b)[\s\"'*_`]{{0,9}}({value})",
        re.IGNORECASE,
    )


def _claims(field: _Field, text: str) -> Iterator[str]:
    """Yield the values that a text states of a field of the answer."""
    for match in _claim_pattern(field).finditer(text):
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if _OF_ANOTHER.search(before) is None and _DEFINITION.match(after) is None:
            yield match[1]


def _is_contradicted(fields: Any, answer: BaseModel, surroundings: Sequence[str]) -> bool:
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


def _is_stated_otherwise(field: _Field, value: Any, surroundings: Sequence[str]) -> bool:
    """Whether the text around an answer states another value of one field; see `_is_contradicted`."""
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
        return value is True and re.search(rf"{_NEGATION}{field.name}\b", text_after, re.IGNORECASE) is not None
    retractions = _RETRACTION.finditer(text_after) if field.name in ("score", "answer", "choice") else ()
    numbers = [number for match in retractions for number in _WHOLE_NUMBER.findall(match["words"])]
    return any(_states_other(field, value, number) for number in numbers if _may_answer(field, number))


def _may_answer(field: _Field, number: str) -> bool:
    """Whether a number may be the field's value, and not a year or a percentage."""
    return abs(float(number.translate(_TO_NUMBER))) <= (SCORE_MAX if field.name == "score" else MAX_OTHER_ANSWER)


def _is_corrected(field: _Field, value: str, text: str) -> bool:
    """Whether a text after an answer that is a number or a letter says that it is another one."""
    if re.fullmatch(rf"{_SIGNED}|[A-Z]", value) is None:
        return False
    return any(
        float(claim.translate(_TO_NUMBER)) != float(value.translate(_TO_NUMBER))
        if not value.isalpha() and not claim.isalpha()
        else claim != value
        for claim in _claims(field, text)
    )


def _states_other_label(field: _Field, value: str, text: str) -> bool:
    """Whether a line of a text beside an answer is another label, or a sentence says that it is the one."""
    if any(_is_other_label(field, value, line) for line in text.split("\n")):
        return True
    return any(
        match["label"] in field.labels
        and (match["label"] == value) == bool(match["negation"])
        and _HYPOTHETICAL.search(_SENTENCE_END.split(text[max(0, match.start() - 200) : match.start()])[-1]) is None
        for match in _STATEMENT.finditer(text)
    )


def _names_other_label(field: _Field, value: str, text: str) -> bool:
    """Whether a text after an answer names another label than the answer's, or denies the answer's."""
    if re.search(rf"(?i:{_NEGATION}){value}\b", text):
        return True
    words = set(re.findall(r"\b[A-Z]{2,}\b", re.sub(rf"(?i:{_NEGATION})[A-Z]{{2,}}\b", "", text)))
    others = set(field.labels) - {value}
    return bool(value not in words and words & others) or any(
        others & set(re.findall(r"\b[A-Z]+\b", match["words"])) for match in _RETRACTION.finditer(text)
    )


def _explain(structure: type[BaseModel], text: str, misfits: Sequence[_Misfit]) -> str:
    """Why a text is no answer, in one line: of its object with the most fields, or else of the text."""
    if misfits:
        closest = max(reversed(misfits), key=lambda misfit: len(misfit.fields))
        text = json.dumps(to_plain(closest.fields), default=to_plain)
    elif len(text) > MAX_EXPLAINED_CHARS:
        return "the answer has none of the fields"
    return explain_invalid(structure, text)
