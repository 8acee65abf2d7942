"""Groups of respondents by codes, labels and bands of a column."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from auditor.surveys.answer_codes import NO_GROUP, decode_groups
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn
from auditor.surveys.mapping import GroupDimension, SurveyMapping, load_mapping

WVS = load_mapping("wvs7")


def make_column(
    name: str, values: list[ColumnValue], labels: dict[ColumnValue, str] | None = None
) -> DistinctValueColumn:
    """A column in which each value occurs once."""
    index = np.arange(len(values), dtype=np.int32)
    return DistinctValueColumn(name, tuple(values), labels or {}, index, index.astype(np.int64) + 1)


@pytest.mark.parametrize(
    ("column", "values", "dimension", "groups"),
    [
        ("q260", [1.0, 2.0, "2", -2.0, None], "sex", ["men", "women", "women", None, None]),
        ("Q262", [17.0, 18.0, 29.0, 30.0, 120.0, -1.0], "age", [None, "18-29", "18-29", "30-49", "50+", None]),
        ("Q275", [0.0, 5.0, 8.0, 9.0], "education", ["lower", "middle", "higher", None]),
        ("Q288", [3.0, 4.0, 10.0], "income", ["low", "middle", "high"]),
        ("Q289", [0.0, 5.0, 8.0], "religion", ["none", "Muslim", None]),
        ("H_URBRURAL", [1.0, 2.0], "settlement", ["urban", "rural"]),
    ],
)
def test_the_groups_of_the_world_values_survey(
    column: str, values: list[ColumnValue], dimension: str, groups: list[str | None]
) -> None:
    decoded = decode_groups([make_column(column, values)], WVS)
    names = list(WVS.groups[dimension].words_by_group)
    assert list(decoded) == [dimension]
    assert [None if position == NO_GROUP else names[position] for position in decoded[dimension]] == groups


def test_a_label_wins_over_the_code() -> None:
    column = make_column("Q260", [1.0, 2.0, 3.0], {1.0: "Female", 2.0: "Male", 3.0: "Other"})
    assert list(decode_groups([column], WVS)["sex"]) == [1, 0, NO_GROUP]
    unknown = make_column("Q260", [1.0], {1.0: "Other"})
    assert list(decode_groups([unknown], WVS)["sex"]) == [NO_GROUP], "its code may mean something else here"


def test_a_file_without_the_column_has_no_groups() -> None:
    assert decode_groups([], WVS) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"column": "Q1"}, "exactly one of the tables"),
        (
            {"column": "Q1", "values": {"a": {"words": "a"}}, "bands": {"b": {"from": 1, "to": 2, "words": "b"}}},
            "one of",
        ),
        (
            {"column": "Q1", "values": {"a": {"codes": [1], "words": "a"}, "b": {"codes": [1], "words": "b"}}},
            "the code 1 is in two groups",
        ),
        (
            {
                "column": "Q1",
                "bands": {"a": {"from": 1, "to": 5, "words": "a"}, "b": {"from": 5, "to": 9, "words": "b"}},
            },
            "'a' and 'b' overlap",
        ),
    ],
)
def test_an_ambiguous_dimension_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        GroupDimension.model_validate(table)


def test_other_mappings_may_have_no_groups() -> None:
    assert isinstance(load_mapping("pew2013"), SurveyMapping)
    assert load_mapping("pew2013").groups == {}
