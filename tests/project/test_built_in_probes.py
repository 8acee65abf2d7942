"""Every built-in probe with a stage of its own has all its hooks, which return what their users expect."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from auditor.agents.graph import build_graph
from auditor.config.installed_probes import (
    list_built_in_names,
    list_probe_names,
    list_probe_sources,
    load_built_in,
    load_probe,
)
from auditor.config.probe_section import BuiltInProbe, ProbeSection
from auditor.domain import Purpose
from auditor.domain.records import RowPolicy, table_declaration
from auditor.errors import ProbeError
from auditor.reports.data.report_schema import Report
from auditor.storage.row_classes import table_of

FOLDER_PROBES = {name: load_probe(name).probe for name, source in list_probe_sources().items() if not source.version}
REQUIRED_HOOKS = {
    *("list_records", "answer_record", "build_stage", "check_input", "plan_calls"),
    *("build_report", "measure_coverage", "build_section", "build_summary_tables"),
}


def test_the_probes_are_known() -> None:
    assert list_built_in_names() == ("distribution", "semantic", "logic")


def test_a_folder_has_a_stage_where_its_class_is_below_that_of_built_in_probes() -> None:
    with_stage = {name for name, probe in FOLDER_PROBES.items() if isinstance(probe, BuiltInProbe)}
    assert with_stage == set(list_built_in_names())


def test_status_imports_no_probe_that_the_database_does_not_have_tables_of() -> None:
    load_tables = "import sys; from auditor.storage import schema; schema.load_tables()"
    code = f"{load_tables}; print(*(name for name in sys.modules if name.count('.') == 2))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.split(".")[2] for name in result.stdout.split() if name.startswith("auditor.probes.")}
    assert imported == set(list_built_in_names())


def test_they_are_listed_with_the_other_probes() -> None:
    assert set(list_built_in_names()) <= set(list_probe_names())


def test_a_configuration_imports_the_probes_that_it_names_only() -> None:
    code = """
import sys
from auditor.config import AuditConfig
base = {"name": "simulated", "survey": {"source": "wvs7-sample"}, "judges": [],
        "models": [{"name": "m", "model": "simulated/inconsistent"}]}
for probes in ({"direct": {}}, {"logic": {"items": "topics"}}):
    AuditConfig.model_validate(base | {"probes": probes})
    print(*sorted(name for name in sys.modules if name.startswith("auditor.probes.") and name.count(".") == 2))
    print(*(name for name in ("numpy", "sqlmodel", "langgraph") if name in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n") == ["", "", "auditor.probes.logic", "", ""]


@pytest.mark.parametrize("name", list_built_in_names())
class TestBuiltInProbes:
    def test_hooks_take_what_their_users_pass(self, name: str) -> None:
        probe_class = type(load_built_in(name))
        assert vars(probe_class).keys() >= REQUIRED_HOOKS
        for hook in vars(probe_class).keys() & vars(BuiltInProbe).keys():
            if inspect.isfunction(declared := vars(BuiltInProbe)[hook]):
                assert list(inspect.signature(vars(probe_class)[hook]).parameters) == list(
                    inspect.signature(declared).parameters
                ), hook

    def test_its_settings_are_those_of_a_probe_with_a_stage(self, name: str) -> None:
        assert issubclass(load_built_in(name).settings, ProbeSection)

    def test_answers_can_be_counted_by_model(self, name: str) -> None:
        columns = table_of(load_built_in(name).answer_record()).c
        assert {"outcome", "key"} <= set(columns.keys())
        assert "model" in columns or "judge" in columns

    def test_the_records_have_that_of_the_answers(self, name: str) -> None:
        probe = load_built_in(name)
        assert probe.answer_record() in probe.list_records()
        assert table_declaration(probe.answer_record()).policy is RowPolicy.DERIVED

    def test_the_report_has_a_field(self, name: str) -> None:
        figures = inspect.signature(type(load_built_in(name)).measure_coverage).parameters["figures"]
        assert figures.annotation in str(Report.model_fields[name].annotation)

    def test_the_graph_has_a_stage(self, name: str) -> None:
        assert name in build_graph().get_graph().nodes

    def test_the_sampled_purpose_names_the_figures_that_depend_on_it(self, name: str) -> None:
        probe = load_built_in(name)
        assert bool(probe.sampled_figures) == (probe.sampled_purpose in set(Purpose))
        assert (probe.settings().sampled_temperature is None) == (probe.sampled_purpose is None)


CHECKED_HOOKS = [
    name
    for name, hook in vars(BuiltInProbe).items()
    if inspect.isfunction(hook) and not name.startswith("_") and hook.__annotations__["return"] not in ("None", "Any")
]


@pytest.mark.parametrize("hook", CHECKED_HOOKS)
@pytest.mark.parametrize("is_item", [False, True])
def test_a_hook_that_returns_a_wrong_type_is_named_with_its_probe(hook: str, is_item: bool) -> None:
    class Wrong(BuiltInProbe):
        name = "wrong"
        exec(f"def {hook}(self): return [0.5] if {is_item} else 0.5", locals())

    if BuiltInProbe.__dict__[hook].__annotations__["return"] == "Sequence[object]" and is_item:
        return
    with pytest.raises(ProbeError, match=f"the hook '{hook}' of the probe 'wrong' returned a value of the type"):
        list(getattr(Wrong(), hook)())
