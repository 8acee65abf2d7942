"""A key goes only where its owner said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor import bootstrap, run_audit
from auditor.config import AuditConfig, Limits, ModelSection
from auditor.config.trust import Binding, bindings_of, destinations, require_trust, trust, trust_file, trusted_bindings
from auditor.domain import Call, Message, Purpose
from auditor.errors import ConfigError
from auditor.experiments.judges import run_experiment
from auditor.logic.rank import RankingWanted, rank_items
from auditor.models.gateway import Gateway
from tests.audits import KEY, KEY_VARIABLE, config
from tests.fake_server import FakeServer


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user with a home of their own, who trusts nothing yet."""
    monkeypatch.setattr("auditor.config.trust.trust_file", lambda: tmp_path / "home" / "trust.txt")
    monkeypatch.delenv("AUDITOR_TRUST")
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def test_a_config_of_somebodys_cannot_send_a_key_to_a_server_of_theirs(server: FakeServer, storage: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"would send the key {KEY_VARIABLE} to 127\.0\.0\.1:\d+, which you have not"
    ):
        run_audit(config(server.url), storage=storage)
    assert server.requests == []
    assert not Path(storage.removeprefix("sqlite:///")).exists()


def test_nothing_else_that_asks_models_sends_it_either(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = {"direct": {"samples": 1}, "logic": {}}
    audit = config(server.url, models=3, probes=probes)
    with pytest.raises(ConfigError, match="which you have not allowed"):
        rank_items(audit, RankingWanted(), storage=storage)
    assert server.requests == []
    with monkeypatch.context() as patch:
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        run_audit(config(server.url, models=3, probes={"direct": {"samples": 1}}), storage=storage)
    asked = len(server.requests)
    with pytest.raises(ConfigError, match="which you have not allowed"):
        run_experiment("scripted", "planted", 1, storage=storage)
    assert len(server.requests) == asked


def test_what_is_trusted_once_stays_so(server: FakeServer) -> None:
    audit = config(server.url)
    [binding] = bindings_of(audit)
    assert trust([binding]) == [binding]
    assert trust([binding]) == []
    require_trust(audit)
    with pytest.raises(ConfigError, match="would send"):
        require_trust(config("http://127.0.0.1:1/v1"))


@pytest.mark.parametrize(
    ("said", "host", "expected"),
    [
        ("K@a.org", "a.org", True), ("K@a.org", "a.org:8000", True), ("K@a.org:8000", "a.org:8000", True),
        ("K@a.org:8000", "a.org:9", False), ("K@a.org:8000", "a.org", False), ("L@a.org", "a.org", False),
        ("K@a.org", "evil-a.org", False), ("K@a.org", "a.org.evil", False),
    ],
)  # fmt: skip
def test_a_binding_is_of_one_key_and_one_host(said: str, host: str, expected: bool) -> None:
    key, _, known = said.partition("@")
    assert Binding(key, known).covers(Binding("K", host)) is expected


def test_a_name_before_the_host_fools_nobody() -> None:
    with pytest.raises(ValueError, match="has a user name or a password"):
        config("http://api.openai.com@evil.org:80/v1")


def test_the_environment_can_say_it_and_nonsense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", "A@x.org, B@y.org:1")
    assert trusted_bindings() == [Binding("A", "x.org"), Binding("B", "y.org:1")]
    monkeypatch.setenv("AUDITOR_TRUST", "everybody")
    with pytest.raises(ConfigError, match=r"'everybody' .* is no KEY@HOST"):
        trusted_bindings()


def test_a_base_url_of_the_environment_is_not_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://evil.org")
    monkeypatch.setenv("ANTHROPIC_API_BASE", "http://evil.org")
    bootstrap.prepare()
    assert not [name for name in os.environ if name.endswith(("_BASE_URL", "_API_BASE"))]


def test_where_requests_go_is_said() -> None:
    assert destinations(config("http://h:1/v1", models=2)) == "Requests go to: h:1 (model-a, model-b)."


def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    trust([Binding("K", "h")])
    assert (tmp_path / "home" / "trust.txt").stat().st_mode & 0o077 == 0
    assert trust_file().name == "trust.txt"


async def test_a_server_of_ones_own_without_a_key_is_not_sent_the_providers(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for provider in ("openai", "anthropic", "hosted_vllm", "text-completion-openai"):
        section = ModelSection(name="m", model=f"{provider}/x", api_base=server.url)
        gateway = Gateway([section], Limits(max_attempts=1))
        try:
            await gateway.complete(Call("m", section.model, (Message("user", "hi"),), Purpose.DIRECT))
        finally:
            await gateway.close()
    assert len(server.requests) == 4
    assert KEY not in repr(server.requests)


def signing(model: str, **more: Any) -> AuditConfig:
    return config("http://h:1/v1").model_copy(update={"models": [ModelSection(name="m", model=model, **more)]})


@pytest.mark.parametrize(
    ("model", "said", "line"),
    [
        ("bedrock/anthropic.claude-3-haiku", "this machine's AWS credentials", "AWS_CREDENTIALS@amazonaws.com"),
        ("vertex_ai/gemini-2.5-flash", "this machine's Google credentials", "GOOGLE_CREDENTIALS@googleapis.com"),
    ],
)
def test_credentials_of_the_machine_are_not_used_before_they_are_trusted(
    model: str, said: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = signing(model)
    with pytest.raises(ConfigError, match=said) as refused:
        require_trust(audit)
    assert refused.value.mend is not None
    assert line in refused.value.mend
    with pytest.raises(ConfigError, match=r"at evil\.org, which you have not allowed"):
        require_trust(signing(model, api_base="https://evil.org/v1"))
    monkeypatch.setenv("AUDITOR_TRUST", line)
    require_trust(audit)
    with pytest.raises(ConfigError, match=r"at evil\.org"):
        require_trust(signing(model, api_base="https://evil.org/v1"))


def test_a_provider_that_finds_credentials_past_all_bounds_is_refused() -> None:
    for provider in ("sagemaker", "sagemaker_chat", "github_copilot", "databricks"):
        with pytest.raises(ConfigError, match=f"'{provider}' finds credentials and servers by itself"):
            require_trust(signing(f"{provider}/x"))


@pytest.mark.parametrize(
    "name",
    ["api_base", "base_url", "api_key", "aws_bedrock_runtime_endpoint", "aws_role_name", "vertex_credentials", "client",
     "azure_ad_token", "use_litellm_proxy", "fallbacks", "num_retries", "custom_llm_provider"],
)  # fmt: skip
async def test_a_parameter_cannot_say_who_is_asked_or_as_whom(server: FakeServer, name: str) -> None:
    with FakeServer() as evil:
        section = ModelSection(
            name="m",
            model="openai/x",
            api_base=server.url,
            api_key=f"os.environ/{KEY_VARIABLE}",
            params={name: evil.url},
        )
        with pytest.raises(ConfigError, match=f"the parameter '{name}' is no matter of the model's"):
            Gateway([section], Limits(max_attempts=1))
        assert evil.requests == []


NO_NETWORK = """
import asyncio, os, socket
asked = []
def refuse(host, *rest, **more):
    asked.append(host)
    raise socket.gaierror("no look-ups here")
socket.getaddrinfo = refuse
connect = socket.socket.connect
def watched(self, address):
    asked.append(address)
    raise OSError("no connections here")
socket.socket.connect = watched
from auditor.config import Limits, ModelSection
from auditor.domain import Call, Message, Purpose
from auditor.models.gateway import Gateway
async def main():
    for model in ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "vertex_ai/gemini-2.5-flash"):
        gateway = Gateway([ModelSection(name="m", model=model)], Limits(max_attempts=1))
        try:
            print(await gateway.complete(Call("m", model, (Message("user", "hi"),), Purpose.DIRECT)))
        except Exception as error:
            print(error)
        await gateway.close()
asyncio.run(main())
print("ASKED", asked)
"""


def test_no_address_that_hands_out_credentials_is_asked_for_them(tmp_path: Path) -> None:
    """A machine without a file or variable of credentials, in a cloud that would hand some out."""
    clouds = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/c", "AWS_EC2_METADATA_DISABLED": "false",
        "NO_GCE_CHECK": "false", "HOME": str(tmp_path), "AWS_REGION_NAME": "eu-central-1", "VERTEXAI_LOCATION": "eu",
    }  # fmt: skip
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GOOGLE_", "VERTEX"))}
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK], env=kept | clouds, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ASKED []" in done.stdout, done.stdout
