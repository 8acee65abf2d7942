"""Who sits where: one rule, whatever things are called and in whatever order they are listed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.panel_assignment import PanelAssignment, TraceKey, assign_panels, select_reviewed
from auditor.run import load_planned_survey
from tests.support.audit_configs import config

URL = "http://127.0.0.1:1"


def seats(own: AuditConfig) -> tuple[PanelAssignment, list[TraceKey]]:
    survey = load_planned_survey(own)
    places = [TraceKey(m.name, c, s) for m in own.models for c, n in survey.scores.items() for s in range(3) if n]
    return assign_panels(own, survey), places


def panels(own: AuditConfig) -> dict[TraceKey, list[str]]:
    found, places = seats(own)
    return {place: [j.model for j in found.panel(place)] for place in places}


def test_each_judge_has_equally_many_traces_of_each_model() -> None:
    found = panels(config(URL, 7, panel={"judges_per_trace": 2}))
    counts = Counter((place.model, judge) for place, judges in found.items() for judge in judges)
    assert set(counts.values()) == {27 * 2 // 6}
    assert len(counts) == 42
    assert panels(config(URL, 7)) == panels(config(URL, 7, panel={"judges_per_trace": 6}))


def test_names_and_order_decide_nothing() -> None:
    own = config(URL, 5, panel={"judges_per_trace": 2})
    data = own.model_dump(mode="json")
    names = {f"model-{x}": f"renamed-{i}" for i, x in enumerate("edcba")}
    moved: dict[str, Any] = {
        "models": [{**m, "name": names[m["name"]]} for m in reversed(data["models"])],
        "survey": {**data["survey"], "countries": data["survey"]["countries"][::-1]},
    }
    other = panels(AuditConfig.model_validate(data | moved))
    for place, judges in panels(own).items():
        assert sorted(other[TraceKey(names[place.model], place.cell, place.sample)]) == sorted(judges)


def test_more_samples_keep_the_seats_of_the_first() -> None:
    few, many = (
        panels(config(URL, 5, panel={"judges_per_trace": 2}, probes={"direct": {"samples": k}})) for k in (3, 6)
    )
    assert few == many  # both are asked for the first three samples


def test_only_the_first_readable_traces_of_a_cell_are_judged() -> None:
    own = config(URL, probes={"direct": {"samples": 4}, "review": {"traces": 2}})
    cell = Cell("Japan", "divorce")
    readable = [TraceKey("model-a", cell, s) for s in (3, 1, 2)]
    assert [p.sample for p in select_reviewed(own, readable)] == [1, 2]
    found = assign_panels(own, load_planned_survey(own)).judges_by_cell(select_reviewed(own, readable))
    assert found == {("model-a", cell): {"model-b", "model-c"}}


def test_more_judges_than_there_are_is_an_error_that_names_the_model() -> None:
    with pytest.raises(ValueError, match=r"'model-a' has only 2 that may judge it\. How to fix: Ask for 2 at most"):
        config(URL, 3, panel={"judges_per_trace": 3})
    families = {"panel": {"judges_per_trace": 2, "exclude_family": True}}
    models = [{"name": n, "model": f"openai/{n}", "family": "x" if n in "ab" else n} for n in "abc"]
    with pytest.raises(ValueError, match="'a' has only 1"):
        AuditConfig.model_validate(config(URL).model_dump() | families | {"models": models})
