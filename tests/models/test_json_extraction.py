"""The JSON in a text is found wherever it is, and in linear time."""

from __future__ import annotations

import json

import pytest

from auditor.models.json_extraction import (
    MAX_DEPTH,
    MAX_FIELDS,
    MAX_UNCOUNTED_CHARS,
    extract_last_json,
    has_too_many_fields,
)
from tests.support.hang_limit import hang_limit


@pytest.mark.parametrize(
    ("text", "last_json"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('first {"a": 1}, then {"a": 2}.', '{"a": 2}'),
        ('{"a": {"b": [1, {"c": 2}]}} done', '{"a": {"b": [1, {"c": 2}]}}'),
        ('{"a": "}"} and {broken', '{"a": "}"}'),
        ("a set {x, y} and " + '{"a": 1}', '{"a": 1}'),
        ('{"a": 1} [2]', "[2]"),
        ('[{"a": 1}]', '[{"a": 1}]'),
        ("no JSON", None),
        ("", None),
        ('{"a": 1', None),
        ("{'a': 1}", None),
    ],
)
def test_the_last_complete_json_is_found(text: str, last_json: str | None) -> None:
    assert extract_last_json(text) == last_json


def test_what_is_nested_too_deeply_is_not_read() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert extract_last_json(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert extract_last_json(nested(MAX_DEPTH + 1)) is None
    assert extract_last_json("[" * 100_000) is None


@pytest.mark.parametrize("part", ["{[{[", "{", "[", '{"a":', "{}", '"{', '{"', "[1,", '{"a":"', '\\"{', "{}["])
def test_a_megabyte_takes_linear_time(part: str) -> None:
    with hang_limit():
        extract_last_json(part * (1_000_000 // len(part)))


def test_a_text_of_more_than_a_mebibyte_is_not_searched() -> None:
    answer = json.dumps({"a": 1})
    assert extract_last_json(" " * (1024 * 1024 - len(answer)) + answer) == answer
    assert extract_last_json(" " * (1024 * 1024) + answer) is None


def test_only_a_long_object_with_many_fields_has_too_many() -> None:
    few = dict.fromkeys(map(str, range(MAX_FIELDS)), "x" * MAX_UNCOUNTED_CHARS)
    assert not has_too_many_fields(json.dumps(few))
    assert has_too_many_fields(json.dumps({**few, "more": 1}))
    assert not has_too_many_fields("[" * 2 * MAX_UNCOUNTED_CHARS)
    assert not has_too_many_fields(json.dumps(["x"] * MAX_UNCOUNTED_CHARS))
