"""Every record that a report is computed from is loaded."""

from __future__ import annotations

from dataclasses import fields

from auditor.reports.data.report_source import SOURCE_QUERIES, ReportSource

LOADED_IF_NEEDED = {"n_shortened_traces", "sample_scores", "scored_traces", "task_answers"}


def test_every_field_is_filled_by_a_query() -> None:
    """A field without a query would keep its default, as if the audit had none of these records."""
    queries = SOURCE_QUERIES.keys()
    assert {"audit", "config", "survey"} | queries | LOADED_IF_NEEDED == {field.name for field in fields(ReportSource)}
    assert not queries & LOADED_IF_NEEDED
