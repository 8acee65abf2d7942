"""The table of a model: reasoning, declared capabilities, and time limits by default."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pydantic import ValidationError

from auditor.agents.call_builders import model_fields
from auditor.config import AuditConfig, LimitsSection, ModelSection, load_config
from auditor.domain import AnswerForm, Call, DeclaredCapabilities, Message, Purpose, ReasoningSettings
from auditor.errors import ConfigError
from tests.config.test_audit import GOOD, write
from tests.support.audit_configs import with_schema_version

EARLIER_HASH = "dabc3164b09bb05e949c36871742c0e92b52ffa67613c44876a05bde57b7afe9"
"""Of `GOOD` under the version before these keys."""


def read(text: str) -> AuditConfig:
    """Load a config from a file with this text."""
    with TemporaryDirectory() as folder:
        return load_config(write(Path(folder), text))


def model(**settings: Any) -> ModelSection:
    return ModelSection.model_validate({"name": "m", "model": "openai/gpt-5", **settings})


def call_of(section: ModelSection) -> Call:
    return Call(messages=(Message("user", "?"),), purpose=Purpose.DIRECT, **model_fields(section))


# --- reasoning and capabilities -----------------------------------------------------------------------------------


def test_reasoning_reaches_the_call_and_its_key() -> None:
    call = call_of(model(reasoning={"effort": "low", "max_tokens": 2000}))
    assert call.reasoning == ReasoningSettings("low", 2000)
    keys = {call_of(model(reasoning=reasoning)).key for reasoning in (None, {"effort": "low"}, {"effort": "high"})}
    assert len({*keys, call.key}) == 4


def test_declared_capabilities_reach_the_call_and_its_key() -> None:
    declared = {"form": "json_object", "temperature": False, "dropped_keywords": ["strict", "minLength", "strict"]}
    call = call_of(model(capabilities=declared))
    assert call.declared == DeclaredCapabilities(
        AnswerForm.JSON_OBJECT, temperature=False, dropped_keywords=("minLength", "strict")
    )
    assert call.key != call_of(model()).key


def test_a_section_that_sets_nothing_changes_no_key() -> None:
    assert call_of(model(capabilities={})).key == call_of(model()).key
    assert call_of(model(timeout_s=5)).key == call_of(model()).key


def test_a_call_computed_from_local_weights_has_neither() -> None:
    section = model(reasoning={"effort": "low"}, capabilities={"seed": False})
    fields = model_fields(section, on_this_machine=True)
    assert (fields["reasoning"], fields["declared"]) == (None, None)


def test_no_keyword_left_out_is_a_declaration_too() -> None:
    declared = call_of(model(capabilities={"dropped_keywords": []})).declared
    assert declared == DeclaredCapabilities(dropped_keywords=())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("reasoning = {}", r"'models\[2 'n'\]\.reasoning': neither effort nor max_tokens is set\. How to fix: Set"),
        ("reasoning = { max_tokens = 0 }",
         r"reasoning\.max_tokens' must be a whole number from 1 to 1,000,000, not 0"),
        ('reasoning = { effort = "Very high" }', r'effort\' cannot be "Very high"\. How much the model reasons'),
        ('reasoning = { efort = "low" }', r"Did you mean 'effort'\?"),
        ('capabilities = { form = "xml" }',
         r"capabilities\.form' must be \"json_schema\", \"json_object\", \"tool\" or \"text\", not \"xml\""),
        ('capabilities = { temperature = "maybe" }', r"temperature' must be true or false, not \"maybe\""),
        ('capabilities = { token_limit_param = "limit" }',
         r"token_limit_param' must be \"max_tokens\" or \"max_completion_tokens\", not \"limit\""),
    ],
)  # fmt: skip
def test_wrong_settings_are_explained(lines: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(GOOD + lines)


# --- time limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "timeout_s"),
    [
        ({}, 60), ({"api_base": "https://llm.example.org/v1"}, 60), ({"api_base": "https://8.8.8.8/v1"}, 60),
        ({"reasoning": {"effort": "none"}}, 600), ({"model": "embedded/smollm2-135m"}, 600),
        ({"api_base": "http://localhost:8000/v1"}, 600), ({"api_base": "http://127.0.0.1:8000/v1"}, 600),
        ({"api_base": "http://[::1]:8000/v1"}, 600), ({"api_base": "http://192.168.1.20:8000/v1"}, 600),
        ({"api_base": "http://10.0.0.5:8000/v1"}, 600), ({"api_base": "http://ollama:11434"}, 600),
        ({"api_base": "http://gpu.local:8000/v1"}, 600),
        ({"api_base": "http://localhost:8000/v1", "timeout_s": 5}, 5),
    ],
)  # fmt: skip
def test_slow_models_have_longer_time_limits_by_default(settings: dict[str, Any], timeout_s: float) -> None:
    assert model(**settings).resolved_timeout_s == timeout_s


def test_the_deadline_leaves_time_for_two_requests_unless_it_is_set() -> None:
    assert [LimitsSection().resolved_deadline_s(timeout_s) for timeout_s in (5, 60, 600)] == [120, 120, 1200]
    assert LimitsSection(deadline_s=30).resolved_deadline_s(600) == 30


def test_defaults_keep_the_hash_that_earlier_versions_stored() -> None:
    earlier = with_schema_version(read(GOOD), 1)
    explicit_limits = earlier.limits.model_copy(update={"deadline_s": 120.0})
    explicit_models = [section.model_copy(update={"timeout_s": 60.0}) for section in earlier.models]
    explicit = earlier.model_copy(update={"limits": explicit_limits, "models": explicit_models})
    assert explicit.hash == earlier.hash
    assert earlier.hash == EARLIER_HASH


def test_reasoning_and_capabilities_change_the_hash() -> None:
    lines = ('reasoning = { effort = "low" }', "capabilities = { seed = false }", "timeout_s = 5")
    configs: list[AuditConfig] = [read(GOOD), *(read(GOOD + line) for line in lines)]
    assert len({config.hash for config in configs}) == len(configs)


@pytest.mark.parametrize(
    ("settings", "scope"),
    [
        ({"model": "openai/gpt-5"}, "model"),
        ({"model": "openai/gpt-5", "api_base": "http://localhost:8000/v1"}, "account"),
        ({"model": "azure/mine", "api_base": "https://x.openai.azure.com"}, "model"),
        ({"model": "anthropic/claude"}, "model"),
        ({"model": "fireworks_ai/x"}, "account"),
        ({"model": "unheard_of/x"}, "account"),
        ({"model": "openai/gpt-5", "rate_limit_scope": "account"}, "account"),
        ({"model": "unheard_of/x", "rate_limit_scope": "model"}, "model"),
    ],
)
def test_a_refusal_concerns_the_account_unless_the_provider_documents_limits_of_each_model(
    settings: dict[str, Any], scope: str
) -> None:
    assert model(**settings).resolved_rate_limit_scope == scope


def test_several_keys_are_each_named_once() -> None:
    keys = ["os.environ/FIRST_KEY", "os.environ/SECOND_KEY"]
    section = model(api_key=keys)
    assert section.api_keys == tuple(keys)
    sections = section.split_by_key()
    assert [keyed.api_key for keyed in sections] == keys
    assert len({keyed.name for keyed in sections}) == 2
    assert model(api_key=keys[0]).api_keys == (keys[0],)
    assert model().split_by_key() == [model()]
    for wrong in ([keys[0], keys[0]], [], ["sk-0123456789"]):
        with pytest.raises(ValidationError):
            model(api_key=wrong)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"parameters": "7B"}, {"parameters": 7e9}),
        ({"parameters": 135_000_000}, {"parameters": 1.35e8}),
        ({"parameters": "1.3e10"}, {"parameters": 1.3e10}),
        ({"released": date(2025, 3, 1)}, {"released": "2025-03-01"}),
        ({"released": 2025, "layers": 32, "tuning": "rlhf"}, {"released": "2025", "layers": "32", "tuning": "rlhf"}),
    ],
)
def test_attributes_are_a_number_of_parameters_a_date_and_labels(
    written: dict[str, object], read: dict[str, object]
) -> None:
    section = ModelSection.model_validate({"name": "m", "model": "openai/m", "attributes": written})
    assert section.attributes == read
    assert ModelSection.model_validate_json(section.model_dump_json()) == section


@pytest.mark.parametrize(
    ("written", "problem"),
    [({"parameters": "many"}, "'parameters' is not a number above 0"),
     ({"parameters": 0}, "'parameters' is not a number above 0"),
     ({"released": "last spring"}, "'released' is not a date"), ({"tuning": ["a"]}, "'tuning' is not a label"),
     ({"tuning": ""}, "'tuning' is not a label")],
)  # fmt: skip
def test_other_attributes_are_refused(written: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ModelSection.model_validate({"name": "m", "model": "openai/m", "attributes": written})


def test_attributes_are_in_no_call_and_no_hash() -> None:
    section = ModelSection.model_validate({"name": "m", "model": "openai/m"})
    described = section.model_copy(update={"attributes": {"parameters": 7e9, "tuning": "base"}})
    assert model_fields(described) == model_fields(section)
    config = read(GOOD)
    models = [model.model_copy(update={"attributes": {"tuning": "base"}}) for model in config.models]
    assert config.model_copy(update={"models": models}).hash == config.hash
