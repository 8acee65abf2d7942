"""What servers accept is reported for each model, and a model that was asked in several forms is split by form."""

from __future__ import annotations

import pytest

from auditor.domain import AnswerForm, Capability, CapabilityKey
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import RequestFormRow, count_forms, find_mixed_models
from auditor.storage.capabilities import save_capability
from auditor.storage.costs import AnswerVersion, CallCounts, CallSums
from auditor.storage.database import Database
from tests.support.request_reports import change_answers, direct_keys
from tests.support.synthetic_audit import populate

CAPABILITY = Capability(
    AnswerForm.TOOL, ("maxLength", "strict"), ("seed", "temperature"), "max_completion_tokens", thinking_tokens=4096
)


async def test_the_current_capability_of_each_model_is_listed(db: Database) -> None:
    audit = populate(db, models=2, countries=2, topics=2)
    key = CapabilityKey("openai/birch-1", None, None)
    for i, capability in enumerate((Capability(), CAPABILITY)):
        await save_capability(db, audit.id, key, capability, f"evidence {i}", "1.106.2", newer_than=i)
    await save_capability(db, audit.id, CapabilityKey("openai/other", None, None), CAPABILITY, "", "1.106.2")
    [row] = build_report(db, audit.name).requests.capabilities
    assert row.model_dump(mode="json", exclude={"created_at"}) == {
        "name": "birch",
        "form": "tool",
        "dropped_params": ["seed", "temperature"],
        "dropped_keywords": ["maxLength", "strict"],
        "token_limit_param": "max_completion_tokens",
        "thinking_tokens": 4096,
        "evidence": "evidence 1",
        "litellm_version": "1.106.2",
    }


def test_an_audit_without_capabilities_lists_none(report: Report) -> None:
    assert report.requests.model_dump() == {"capabilities": [], "forms": [], "form_split": []}


async def test_a_model_that_was_asked_in_two_forms_is_split(db: Database) -> None:
    audit = populate(db, models=2, countries=8, topics=6)
    keys = direct_keys(db, "alder")
    await change_answers(db, keys[: len(keys) // 2], form="json_schema")
    await change_answers(db, keys[len(keys) // 2 :], form="tool")
    await change_answers(db, direct_keys(db, "birch"), form="tool")
    report = build_report(db, audit.name)
    assert find_mixed_models(report.requests.forms) == {"alder": ["json_schema", "tool"]}
    first, second = report.requests.form_split
    assert [(row.model, row.form) for row in (first, second)] == [("alder", "json_schema"), ("alder", "tool")]
    alignment = next(row for row in report.alignment if row.model == "alder")
    assert first.cells + second.cells == pytest.approx(alignment.n, abs=9)  # some cells are asked in both forms
    assert all(row.answers > row.cells > 0 for row in (first, second))
    assert first.mae.value is not None
    assert second.mae.value is not None
    assert (
        min(first.mae.value, second.mae.value) < (alignment.mae.value or 0.0) < max(first.mae.value, second.mae.value)
    )


async def test_few_countries_give_values_without_an_interval(db: Database) -> None:
    audit = populate(db, models=2, countries=3, topics=4)
    keys = direct_keys(db, "alder")
    await change_answers(db, keys[::2], form="json_schema")
    await change_answers(db, keys[1::2], form="text")
    split = build_report(db, audit.name).requests.form_split
    assert [row.form for row in split] == ["json_schema", "text"]
    assert all(row.pearson_r.value is not None and row.pearson_r.ci_low is None for row in split)


def test_forms_are_counted_by_purpose_and_only_for_answers_in_use() -> None:
    def count(purpose: str, form: str | None, *, is_current: bool = True) -> CallCounts:
        return CallCounts(
            AnswerVersion("a", form=form), purpose, 0.0, CallSums(calls=3, answers=3), is_current=is_current
        )

    forms = count_forms(
        [
            count("direct", "tool"),
            count("direct", None),
            count("review", "text"),
            count("direct", "text", is_current=False),
        ]
    )
    assert forms == [
        RequestFormRow(name="a", purpose="direct", form="tool", answers=3),
        RequestFormRow(name="a", purpose="review", form="text", answers=3),
    ]
    assert find_mixed_models(forms) == {}
