"""Find the JSON values in a text that holds more than JSON, in time that grows linearly with the text.

Nothing is guessed: Python's decoder reads what is JSON, with line breaks in texts, and json5 what a person would read
the same way (a plus sign, a trailing comma, single quotes, comments). A value that is cut off is none.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from auditor.lazy_imports import import_when_used

if TYPE_CHECKING:
    import json5
else:  # most answers are JSON
    json5 = import_when_used("json5")

MAX_TEXT_CHARS = 1024 * 1024
"""Longest text that is searched; a longer one can only be JSON as a whole."""
MAX_DEPTH = 128
MAX_READS_PER_CHAR = 16
"""Each failed attempt to decode may read the rest of the text, so only so many of them are made."""
MAX_JSON5_CHARS = 6000
"""Characters of one text that json5 may read, which takes 10 microseconds for each."""
MIN_READS = 1_000_000
"""Reads that any text may take, so that many brackets cost no answer; they take 10 ms."""
SKIPS_PER_READ = 32
"""An error counts the lines before it, for each character in this fraction of the time of decoding it."""
_OPENING_BRACKET = re.compile(r"[{\[](?=\s*[\[\]{}\"'\u201c\\/+\-.\w$])")
_MAY_BE_JSON5 = re.compile(r"\{\s*(?:[\"'\u201c}]|//|/\*|[A-Za-z_$][\w$]{0,40}\s*:)|\[\s*[\[{]")
_OTHER_SPELLING = re.compile(
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|\u201c([^\u201c\u201d\"\\]*)\u201d|\u2212(?=[\d.])|\b(?:True|False|None)\b",
    re.DOTALL,
)
"""A text in quotation marks, or, outside of one: a text in typographic ones, a minus sign (U+2212) before a number, or
a constant of Python's."""
_JSON_SPELLING = {"\u2212": "-", "True": "true", "False": "false", "None": "null"}
"""Of the same length, so that positions stay."""


class JsonObject(tuple[tuple[str, Any], ...]):
    """Members of a JSON object in their order, with repeated names."""

    __slots__ = ()


class NumberText(str):
    """A number as it is written."""

    __slots__ = ()


class JsonValue(NamedTuple):
    """A JSON object or array in a text: where it starts and ends, and its content.

    Objects in `node` are `JsonObject`, numbers `NumberText`.
    """

    start: int
    end: int
    node: Any


def _refuse(number: str, **_: int) -> NoReturn:
    """Refuse what is no finite decimal number."""
    raise ValueError(f"{number} is not a number")


def _parse_json5_int(number: str, base: int = 10) -> NumberText:
    """A decimal integer as it is written; hexadecimal ones are refused."""
    return NumberText(number) if base == 10 else _refuse(number)


_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=JsonObject,
    parse_float=NumberText,
    parse_int=NumberText,
    parse_constant=NumberText,
)


def decode_json(text: str) -> Any:
    """The JSON value that a text consists of, apart from white space around it.

    Raises:
        ValueError: it is not one JSON value, or is nested too deeply.
    """
    start = len(text) - len(text.lstrip())
    try:
        node, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text[end:].strip() or _is_too_deep(node):
        raise ValueError("not one value")
    return node


def find_json(text: str) -> list[JsonValue]:
    """Find all complete JSON objects and arrays in a text that are not inside another one.

    JSON that is written as a text, with or without its quotation marks, is one, too. The search ends where one
    is cut off.

    Raises:
        ValueError: the search takes too long, one is nested too deeply, or a long text holds more than JSON.
    """
    if len(text) > MAX_TEXT_CHARS:
        return [JsonValue(0, len(text), decode_json(text))]
    values: list[JsonValue] = []
    remaining_reads, remaining_json5 = MIN_READS + MAX_READS_PER_CHAR * len(text), MAX_JSON5_CHARS
    end = 0
    for bracket in _OPENING_BRACKET.finditer(text):
        start = bracket.start()
        if start < end:
            continue
        try:
            node, end = _DECODER.raw_decode(text, start)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except json.JSONDecodeError as error:
            is_unterminated = error.msg.startswith("Unterminated")
            remaining_reads -= (len(text) if is_unterminated else error.pos) - start + error.pos // SKIPS_PER_READ + 1
            value = None
            if _is_escaped(text, start):
                value = _read_quoted(text, start - 1) if text[start - 1 : start] == '"' else _read_escaped(text, start)
                remaining_reads -= (len(text) if value is None else value.end) - start
            if remaining_reads < 0:
                raise ValueError("too many brackets that begin no JSON") from None
            if value is None and _MAY_BE_JSON5.match(text, start):
                value, is_cut_off = _read_json5(text, start, min(remaining_json5, len(text) - start))
                remaining_json5 -= (len(text) if value is None else value.end) - start
                is_unterminated |= is_cut_off
            if value is None:
                if is_unterminated or error.pos >= len(text.rstrip()):
                    return values
                continue
            node, end = value.node, value.end
            start = value.start
        if _is_too_deep(node):
            raise ValueError("nested too deeply")
        values.append(JsonValue(start, end, node))
    return values


def _is_escaped(text: str, start: int) -> bool:
    """Whether the bracket at an index may begin JSON that is written as a text: `"{\\"a\\": 1}"`."""
    return text[start : start + 20].lstrip("{[ ").startswith("\\")


def _read_quoted(text: str, start: int) -> JsonValue | None:
    """JSON that is written as the text which begins at an index; None if there is none."""
    try:
        quoted, end = _DECODER.raw_decode(text, start)
        return JsonValue(start, end, decode_json(quoted))
    except ValueError:
        return None


def _read_escaped(text: str, start: int) -> JsonValue | None:
    """JSON that is written as a text without its quotation marks, up to the last bracket; None if there is none."""
    end = max(text.rfind("}"), text.rfind("]")) + 1
    try:
        return JsonValue(start, end, decode_json(decode_json(f'"{text[start:end]}"')))
    except ValueError:
        return None


def _read_json5(text: str, start: int, n_chars: int) -> tuple[JsonValue | None, bool]:
    """Read a JSON5 value of at most `n_chars` characters; None if there is none, and whether it is cut off."""
    if n_chars <= 1:
        return None, False
    part = _OTHER_SPELLING.sub(_to_json_spelling, text[start : start + n_chars])
    try:
        node, problem, length = json5.parse(
            part,
            strict=False,
            object_pairs_hook=JsonObject,
            parse_float=NumberText,
            parse_int=_parse_json5_int,
            parse_constant=_refuse,
            allow_duplicate_keys=False,
            consume_trailing=False,
        )
    except (ValueError, RecursionError):
        return None, False
    if problem is not None:
        return None, "end of input" in problem and start + n_chars >= len(text)
    return JsonValue(start, start + length, node), False


def _to_json_spelling(match: re.Match[str]) -> str:
    """What stands in JSON for a match of `_OTHER_SPELLING`, of the same length."""
    if match[2] is not None:
        return f'"{match[2]}"'
    return match[1] or _JSON_SPELLING[match[0]]


def _is_too_deep(node: object) -> bool:
    """Whether objects and arrays are nested more than `MAX_DEPTH` times."""
    depth, layer = 0, [node]
    while layer:
        containers = [inner for inner in layer if isinstance(inner, (JsonObject, list))]
        depth += bool(containers)
        layer = [
            child
            for inner in containers
            for child in (inner if isinstance(inner, list) else (value for _, value in inner))
            if isinstance(child, (JsonObject, list))
        ]
    return depth > MAX_DEPTH


def to_plain(node: Any) -> Any:
    """The value with dictionaries for objects and numbers for their texts."""
    if isinstance(node, JsonObject):
        return {name: to_plain(value) for name, value in node}
    if isinstance(node, list):
        return [to_plain(value) for value in node]
    if isinstance(node, NumberText):
        return parse_number(node)
    return node


def parse_number(number: str) -> int | float:
    """The value of a number's text: an int if it has neither a decimal point nor an exponent, else a float."""
    if len(number) < 20 and re.fullmatch(r"[-+]?\d+", number):
        return int(number)
    return float(number)


_FULL_WIDTH_TO_ASCII = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_DIRECTION_MARKS = dict.fromkeys("\u200e\u200f\u061c\u2066\u2067\u2068\u2069\u202a\u202b\u202c")
"""Invisible directional marks, which surround numbers in right-to-left text."""
_TO_ASCII = str.maketrans(
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


def to_ascii(text: str) -> str:
    """A text with signs, separators and full-width letters in ASCII."""
    return text if text.isascii() else text.translate(_TO_ASCII)
