"""Assignment of judges to traces: balanced, and independent of names and of the order in the config."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.panel_assignment import PanelAssignment, TraceKey, assign_panels, select_reviewed
from auditor.run import load_planned_survey
from tests.support.audit_configs import THREE_SAMPLES, config

URL = "http://127.0.0.1:1"


def assign_traces(audit: AuditConfig) -> tuple[PanelAssignment, list[TraceKey]]:
    survey = load_planned_survey(audit)
    traces = [TraceKey(m.name, c, s) for m in audit.models for c, n in survey.scores.items() for s in range(3) if n]
    return assign_panels(audit, survey), traces


def judges_by_trace(audit: AuditConfig) -> dict[TraceKey, list[str]]:
    assignment, traces = assign_traces(audit)
    return {trace: [j.model for j in assignment.panel(trace)] for trace in traces}


def test_each_judge_has_equally_many_traces_of_each_model() -> None:
    panel_by_trace = judges_by_trace(config(URL, 7, probes=THREE_SAMPLES, panel={"judges_per_trace": 2}))
    counts = Counter((trace.model, judge) for trace, judges in panel_by_trace.items() for judge in judges)
    assert set(counts.values()) == {27 * 2 // 6}
    assert len(counts) == 42
    all_judges, six_judges = (
        config(URL, 7, probes=THREE_SAMPLES, panel=panel) for panel in ({}, {"judges_per_trace": 6})
    )
    assert judges_by_trace(all_judges) == judges_by_trace(six_judges)


def test_names_and_order_do_not_change_the_assignment() -> None:
    audit = config(URL, 5, probes=THREE_SAMPLES, panel={"judges_per_trace": 2})
    data = audit.model_dump(mode="json")
    names = {f"model-{x}": f"renamed-{i}" for i, x in enumerate("edcba")}
    renamed_fields: dict[str, Any] = {
        "models": [{**m, "name": names[m["name"]]} for m in reversed(data["models"])],
        "survey": {**data["survey"], "countries": data["survey"]["countries"][::-1]},
    }
    renamed_panels = judges_by_trace(AuditConfig.model_validate(data | renamed_fields))
    for trace, judges in judges_by_trace(audit).items():
        assert sorted(renamed_panels[TraceKey(names[trace.model], trace.cell, trace.sample)]) == sorted(judges)


def test_more_samples_do_not_change_the_first_panels() -> None:
    panels_of_3_samples, panels_of_6_samples = (
        judges_by_trace(config(URL, 5, panel={"judges_per_trace": 2}, probes={"direct": {"samples": k}}))
        for k in (3, 6)
    )
    assert panels_of_3_samples == panels_of_6_samples  # both are asked for the first three samples


def test_only_the_first_readable_traces_of_a_cell_are_judged() -> None:
    audit = config(URL, probes={"direct": {"samples": 4}, "review": {"traces": 2}})
    cell = Cell("Japan", "divorce")
    readable = [TraceKey("model-a", cell, s) for s in (3, 1, 2)]
    assert [p.sample for p in select_reviewed(audit, readable)] == [1, 2]
    judges_by_cell = assign_panels(audit, load_planned_survey(audit)).judges_by_cell(select_reviewed(audit, readable))
    assert judges_by_cell == {("model-a", cell): {"model-b", "model-c"}}


def test_too_many_judges_per_trace_is_an_error_that_names_the_model() -> None:
    with pytest.raises(
        ValueError, match=r"3 is more than the 2 judges that may judge 'model-a'\. How to fix: Set it to 2 or less"
    ):
        config(URL, 3, panel={"judges_per_trace": 3})
    families = {"panel": {"judges_per_trace": 2, "exclude_family": True}}
    models = [{"name": n, "model": f"openai/{n}", "family": "x" if n in "ab" else n} for n in "abc"]
    with pytest.raises(ValueError, match="1 judge that may judge 'a'"):
        AuditConfig.model_validate(config(URL).model_dump() | families | {"models": models})
