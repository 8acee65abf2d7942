"""`auditor init`: the configuration it writes for each provider, as TOML or YAML, and what it says about keys."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from auditor.cli.doctor_audit import run_doctor_checks
from auditor.cli.init import (
    build_provider_config,
    convert_to_yaml,
    find_provider,
    list_set_keys,
    list_unset_variables,
    read_starter,
)
from auditor.config import AuditConfig, load_config
from auditor.config.providers import PROVIDER_BY_NAME, Provider
from auditor.config.strict_yaml import parse_yaml
from auditor.errors import UsageError
from tests.support.cli_runner import fail, run, succeed
from tests.support.fake_server import FakeServer

OPENAI = find_provider("openai")
ADDRESS = "https://ours.openai.azure.com"
BASE = "https://my-resource.example.com/v1"


def build(provider: Provider, *models: str, judges: tuple[str, ...] = (), **others: Provider) -> AuditConfig:
    api_base = ADDRESS if provider.needs_address else None
    text = build_provider_config(models, judges, provider, others.get("judge_provider", provider), api_base)
    return AuditConfig.model_validate(tomllib.loads(text))


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_each_provider_gets_a_valid_config_with_its_key_address_and_params(provider: Provider) -> None:
    config = build(provider, provider.example_model, judges=("a-judge",))
    [model], [judge] = config.models, config.judge_models
    assert model.model == f"{provider.prefix}/{provider.example_model}"
    assert model.api_key == (provider.key_variable and f"os.environ/{provider.key_variable}")
    assert model.api_base == (ADDRESS if provider.needs_address else provider.api_base)
    assert model.params == dict(provider.params)
    assert (judge.model, judge.api_base) == (f"{provider.prefix}/a-judge", model.api_base)


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_a_provider_is_found_by_its_name_and_by_litellms_prefix(provider: Provider) -> None:
    assert find_provider(provider.name) is provider
    assert find_provider(provider.prefix).prefix == provider.prefix


def test_without_the_extra_embeddings_no_encoder_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(OPENAI, "gpt-4.1-mini").embedding.model != "none"
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "sentence_transformers" else find_spec(name)
    )
    assert build(OPENAI, "gpt-4.1-mini").embedding.model == "none"


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_a_budget_is_set_only_if_every_price_is_known(provider: Provider) -> None:
    from auditor.models.budget import require_prices

    config = build(provider, provider.example_model)
    require_prices(config.models, config.limits)
    assert config.limits.max_attempts == 6
    if provider.is_local or provider.name in ("openai", "anthropic", "gemini"):
        assert config.limits.budget_usd == 5.0
    if provider.name in ("azure", "huggingface"):
        assert config.limits.budget_usd is None


def test_several_models_are_peers_and_one_alone_has_no_review() -> None:
    assert [judge.name for judge in build(OPENAI, "gpt-4o", "gpt-4.1").judge_models] == ["gpt-4o", "gpt-4.1"]
    assert build(OPENAI, "gpt-4o").judge_models == []


def test_judges_may_be_of_another_provider() -> None:
    config = build(OPENAI, "gpt-4o", judges=("llama3.2",), judge_provider=find_provider("ollama"))
    [judge] = config.judge_models
    assert (judge.model, judge.api_base, judge.api_key) == ("ollama_chat/llama3.2", "http://localhost:11434", None)


def test_different_models_of_one_name_are_numbered() -> None:
    config = build(find_provider("openrouter"), "a/chat", "b/chat", judges=("c/chat",))
    assert [model.name for model in config.models] == ["chat", "chat-2"]
    assert [judge.name for judge in config.judge_models] == ["chat-3"]


def test_an_azure_config_shows_the_keys_that_give_it_a_price() -> None:
    text = build_provider_config(["ours"], [], find_provider("azure"), OPENAI, ADDRESS)
    for words in ('# base_model = "azure/gpt-4o"', "# price = {", "add budget_usd once each model has a price"):
        assert words in text


@pytest.mark.parametrize(
    ("provider", "models", "message"),
    [
        ("openai", [], "no model is named. Add it, as in --model gpt-4o"),
        (
            "azure",
            ["ours"],
            "needs the address of your own deployment, which its web console shows. Add it: --api-base https://my-resource.openai.azure.com",
        ),
        ("openai", ["gpt 4o"], "openai/gpt 4o"),
        ("opnai", ["gpt-4o"], "'opnai' is not a known provider. Did you mean 'openai'?"),
    ],
)
def test_what_cannot_be_used_is_named(provider: str, models: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        build_provider_config(models, [], find_provider(provider), OPENAI, None)
    assert message in str(refused.value)


def test_set_keys_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDER_BY_NAME.values():
        if provider.key_variable:
            monkeypatch.delenv(provider.key_variable, raising=False)
    assert list_set_keys() == []
    monkeypatch.setenv("GROQ_API_KEY", "a-secret-of-groq")
    assert [(provider.name, variable) for provider, variable in list_set_keys()] == [("groq", "GROQ_API_KEY")]
    assert list_unset_variables([find_provider("groq"), OPENAI]) == ["OPENAI_API_KEY"]


def test_init_names_set_keys_and_never_shows_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "a-secret-of-groq")
    monkeypatch.chdir(tmp_path)
    plain = run(["init", "plain.toml"])
    assert "GROQ_API_KEY (groq)" in plain.stderr
    assert Path("plain.toml").read_text(encoding="utf-8") == read_starter()
    groq = run(["init", "groq.toml", "--provider", "groq", "--model", "llama-3.3-70b-versatile"])
    assert (groq.returncode, "export" in groq.stderr) == (0, False)
    assert "a-secret" not in plain.stderr + groq.stderr + Path("groq.toml").read_text(encoding="utf-8")


def test_init_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    azure = run(["init", "a.toml", "--provider", "azure", "--model", "ours", "--api-base", ADDRESS])
    steps = (
        "export AZURE_API_KEY=…, then auditor trust a.toml, then auditor doctor a.toml --ping, then auditor run a.toml"
    )
    assert steps in azure.stderr
    without_provider = run(["init", "b.toml", "--model", "ours"])
    assert (without_provider.returncode, "no provider is named" in without_provider.stderr) == (2, True)
    assert not Path("b.toml").exists()


def test_the_written_config_passes_doctor(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-anthropic")
    monkeypatch.chdir(tmp_path)
    arguments = ["--model", "claude-sonnet-4-5", "--judge", "claude-haiku-4-5"]
    assert run(["init", "hosted.toml", "--provider", "anthropic", *arguments]).returncode == 0
    local_arguments = ["--model", "llama3.2", "--api-base", server.url]
    assert run(["init", "local.toml", "--provider", "vllm", *local_arguments]).returncode == 0
    for name in ("hosted.toml", "local.toml"):
        checks = run_doctor_checks(Path(name), None)
        assert [check for check in checks if check.state == "FAIL" and check.name != "encoder"] == []
    assert load_config("hosted.toml").models[0].model == "anthropic/claude-sonnet-4-5"


def test_doctor_warns_of_unknown_prices_and_names_the_key_to_add(tmp_path: Path) -> None:
    text = build_provider_config(["ours"], [], find_provider("azure"), OPENAI, ADDRESS)
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    [check] = [check for check in run_doctor_checks(tmp_path / "a.toml", None) if check.name == "prices"]
    assert (check.state, check.found) == ("warn", "unknown for 'ours'")
    assert 'base_model = "azure/gpt-4o"' in check.mend


def test_init_names_trust_exactly_if_the_next_command_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["--provider", "openai", "--model", "good", "--force"]
    base = ["--api-base", "http://127.0.0.1:8911/v1"]
    for trusted, address, is_named in (("", base, True), ("", [], False), ("OPENAI_API_KEY@127.0.0.1", base, False)):
        monkeypatch.setenv("AUDITOR_TRUST", trusted)
        completed = run(["init", "my audit.toml", *words, *address])
        assert completed.returncode == 0
        assert ("auditor trust 'my audit.toml', then" in completed.stderr) is is_named, (trusted, address)


def test_the_starter_says_the_same_in_yaml() -> None:
    converted = convert_to_yaml(read_starter())
    assert parse_yaml(converted, "audit.yaml") == tomllib.loads(read_starter())
    remarks = [line for line in read_starter().splitlines() if line.startswith("# ") and line.count(" = ") == 0]
    assert all(remark in converted for remark in remarks if not remark.startswith("# ["))
    assert "\n[" not in converted


def test_settings_in_comments_are_converted_too() -> None:
    text = '# [[models]]\n# name = "gpt"\n# model = "openai/gpt-4o"\n\n# [[models]]\n# name = "x"\n'
    assert convert_to_yaml(text) == ('# models:\n#   - name: "gpt"\n#     model: "openai/gpt-4o"\n\n#   - name: "x"\n')


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_the_config_of_every_provider_says_the_same_in_yaml(provider: Provider) -> None:
    text = build_provider_config(["a", "b"], ["c"], provider, provider, BASE if provider.needs_address else None)
    assert parse_yaml(convert_to_yaml(text), "audit.yaml") == tomllib.loads(text)


def test_texts_with_signs_of_comments_and_country_codes_stay_texts() -> None:
    text = 'name = "a # b"   # the name\ncountries = ["NO", "a: b"]\nempty = {}\n[[models]]\nname = "x"\n# a remark\n'
    assert convert_to_yaml(text) == (
        'name: "a # b"   # the name\ncountries: ["NO", "a: b"]\nempty: {}\nmodels:\n  - name: "x"\n  # a remark\n'
    )


def test_init_chooses_the_format_by_the_suffix(tmp_path: Path) -> None:
    succeed("init", "my.yaml", cwd=tmp_path)
    succeed("init", "my.toml", cwd=tmp_path)
    assert load_config(tmp_path / "my.yaml") == load_config(tmp_path / "my.toml")
    fail("init", "my.json", cwd=tmp_path, code=2, message="Name it .toml, .yaml or .yml.")
