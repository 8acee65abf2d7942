"""What servers accept, and sampling settings that differ where a server refuses one: nothing is then compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from auditor.config import AuditConfig
from auditor.domain import AnswerForm, Capability, CapabilityKey, Purpose
from auditor.exports.tracker_runs import build_runs
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.build import build_report
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.report_source import load_source
from auditor.reports.data.requests import (
    RequestFormRow,
    SamplingReport,
    build_requests_report,
    build_sampling_report,
    build_sampling_rows,
    count_forms,
    find_mixed_models,
)
from auditor.reports.data.sampling import REFUSED_REASON, build_temperature_rows, compare_sample_sizes
from auditor.reports.sections.differences_document import build_difference_document
from auditor.reports.sections.experiments.sampling import build_sampling_document
from auditor.storage.capabilities import Alteration, save_capability
from auditor.storage.costs import AnswerVersion, CallCounts, CallSums
from auditor.storage.database import Database, open_database
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of
from tests.support.known import known
from tests.support.report_changes import change
from tests.support.request_reports import DEFAULT_LABEL, change_answers, direct_keys
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
    [row] = build_requests_report(db, load_source(db, audit.name)).capabilities
    assert row.model_dump(mode="json", exclude={"created_at"}) == {
        "name": "birch", "form": "tool", "dropped_params": ["seed", "temperature"],
        "dropped_keywords": ["maxLength", "strict"], "token_limit_param": "max_completion_tokens",
        "thinking_tokens": 4096, "evidence": "evidence 1", "litellm_version": "1.106.2",
    }  # fmt: skip


async def test_a_model_that_was_asked_in_two_forms_is_split(db: Database) -> None:
    audit = populate(db, models=2, countries=8, topics=6)
    keys = direct_keys(db, "alder")
    await change_answers(db, keys[: len(keys) // 2], form="json_schema")
    await change_answers(db, keys[len(keys) // 2 :], form="tool")
    await change_answers(db, direct_keys(db, "birch"), form="tool")
    source = load_source(db, audit.name)
    requests = build_requests_report(db, source)
    assert find_mixed_models(requests.forms) == {"alder": ["json_schema", "tool"]}
    first, second = requests.form_split
    assert [(row.model, row.form) for row in (first, second)] == [("alder", "json_schema"), ("alder", "tool")]
    alignment = next(row for row in compute_alignment(source) if row.model == "alder")
    assert first.cells + second.cells == pytest.approx(alignment.n, abs=9)  # some cells are asked in both forms
    assert all(row.answers > row.cells > 0 for row in (first, second))
    assert (
        min(known(first.mae.value), known(second.mae.value))
        < (alignment.mae.value or 0.0)
        < max(known(first.mae.value), known(second.mae.value))
    )


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


def make_config(*models: str, **settings: float) -> AuditConfig:
    """A config with these models; `settings` are temperatures by name."""
    sections = [
        {"name": name, "model": f"openai/{name}", "temperature": settings.get(name), "params": {"top_p": 0.9}}
        for name in models
    ]
    return AuditConfig.model_validate(
        {"name": "x", "survey": {"source": "wvs7-sample"}, "models": sections, "judges": [], "probes": {"direct": {}}}
    )


def build(config: AuditConfig, **altered: str | None) -> SamplingReport:
    counts = [
        CallCounts(AnswerVersion(name, altered=alteration), purpose.value, 0.0, CallSums(calls=3, answers=3))
        for name, alteration in altered.items()
        for purpose in (Purpose.DIRECT, Purpose.REVIEW)
    ]
    return build_sampling_report(config, counts)


def test_equal_settings_do_not_differ_and_have_no_labels() -> None:
    sampling = build(make_config("a", "b"), a="", b="seed")
    assert not sampling.sampling_settings_differ
    assert sampling.labels(Purpose.DIRECT) == {}
    assert sampling.refusing_models(Purpose.DIRECT) == []
    assert [row.label for row in sampling.rows] == ["temperature 0.7, top_p 0.9"] * 2


@pytest.mark.parametrize(
    ("altered", "label"),
    [
        ("seed, temperature", "openai’s default temperature, top_p 0.9"),
        ("temperature=1", "temperature 1, top_p 0.9"),
        ("top_p", "temperature 0.7, openai’s default top_p"),
    ],
)
def test_a_refused_setting_makes_models_incomparable(altered: str, label: str) -> None:
    sampling = build(make_config("a", "b", "c"), a="", b=altered, c="")
    assert sampling.sampling_settings_differ
    assert sampling.refusing_models(Purpose.DIRECT) == ["b"]
    assert sampling.labels(Purpose.DIRECT)["b"] == label
    assert not sampling.are_comparable("a", "b", Purpose.DIRECT)
    assert sampling.are_comparable("a", "c", Purpose.DIRECT)
    assert sampling.are_comparable("a", "b", Purpose.declare("moral"))


def test_a_default_behind_an_address_is_the_servers_and_two_servers_are_not_comparable() -> None:
    config = make_config("a", "b")

    def at(*servers: str) -> SamplingReport:
        models = [change(model, api_base=server) for model, server in zip(config.models, servers, strict=True)]
        return build(change(config, models=models), a="temperature", b="temperature")

    same = at("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1")
    assert [row.label for row in same.rows] == ["the server’s default temperature, top_p 0.9"] * 2
    assert same.are_comparable("a", "b", Purpose.DIRECT)
    assert not at("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1").are_comparable("a", "b", Purpose.DIRECT)


def test_settings_that_the_user_chose_may_differ() -> None:
    sampling = build(make_config("cool", "warm", cool=0.2, warm=1.0), cool="", warm="")
    assert not sampling.sampling_settings_differ
    assert sampling.are_comparable("cool", "warm", Purpose.DIRECT)


def test_models_of_one_provider_that_all_refuse_are_comparable() -> None:
    assert not build(make_config("a", "b"), a="temperature", b="temperature").sampling_settings_differ


def test_a_single_model_or_unknown_requests_are_not_marked() -> None:
    assert not build(make_config("a"), a="temperature").sampling_settings_differ
    assert build(make_config("a", "b"), a="temperature", b=None).rows[0].honoured is False
    assert not build(make_config("a", "b"), a="temperature", b=None).sampling_settings_differ
    assert build_sampling_rows(None, [Alteration("a", "direct", "")]) == []


def test_a_setting_that_was_refused_during_the_audit_is_equal_to_no_other() -> None:
    alterations = [Alteration(name, "direct", altered) for name in "ab" for altered in ("", "temperature")]
    rows = build_sampling_rows(make_config("a", "b"), alterations)
    assert [len(row.sent) for row in rows] == [2, 2]
    assert rows[0].label == "temperature 0.7, top_p 0.9 or openai’s default temperature, top_p 0.9"
    counts = [
        CallCounts(AnswerVersion(a.name, altered=a.altered), a.purpose, 0.0, CallSums(calls=1, answers=1))
        for a in alterations
    ]
    assert build_sampling_report(make_config("a", "b"), counts).sampling_settings_differ


async def test_the_report_says_that_settings_differ(db: Database) -> None:
    populate(db, models=2, countries=2, topics=2, name="refused")
    await change_answers(db, direct_keys(db, "alder"), altered="temperature")
    await change_answers(db, direct_keys(db, "birch"), altered="")
    report = build_report(db, "refused")
    assert report.sampling.sampling_settings_differ
    assert [row.sampling for row in report.self_consistency] == ["openai’s default temperature", "temperature 0.7"]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """An audit of two models, of which one was asked without the temperature; read-only."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('refused')}/audit.db") as db:
        populate(db, models=2, name="refused")
        for model in ("alder", "birch"):
            altered = "temperature" if model == "alder" else ""
            asyncio.run(change_answers(db, direct_keys(db, model), altered=altered))
        yield db


def test_a_comparison_of_audits_says_that_settings_differ(refused: Database) -> None:
    comparison = compare_targets(refused, [parse_target("refused")])
    assert [series.sampling for series in comparison.series] == [DEFAULT_LABEL, "temperature 0.7"]
    assert [pair.sampling_settings_differ for pair in comparison.pairs] == [True]
    opening = text_of(build_difference_document(comparison).opening)
    assert f"alder ({DEFAULT_LABEL}) and birch (temperature 0.7) were asked with different sampling settings" in opening


async def test_a_comparison_of_equal_settings_has_no_such_caution(db: Database) -> None:
    populate(db, models=2)
    for model in ("alder", "birch"):
        await change_answers(db, direct_keys(db, model), altered="")
    comparison = compare_targets(db, [parse_target("population")])
    assert [pair.sampling_settings_differ for pair in comparison.pairs] == [False]
    assert "sampling settings" not in text_of(build_difference_document(comparison).opening)


def test_an_experiment_has_no_figure_at_a_temperature_that_was_refused(refused: Database) -> None:
    refusing, honoured = build_temperature_rows(load_source(refused, "refused"), 0.7)
    assert (refusing.r.reason, refusing.mae.reason, refusing.spread) == (REFUSED_REASON, REFUSED_REASON, None)
    assert honoured.r.value is not None
    assert honoured.spread is not None


def test_an_experiment_on_samples_marks_the_scatter(refused: Database) -> None:
    experiment = compare_sample_sizes(refused, load_source(refused, "refused"), [2])
    assert [row.sampling for row in experiment.rows] == [DEFAULT_LABEL, "temperature 0.7"]
    document = build_sampling_document(experiment)
    assert_consistent(document)
    assert tables_of(document)["settings"].columns[-1].title == "Sampling"


def test_a_tracker_gets_no_self_consistency_of_a_refusing_model(refused: Database) -> None:
    _, [refusing, honoured] = build_runs(build_report(refused, "refused"))
    assert "self_consistency" not in refusing.metrics
    assert "sample_variance" not in refusing.metrics
    assert refusing.params["sampling"] == DEFAULT_LABEL
    assert honoured.metrics["sample_variance"] > 0


def test_only_sampled_answers_have_settings(refused: Database) -> None:
    source = load_source(refused, "refused")
    sampling = build_sampling_report(source.config, source.call_counts)
    assert [sampling.labels(purpose) for purpose in (Purpose.REVIEW, Purpose.declare("logic"))] == [{}, {}]
