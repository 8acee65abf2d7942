"""Every built-in probe with a stage of its own has all its hooks, which return what their users expect."""

from __future__ import annotations

import inspect
from functools import partial

import pytest

from auditor.agents.graph import build_graph
from auditor.config.installed_probes import list_probe_names, load_built_in
from auditor.config.probe_section import BuiltInProbe
from auditor.config.probes import BUILT_IN_PROBES, Probes
from auditor.domain import Purpose
from auditor.domain.records import RowPolicy, table_declaration
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.probe_sections import build_probe_section
from auditor.reports.sections.report import SECTION_BUILDERS
from auditor.storage.row_writing import table_of

REQUIRED_HOOKS = {
    *("list_records", "answer_record", "build_stage", "check_input", "plan_calls"),
    *("build_report", "measure_coverage", "build_section", "build_summary_tables"),
}


def test_the_probes_are_known() -> None:
    assert BUILT_IN_PROBES == ("distribution", "semantic", "logic")


def test_they_are_not_listed_among_the_probes_of_other_packages() -> None:
    assert not set(BUILT_IN_PROBES) & set(list_probe_names())


@pytest.mark.parametrize("name", BUILT_IN_PROBES)
class TestBuiltInProbes:
    def test_hooks_take_what_their_users_pass(self, name: str) -> None:
        probe_class = type(load_built_in(name))
        assert vars(probe_class).keys() >= REQUIRED_HOOKS
        for hook in vars(probe_class).keys() & vars(BuiltInProbe).keys():
            if inspect.isfunction(declared := vars(BuiltInProbe)[hook]):
                assert list(inspect.signature(vars(probe_class)[hook]).parameters) == list(
                    inspect.signature(declared).parameters
                ), hook

    def test_settings_are_those_of_the_field(self, name: str) -> None:
        assert load_built_in(name).settings.__name__ in str(Probes.model_fields[name].annotation)

    def test_answers_can_be_counted_by_model(self, name: str) -> None:
        columns = table_of(load_built_in(name).answer_record()).c
        assert {"outcome", "key"} <= set(columns.keys())
        assert "model" in columns or "judge" in columns

    def test_the_records_have_that_of_the_answers(self, name: str) -> None:
        probe = load_built_in(name)
        assert probe.answer_record() in probe.list_records()
        assert table_declaration(probe.answer_record()).policy is RowPolicy.DERIVED

    def test_the_report_has_a_field_and_a_section(self, name: str) -> None:
        figures = inspect.signature(type(load_built_in(name)).measure_coverage).parameters["figures"]
        assert figures.annotation in str(Report.model_fields[name].annotation)
        partials = [function for function in SECTION_BUILDERS if isinstance(function, partial)]
        assert (build_probe_section, (name,)) in [(function.func, function.args) for function in partials]

    def test_the_graph_has_a_stage(self, name: str) -> None:
        assert name in build_graph().get_graph().nodes

    def test_the_sampled_purpose_names_the_figures_that_depend_on_it(self, name: str) -> None:
        probe = load_built_in(name)
        assert bool(probe.sampled_figures) == (probe.sampled_purpose in set(Purpose))
        assert (probe.settings().sampled_temperature is None) == (probe.sampled_purpose is None)
