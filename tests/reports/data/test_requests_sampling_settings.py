"""Sampling settings differ only where a server refuses a setting, and then nothing is compared."""

from __future__ import annotations

import pytest

from auditor.config import AuditConfig
from auditor.domain import Purpose
from auditor.reports.data.build import build_report
from auditor.reports.data.requests import (
    SamplingReport,
    build_sampling_report,
    build_sampling_rows,
    parse_alterations,
)
from auditor.storage.capabilities import Alteration
from auditor.storage.costs import AnswerVersion, CallCounts, CallSums
from auditor.storage.database import Database
from tests.support.request_reports import change_answers, direct_keys
from tests.support.synthetic_audit import populate


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
        models = [
            model.model_copy(update={"api_base": server}) for model, server in zip(config.models, servers, strict=True)
        ]
        return build(config.model_copy(update={"models": models}), a="temperature", b="temperature")

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


def test_alterations_are_parsed_by_name() -> None:
    assert parse_alterations("seed, temperature=1") == {"seed": None, "temperature": "1"}
    assert parse_alterations("") == {}


async def test_the_report_says_that_settings_differ(db: Database) -> None:
    populate(db, models=2, countries=2, topics=2, name="refused")
    await change_answers(db, direct_keys(db, "alder"), altered="temperature")
    await change_answers(db, direct_keys(db, "birch"), altered="")
    report = build_report(db, "refused")
    assert report.sampling.sampling_settings_differ
    assert [row.sampling for row in report.self_consistency] == ["openai’s default temperature", "temperature 0.7"]
