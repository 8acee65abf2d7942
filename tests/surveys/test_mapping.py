"""Mappings of official files that cannot be used name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import SurveyError
from auditor.surveys import load_mapping
from auditor.surveys.mapping import starts_with_phrase
from tests.surveys.test_importer_errors import MAPPING


@pytest.mark.parametrize(
    ("label", "prefix", "expected"),
    [
        ("Don´t  know", "don't know", True), ("DK/Refused", "dk", True), ("NA", "na", True), ("n/a", "na", False),
        ("National pride", "na", False), ("Morally unacceptable", "morally acceptable", False), ("", "na", False),
    ],
)  # fmt: skip
def test_labels_begin_with_whole_words(label: str, prefix: str, expected: bool) -> None:
    assert starts_with_phrase(label, prefix) is expected


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (MAPPING, "exactly one of the sections [answers] and [choices]"),
        (MAPPING + "[answers]\nlow = 1\nhigh = 1\n", "must differ"),
        (MAPPING + "[answers]\nlow = 1\nhigh = 4\n[nonresponse]\nx = { codes = [3] }\n",
         "the answer code 3 is listed with two meanings"),
        (MAPPING + 'b = "x"\n[answers]\nlow = 1\nhigh = 4\n', "two columns have the topic 'x'"),
        (MAPPING + 'b = " X "\n[answers]\nlow = 1\nhigh = 4\n', "two columns have the topic 'x'"),
        (MAPPING + "[answers]\nlow = 1\nhi = 4\n", "answers.hi"),
        (MAPPING + "[choices]\ngood = { score = 2, codes = [1] }\n", "choices.good.score"),
        ("title = ", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_mapping_that_cannot_be_used_names_the_key(toml: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(toml)
    with pytest.raises(SurveyError) as caught:
        load_mapping(path)
    assert message in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_an_unknown_mapping_names_the_nearest() -> None:
    with pytest.raises(SurveyError, match="Did you mean 'pew2013'"):
        load_mapping("pew2014")
