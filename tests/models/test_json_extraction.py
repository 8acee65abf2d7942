"""The JSON in a text is found wherever it is, and in linear time."""

from __future__ import annotations

from contextlib import suppress

import pytest

from auditor.models.json_extraction import MAX_DEPTH, MAX_JSON5_CHARS, MAX_TEXT_CHARS, decode_json, find_json, to_plain
from tests.support.hang_limit import hang_limit


def values(text: str) -> list[object]:
    return [to_plain(value.node) for value in find_json(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]), ('```json\n{"a": 1}\n```', [{"a": 1}]),
        ('first {"a": 1}, then {"a": 2}.', [{"a": 1}, {"a": 2}]),
        ('{"a": {"b": [1, {"c": 2}]}} done', [{"a": {"b": [1, {"c": 2}]}}]),
        ('{"a": "}"} and {broken', [{"a": "}"}]), ('a set {x, y} and {"a": 1}', [{"a": 1}]),
        ('{"a": 1} [2]', [{"a": 1}, [2]]), ('{"a": "one\ntwo\tthree"}', [{"a": "one\ntwo\tthree"}]),
        ('{"a": +0.24, }', [{"a": 0.24}]), ("{'a': .5, b: True, /* c */}", [{"a": 0.5, "b": True}]),
        ('{"a": \u22120.5, "b": "\u22125"}', [{"a": -0.5, "b": "\u22125"}]),
        ('It is "{\\"a\\": 1}".', [{"a": 1}]), ('"[{\\"a\\": 1}]"', [[{"a": 1}]]), ('\ufeff{"a": 1}', [{"a": 1}]),
        ("no JSON", []), ("", []), ('{"a": 1', []), ('[{"a": 1}', []), ('{"b": {"a": 1}', []), ("{'a': 1", []),
        ('{"a": 0x1F}', []), ('{"a": -0.5 to 0.5}', []), ('{"a": 0,5}', []), ('{"a": 01}', []), ('{"a": "b" "c"}', []),
    ],
)  # fmt: skip
def test_json_is_found_wherever_it_is(text: str, expected: list[object]) -> None:
    assert values(text) == expected


def test_names_that_are_repeated_and_numbers_stay_as_written() -> None:
    (value,) = find_json('{"a": 1.10, "a": 2}')
    assert value.node == (("a", "1.10"), ("a", "2"))


def test_what_is_nested_too_deeply_is_not_read() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert len(find_json(nested(MAX_DEPTH))) == 1
    for text in (nested(MAX_DEPTH + 1), "[" * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            find_json(text)


@pytest.mark.parametrize(
    "part",
    ["{[{[", "{", "[", '{"a":', "{}", '"{', '{"', "[1,", '{"a":"', '\\"{', "{}[", "{'a':", '{"a":1 ', '"{\\"', "[[1 "],
)
def test_half_a_megabyte_takes_linear_time(part: str) -> None:
    with hang_limit(), suppress(ValueError):
        find_json(part * (500_000 // len(part)))


def test_many_brackets_that_begin_no_json_cost_no_answer() -> None:
    text = r"\frac{a}{b} \sum_{i} {x} " * 300
    assert values(text + '{"a": 1}') == [{"a": 1}]


def test_only_short_texts_are_read_as_json5() -> None:
    short, long = ('{"a": "' + "x" * n + '",}' for n in (100, MAX_JSON5_CHARS))
    assert (len(values(short)), len(values(long))) == (1, 0)


def test_a_text_of_more_than_a_mebibyte_is_json_as_a_whole_or_not_at_all() -> None:
    answer = '{"a": 1}'
    assert values("x" * (MAX_TEXT_CHARS - len(answer)) + answer) == [{"a": 1}]
    assert values(" " * MAX_TEXT_CHARS + answer) == [{"a": 1}]
    with pytest.raises(ValueError, match="Expecting value"):
        find_json("x" * MAX_TEXT_CHARS + answer)


@pytest.mark.parametrize("text", ['{"a": 1} x', "", "{", "[" * 100_000])
def test_a_text_that_is_not_one_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_json(text)
