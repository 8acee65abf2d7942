"""What a refusal names is read from the provider's words; refusals with other causes name nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from auditor.models.refused_features import (
    REFUSAL_STATUSES,
    Feature,
    Refusal,
    find_refusals,
    flatten_error,
    load_refusal_patterns,
)
from tests.support.hang_limit import hang_limit

BODIES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("refusal_bodies.toml").read_text(encoding="utf-8")
)


EXAMPLES = [
    (name, example)
    for name, row in BODIES["refused"].items()
    for example in (row, *([row["second"]] if "second" in row else []))
]
"""Every example of a refusal, with the name of its row."""


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=lambda part: part if isinstance(part, str) else "")
def test_a_refusal_in_the_providers_words_names_what_is_refused(name: str, example: dict[str, Any]) -> None:
    expected = [Refusal(Feature(words.split()[0]), words.split()[1]) for words in example["refused"]]
    text = flatten_error(example["body"])
    assert list(find_refusals(text)) == expected
    assert load_refusal_patterns()[name].pattern.search(text), "another row matched the example"
    assert example.get("status", 400) in REFUSAL_STATUSES


@pytest.mark.parametrize("name", BODIES["other"])
def test_a_refusal_with_another_cause_names_nothing(name: str) -> None:
    assert find_refusals(flatten_error(BODIES["other"][name]["body"])) == ()


@pytest.mark.parametrize("cause", ["content_filter", "context_length_exceeded", "json_validate_failed", "billing"])
def test_another_cause_outweighs_the_words_of_a_row(cause: str) -> None:
    words = "This response_format type is unavailable now"
    assert find_refusals(f"message: {words}") != ()
    assert find_refusals(f"message: {words}; code: {cause}") == ()


def test_every_row_has_an_example_a_source_and_a_date_or_a_version() -> None:
    patterns = load_refusal_patterns()
    assert set(patterns) == set(BODIES["refused"])
    for name, row in patterns.items():
        assert row.source, name
        assert (row.pattern.groups > 0) != bool(row.refused), f"{name} refuses either what it names or what it says"


def test_each_row_is_needed_by_its_example() -> None:
    """Without its row, no example is read: rows do not hide behind each other."""
    for name, example in EXAMPLES:
        text = flatten_error(example["body"])
        matching_rows = [other for other, row in load_refusal_patterns().items() if row.pattern.search(text)]
        assert matching_rows == [name]


def test_words_of_the_request_and_of_the_model_are_not_read() -> None:
    body = '{"detail": [{"msg": "no", "input": {"a": "This model does not support parameter seed"}}]}'
    assert flatten_error(body) == "msg: no"


@pytest.mark.parametrize("body", ["", "{", "[]", "<html>no</html>", '{"a": {"b": []}}', "[" * 100_000])
def test_any_body_is_read_without_an_error(body: str) -> None:
    assert find_refusals(flatten_error(body)) == ()


def test_a_long_text_is_searched_in_linear_time() -> None:
    text = "For 'a' type, properties " + "a, " * 100_000 + "does not support parameters: " + "x, " * 100_000
    with hang_limit():
        assert find_refusals(text) == ()
