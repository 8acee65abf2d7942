"""Every probe with a stage of its own has all its parts, which take what their users pass."""

from __future__ import annotations

import inspect
from functools import partial

import pytest

from auditor.agents.graph import build_graph
from auditor.config.probes import SECTION_BY_PROBE
from auditor.domain import Purpose
from auditor.domain.records import RowPolicy, list_stored, table_declaration
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.probe_sections import build_probe_section
from auditor.reports.sections.report import SECTION_BUILDERS
from auditor.storage.row_writing import table_of

PARAMETERS = {
    "build_graph": [],
    "check_input": ["config", "survey"],
    "plan_calls": ["config", "survey", "cells"],
    "build_report": ["db", "source", "sampling"],
    "measure_coverage": ["report"],
    "build_section": ["report"],
    "build_summary_tables": ["report"],
    "fingerprint_inputs": ["config", "languages"],
}
"""Parameters of the functions among the parts."""


def test_the_probes_are_known() -> None:
    assert list(SECTION_BY_PROBE) == ["distribution", "semantic", "logic"]


@pytest.mark.parametrize("name", SECTION_BY_PROBE)
class TestParts:
    def test_functions_take_what_their_users_pass(self, name: str) -> None:
        parts = SECTION_BY_PROBE[name].parts
        for part, parameters in PARAMETERS.items():
            if getattr(parts, part) is not None:
                assert list(inspect.signature(parts.load(part)).parameters) == parameters, part

    def test_answers_can_be_counted_by_model(self, name: str) -> None:
        columns = table_of(SECTION_BY_PROBE[name].parts.load("answer_record")).c
        assert {"outcome", "key"} <= set(columns.keys())
        assert "model" in columns or "judge" in columns

    def test_the_module_of_records_has_that_of_its_answers(self, name: str) -> None:
        parts = SECTION_BY_PROBE[name].parts
        assert parts.load("answer_record") in list_stored(parts.load("records"))
        assert table_declaration(parts.load("answer_record")).policy is RowPolicy.DERIVED

    def test_the_report_has_a_field_and_a_section(self, name: str) -> None:
        report_type = inspect.signature(SECTION_BY_PROBE[name].parts.load("measure_coverage")).parameters["report"]
        annotation = Report.model_fields[name].annotation
        assert report_type.annotation in str(annotation)
        partials = [function for function in SECTION_BUILDERS if isinstance(function, partial)]
        assert (build_probe_section, (name,)) in [(function.func, function.args) for function in partials]
        assert inspect.signature(SECTION_BY_PROBE[name].parts.load("build_section")).parameters["report"]

    def test_the_graph_has_a_stage(self, name: str) -> None:
        assert name in build_graph().get_graph().nodes

    def test_the_sampled_purpose_names_the_figures_that_depend_on_it(self, name: str) -> None:
        parts = SECTION_BY_PROBE[name].parts
        assert bool(parts.sampled_figures) == (parts.sampled_purpose in set(Purpose))
        assert (SECTION_BY_PROBE[name]().sampled_temperature is None) == (parts.sampled_purpose is None)
