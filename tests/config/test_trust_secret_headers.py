"""Secrets in headers are named by environment variables, sent to trusted servers only, and stored and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from auditor import run_audit
from auditor.config import AuditConfig, ModelSection
from auditor.config.trust import refuse_literal_secrets, require_trust, required_bindings, secret_header_variables
from auditor.errors import ConfigError
from tests.support.audit_configs import KEY_VARIABLE, config
from tests.support.cli_runner import fail
from tests.support.fake_server import FakeServer, answer, completion

SECRET, VARIABLE = "secret-of-the-second-gate", "GATE_SECRET"
REFERENCE = f"os.environ/{VARIABLE}"


def model(**params: Any) -> ModelSection:
    return ModelSection(name="m", model="openai/x", api_base="https://models.example.org/v1", params=params)


def with_header(url: str, name: str, value: str) -> AuditConfig:
    """A config of one model whose requests have this header."""
    audit = config(url)
    section = audit.models[0].model_copy(update={"params": {"extra_headers": {name: value, "X-Team": "blue"}}})
    return audit.model_copy(update={"models": [section], "judges": []})


LITERAL_SECRETS = {
    "X-Api-Key": "PLAIN", "x-auth": "a", "Authorization": "Bearer abcdefgh123", "Cookie": "a=b", "X-Token": "t",
    "X-Passwd": "a", "X-My-Jwt": "a", "X-Host": "dapi0123456789abcdef", "X-Scheme": "token abcd1234",
    "client-secret": "s", "X-Plain": "sk-abcdefgh1234", "X-Other": "ghp_abcdefgh1234", "X-Google": "AIzaSyA1234567",
    "X-Jwt": "eyJhbGciOiJIUzI1NiJ9.e30.abc", "X-Basic": "Basic YWRhOnNlY3JldA==", "X-Aws": "AKIAIOSFODNN7EXAMPLE",
    "X-Hf": "hf_abcdefghijk", "X-Mixed": "token=gsk_abcdefghijk", "X-Broken": "os.environ/NO SUCH",
}  # fmt: skip
PLAIN_HEADERS = {"X-Team": "blue", "X-Trace": "sketch-1", "HTTP-Referer": "https://example.org", "X-Title": "An audit"}


@pytest.mark.parametrize("name", LITERAL_SECRETS)
def test_a_literal_secret_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the header '{name}' in params.extra_headers holds a secret") as refused:
        refuse_literal_secrets(model(extra_headers={name: LITERAL_SECRETS[name]}))
    assert "os.environ/NAME" in (refused.value.how_to_fix or "")
    assert len(LITERAL_SECRETS[name]) < 6 or LITERAL_SECRETS[name] not in str(refused.value)


LIKE_A_KEY = f"sk-proj-{SECRET}-0123456789abcdef"
SECRET_SETTINGS: dict[str, dict[str, Any]] = {
    "extra_query.api-key": {"params": {"extra_query": {"api-key": SECRET}}},
    "extra_body.api_key": {"params": {"extra_body": {"api_key": SECRET}}},
    "extra_body.tools.authorization": {"params": {"extra_body": {"tools": [{"authorization": SECRET}]}}},
    "user": {"params": {"user": LIKE_A_KEY}},
    "stop": {"params": {"stop": ["x", LIKE_A_KEY]}},
    "extra_body.note": {"params": {"extra_body": {"note": f"dapi{0:032x} of {SECRET}"}}},
    "extra_body.messages.content": {"params": {"extra_body": {"messages": [{"content": f"Key: {LIKE_A_KEY}"}]}}},
    "api_base": {"api_base": f"https://models.example.org/{LIKE_A_KEY}/v1"},
    "extra_query.q": {"params": {"extra_query": {"q": quote(LIKE_A_KEY).replace("-", "%2D")}}},
    "subscription-key": {"api_base": f"https://models.example.org/v1?api-version=1&subscription-key={SECRET}"},
}


@pytest.mark.parametrize("name", SECRET_SETTINGS)
def test_a_secret_in_another_parameter_or_in_the_address_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' in .* holds a secret") as refused:
        refuse_literal_secrets(model().model_copy(update=SECRET_SETTINGS[name]))
    assert "extra_headers" in (refused.value.how_to_fix or "")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("n_times", [1, 2])
def test_a_secret_whose_characters_are_encoded_in_the_address_is_refused_and_not_shown(n_times: int) -> None:
    encoded = "".join(f"%{'25' * (n_times - 1)}{ord(char):02X}" for char in LIKE_A_KEY)
    for address in (f"https://models.example.org/{encoded}/v1", f"https://models.example.org/v1?q={encoded}"):
        with pytest.raises(ConfigError, match="'api_base' in the model holds a secret") as refused:
            refuse_literal_secrets(model().model_copy(update={"api_base": address}))
        assert encoded not in str(refused.value)


def test_parameters_and_addresses_without_a_secret_are_accepted() -> None:
    body = {
        "max_tokens": 9,
        "eos_token": "</s>",
        "prompt_cache_key": "audit",
        "tokenizer": "hf-internal-testing/x",
        "template": "sk-learn and co-operatives of 2024; the task-20-questions-about-10-countries",
        "key": 1,
    }
    section = model(extra_body=body, max_tokens=5, stop=["key"])
    refuse_literal_secrets(
        section.model_copy(
            update={
                "api_base": "https://sk-gateway-eu-central-1-01.example.org/fw_llama_v3p1_70b_instruct/x?api-version=1"
            }
        )
    )


@pytest.mark.parametrize("name", PLAIN_HEADERS)
def test_other_headers_are_accepted(name: str) -> None:
    refuse_literal_secrets(model(extra_headers={name: PLAIN_HEADERS[name]}))


@pytest.mark.parametrize("value", [5, True, "a\nX-Other: b", "Z\u00fcrich", ["a"]])
def test_a_header_that_http_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="the header 'X-Team' in extra_headers cannot be sent"):
        model(extra_headers={"X-Team": value})


def test_a_reference_is_accepted_and_read() -> None:
    section = model(extra_headers={"X-Api-Key": REFERENCE, "X-Team": "blue"})
    refuse_literal_secrets(section)
    assert secret_header_variables(section) == {"X-Api-Key": VARIABLE}
    with pytest.raises(ConfigError, match="holds a secret"):
        refuse_literal_secrets(model(default_headers={"X-Api-Key": REFERENCE}))


def test_no_command_that_asks_models_accepts_a_literal_secret(tmp_path: Path, server: FakeServer) -> None:
    file = tmp_path / "audit.yaml"
    audit = with_header(server.url, "X-Api-Key", "literal-secret-value")
    file.write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)))
    for command in (["run"], ["run", "--dry-run"], ["estimate"]):
        refused = fail(*command, file, "--storage", f"sqlite:///{tmp_path}/a.db", code=2, message="holds a secret")
        assert "literal-secret-value" not in refused.stdout + refused.stderr
    assert not list(tmp_path.glob("a.db*"))
    assert server.requests == []


def test_a_secret_needs_trust_and_is_sent_redacted_and_not_stored(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = with_header(server.url, "X-Gate", REFERENCE)
    assert f"{VARIABLE}@127.0.0.1" in " ".join(str(binding) for binding in required_bindings(audit))
    monkeypatch.setenv(VARIABLE, SECRET)
    with pytest.raises(ConfigError, match=f"would send the key {VARIABLE} to 127"):
        run_audit(audit, storage=storage)
    assert server.requests == []
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1,{VARIABLE}@127.0.0.1")
    server.script = lambda request: completion(f"I saw {request.headers['x-gate']}. SCORE = 0.5")
    run_audit(audit, storage=storage)
    assert {(request.headers["x-gate"], request.headers["x-team"]) for request in server.requests} == {(SECRET, "blue")}
    folder = Path(storage.removeprefix("sqlite:///")).parent
    assert not [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1,{VARIABLE}@127.0.0.1")
    server.script = answer
    with pytest.raises(ConfigError, match=VARIABLE):
        run_audit(with_header(server.url, "X-Gate", REFERENCE), storage=storage)
    assert server.requests == []


def test_without_an_address_a_header_goes_to_the_providers_own_servers() -> None:
    section = ModelSection(name="m", model="openai/x", params={"extra_headers": {"X-Api-Key": REFERENCE}})
    audit = config("https://h/v1").model_copy(update={"models": [section]})
    assert required_bindings(audit) == []
    require_trust(audit)
