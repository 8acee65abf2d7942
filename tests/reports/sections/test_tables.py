"""A table of records shows an attribute in each column."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from auditor.reports.document import Column, Row
from auditor.reports.sections.tables import tabulate


def test_columns_show_the_attribute_that_their_key_names_or_a_derived_cell() -> None:
    records = [SimpleNamespace(model="alder", score=SimpleNamespace(mae=0.5), n=3)]
    columns = [
        Column("Model", "name", "model"),
        Column("MAE", "number", "score.mae"),
        Column("Twice n", "number", "double"),
    ]
    total = SimpleNamespace(model="all", score=SimpleNamespace(mae=None), n=4)
    table = tabulate("t", "T", "", records, columns, {"double": lambda record: 2 * record.n}, total)
    assert list(table.rows) == [Row(["alder", 0.5, 6]), Row(["all", None, 8], is_total=True)]


def test_a_key_that_is_no_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError, match="missing"):
        tabulate("t", "T", "", [SimpleNamespace(model="alder")], [Column("Model", "name", "missing")])
