"""A key, password or other credential is sent only to servers that the user has trusted."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import bootstrap, run_audit
from auditor.cli.doctor_audit import run_doctor_checks
from auditor.config import AuditConfig, LimitsSection, ModelSection, TelemetrySection
from auditor.config.credential_hosts import CredentialBinding
from auditor.config.providers import describe_owner, provider_of
from auditor.config.trust import (
    add_trusted_bindings,
    describe_destinations,
    load_trusted_bindings,
    require_trust,
    required_bindings,
    trust_file_path,
)
from auditor.domain import Call, Message, Purpose
from auditor.errors import ConfigError
from auditor.experiments.judges import planted
from auditor.experiments.stored_audit import ExperimentContext
from auditor.models.gateway import Gateway
from auditor.probes.logic.ranking import RankingOptions, rank_items
from auditor.run import resolve_storage_url
from auditor.storage.engine import remote_servers
from tests.support.audit_configs import FOUR_CELLS, KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor, fail, run
from tests.support.closing import closing
from tests.support.fake_server import FakeServer


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user with an empty home folder, who trusts no server yet."""
    monkeypatch.setattr("auditor.config.trust.trust_file_path", lambda: tmp_path / "home" / "trust.txt")
    monkeypatch.delenv("AUDITOR_TRUST")


def test_a_config_cannot_send_a_key_to_an_untrusted_server(server: FakeServer, storage: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"would send the key {KEY_VARIABLE} to 127\.0\.0\.1:\d+, which you have not"
    ):
        run_audit(config(server.url), storage=storage)
    assert server.requests == []
    assert not Path(storage.removeprefix("sqlite:///")).exists()


def test_ranking_and_experiments_send_no_key_to_an_untrusted_server(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = {"direct": {"samples": 1}, "logic": {}}
    audit = config(server.url, models=3, probes=probes)
    with pytest.raises(ConfigError, match="which you have not allowed"):
        rank_items(audit, RankingOptions(), storage=storage)
    assert server.requests == []
    with monkeypatch.context() as patch:
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        run_audit(config(server.url, models=3, survey=FOUR_CELLS), storage=storage)
    request_count = len(server.requests)
    with pytest.raises(ConfigError, match="which you have not allowed"):
        planted(ExperimentContext(storage), "scripted", 1)
    assert len(server.requests) == request_count


def test_a_trusted_binding_stays_trusted(server: FakeServer) -> None:
    audit = config(server.url)
    [binding] = required_bindings(audit)
    assert add_trusted_bindings([binding]) == [binding]
    assert add_trusted_bindings([binding]) == []
    require_trust(audit)
    with pytest.raises(ConfigError, match="would send"):
        require_trust(config("http://127.0.0.1:1/v1"))


def test_an_old_line_for_a_server_without_encryption_is_not_enough_and_the_new_one_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audit = config("http://models.example.org:8000/v1")
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@models.example.org:8000")
    with pytest.raises(ConfigError, match=r"would send the key .* over https only; http is not encrypted") as refused:
        require_trust(audit)
    line = f"{KEY_VARIABLE}@http://models.example.org:8000"
    assert (refused.value.how_to_fix or "").endswith(line)
    require_trust(config("https://models.example.org:8000/v1"))
    monkeypatch.setenv("AUDITOR_TRUST", line)
    require_trust(audit)


# --- databases and clusters ------------------------------------------------------------------------------------------

ELSEWHERE = "postgresql+psycopg://ada@db.example.org:5433/audits"


@pytest.mark.parametrize(
    ("url", "lines"),
    [
        (ELSEWHERE, ["PGPASSWORD@db.example.org:5433"]),
        ("postgresql+psycopg://ada@DB.example.org/a?sslmode=verify-full", ["PGPASSWORD@db.example.org"]),
        ("postgresql+psycopg://localhost/a?host=evil.org", ["PGPASSWORD@evil.org"]),
        ("postgresql+psycopg://localhost/a?hostaddr=10.0.0.1", ["PGPASSWORD@10.0.0.1"]),
        ("postgresql+psycopg:///a?host=localhost:1&host=evil.org:5", ["PGPASSWORD@evil.org:5"]),
        ("postgresql+psycopg://ada@localhost@evil.org/a", ["PGPASSWORD@evil.org"]),
        ("postgresql+psycopg://[fe80::2]:4/a", ["PGPASSWORD@[fe80::2]:4"]),
        ("postgresql+psycopg://localhost.evil.org/a", ["PGPASSWORD@localhost.evil.org"]),
        ("postgresql+psycopg://localhost/a", []), ("postgresql+psycopg://[::1]/a", []), ("sqlite:///a.db", []),
        ("postgresql+psycopg:///a", []), ("postgresql+psycopg:///a?host=/run/postgresql", []), ("nonsense", []),
    ],
)  # fmt: skip
def test_a_database_server_elsewhere_that_a_config_names_needs_a_line(url: str, lines: list[str]) -> None:
    bindings = required_bindings(config("http://h:1", storage=url), remote_servers(url))
    assert [str(binding) for binding in bindings if binding.key == "PGPASSWORD"] == lines


@pytest.mark.parametrize("more", ["conninfo=host%3Devil.org", "dsn=x", "service=x", "passfile=x", "sslmode=disable"])
def test_a_config_cannot_set_what_leads_to_another_server_or_to_plain_text(more: str) -> None:
    with pytest.raises(ConfigError, match="storage: a configuration may not set"):
        remote_servers(f"{ELSEWHERE}?{more}")


class CountingServer:
    """A local TCP server that tells whether a client connected to it."""

    def __enter__(self) -> CountingServer:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self.port = self._socket.getsockname()[1]
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def was_asked(self) -> bool:
        try:
            self._socket.accept()[0].close()
        except TimeoutError:
            return False
        return True


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingServer]:
    """A database server on the loopback interface that is treated as a remote machine."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'auditor[postgres]'")
    monkeypatch.setattr("auditor.storage.engine.is_loopback", lambda host: False)
    monkeypatch.setenv("PGPASSWORD", "password-of-the-owner")
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@http://127.0.0.1")
    with CountingServer() as listening:
        yield listening


def _run(file: Path, audit: AuditConfig) -> object:
    return run_audit(file)


def _rank(file: Path, audit: AuditConfig) -> object:
    return rank_items(audit, RankingOptions())


def _estimate(file: Path, audit: AuditConfig) -> object:
    """Raise the usage error of `auditor estimate` as ConfigError."""
    estimate_command = auditor("estimate", file)
    raise ConfigError(estimate_command.stderr) if estimate_command.returncode == 2 else AssertionError(estimate_command)


def _doctor(file: Path, audit: AuditConfig) -> object:
    """Raise the failed storage check of `auditor doctor` as ConfigError."""
    [storage_check] = [check for check in run_doctor_checks(file, None) if check.name == "storage"]
    raise ConfigError(storage_check.found, storage_check.mend)


@pytest.mark.parametrize("open_storage", [_run, _rank, _estimate, _doctor])
def test_no_command_opens_a_database_server_that_only_a_config_names(
    server: FakeServer, stranger: CountingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    open_storage: Callable[[Path, AuditConfig], object],
) -> None:  # fmt: skip
    url = f"postgresql+psycopg://ada@127.0.0.1:{stranger.port}/audits?connect_timeout=2"
    audit = config(server.url, probes={"direct": {"samples": 1}, "logic": {}}, storage=url)
    file = tmp_path / "audit.yaml"
    file.write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)))
    with pytest.raises(ConfigError, match=r"would send your database password .* which you have not allowed"):
        open_storage(file, audit)
    assert not stranger.was_asked()
    assert server.requests == []


def test_a_database_that_the_user_names_needs_no_line(
    stranger: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config("http://h:1", storage=ELSEWHERE)
    user_url = f"postgresql+psycopg://ada@127.0.0.1:{stranger.port}/a"
    assert resolve_storage_url(user_url, audit) == user_url
    with monkeypatch.context() as patch:
        patch.setenv("AUDITOR_STORAGE", user_url)
        assert resolve_storage_url(None, audit) == user_url
    with pytest.raises(ConfigError, match=r"to db\.example\.org:5433"):
        resolve_storage_url(None, audit)
    add_trusted_bindings(required_bindings(audit, remote_servers(ELSEWHERE)))
    assert resolve_storage_url(None, audit) == ELSEWHERE


def test_a_cluster_that_only_a_config_names_needs_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = config("http://127.0.0.1:1/v1").with_run(engine="ray", ray_address="head.example.org:6379")
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
    with pytest.raises(ConfigError, match=r"would send the audit's work to head\.example\.org:6379") as refused:
        require_trust(audit)
    assert "RAY_ADDRESS@head.example.org:6379" in (refused.value.how_to_fix or "")
    require_trust(audit.with_run(engine="local"))
    with monkeypatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "head.example.org:6379")
        require_trust(audit)
    add_trusted_bindings(required_bindings(audit))
    require_trust(audit)


def test_doctor_does_not_connect_to_an_untrusted_cluster(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
    with CountingServer() as stranger:
        audit = config(server.url).with_run(engine="ray", ray_address=f"127.0.0.1:{stranger.port}")
        file = tmp_path / "audit.yaml"
        file.write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)))
        checks = {check.name: check for check in run_doctor_checks(file, f"sqlite:///{tmp_path}/a.db")}
        assert checks["keys and hosts"].state == "FAIL"
        assert not stranger.was_asked()


def test_the_command_writes_every_line_that_a_config_needs(tmp_path: Path) -> None:
    audit = config("http://models.example.org/v1", storage=ELSEWHERE)
    audit = audit.with_run(engine="ray", ray_address="head.example.org:6379")
    (tmp_path / "audit.yaml").write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)))
    lines = [
        f"{KEY_VARIABLE}@http://models.example.org",
        "RAY_ADDRESS@head.example.org:6379",
        "PGPASSWORD@db.example.org:5433",
    ]
    fail("trust", tmp_path / "audit.yaml", code=2, message="Add --yes")
    assert not (tmp_path / "home" / "trust.txt").exists()
    trust_command = auditor("trust", tmp_path / "audit.yaml", "--yes")
    assert [f"Allowed: {line}" for line in lines] == trust_command.stderr.splitlines()[3:6]
    assert (tmp_path / "home" / "trust.txt").read_text().splitlines() == lines
    assert "Nothing new to allow." in auditor("trust", tmp_path / "audit.yaml").stderr
    require_trust(audit)


LOOK_ALIKES = {
    "https://\u0430pi.openai.com/v1": ("xn--pi-6kc.openai.com", "NOT a server of OpenAI",
     "written as \u0430pi.openai.com"),
    "https://api.openai.com.evil-example.org/v1": ("api.openai.com.evil-example.org", "NOT a server of OpenAI", ""),
    "https://api.openai.com/v1": ("api.openai.com", "a server of OpenAI", ""),
    "https://eu.api.openai.com:443/v1": ("eu.api.openai.com:443", "a server of OpenAI", ""),
    "https://evil-api.openai.com/v1": ("evil-api.openai.com", "NOT a server of OpenAI", ""),
    "https://\uff41pi.openai.com/v1": ("api.openai.com", "a server of OpenAI", "written as \uff41pi.openai.com"),
    "https://router.huggingface.co/v1": ("router.huggingface.co", "a server of Hugging Face endpoints", ""),
    "http://10.0.0.5:8000/v1": ("10.0.0.5:8000", "this machine or your network, not encrypted (http)", ""),
}  # fmt: skip
"""What `auditor trust` shows of a host: its name in punycode, whose it is, and how the file writes it."""


@pytest.mark.parametrize(
    ("provider", "host", "owner"),
    [
        ("bedrock", "bedrock-runtime.us-east-1.amazonaws.com", "a server of Amazon Bedrock"),
        ("bedrock", "vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", "a server of Amazon Bedrock"),
        ("bedrock", "bedrock-runtime.cn-north-1.amazonaws.com.cn", "a server of Amazon Bedrock"),
        ("bedrock", "ec2-192-0-2-1.compute-1.amazonaws.com", "NOT a server of Amazon Bedrock"),
        ("bedrock", "a1b2.execute-api.us-east-1.amazonaws.com", "NOT a server of Amazon Bedrock"),
        ("bedrock", "bedrock-runtime.s3.us-east-1.amazonaws.com", "NOT a server of Amazon Bedrock"),
        ("vertex_ai", "europe-west4-aiplatform.googleapis.com", "a server of Google Vertex AI"),
        ("vertex_ai", "aiplatform.eu.rep.googleapis.com", "a server of Google Vertex AI"),
        ("vertex_ai", "storage.googleapis.com", "NOT a server of Google Vertex AI"),
        ("openai", "134744072", "NOT a server of OpenAI"),
        ("openai", "0x08080808:80", "NOT a server of OpenAI"),
        ("openai", "[::ffff:8.8.8.8]:80", "NOT a server of OpenAI"),
        ("openai", "0x7f000001:80", "this machine or your network"),
        ("openai", "[::ffff:10.0.0.5]:80", "this machine or your network"),
    ],
)
def test_servers_of_other_customers_of_a_cloud_are_not_the_providers(provider: str, host: str, owner: str) -> None:
    assert describe_owner(host, provider_of(provider)) == owner


@pytest.mark.parametrize("url", LOOK_ALIKES)
def test_the_command_shows_whose_server_gets_a_key_and_asks(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, owner, written = LOOK_ALIKES[url]
    file = tmp_path / "audit.yaml"
    file.write_text(json.dumps(config(url).model_dump(mode="json", exclude_none=True)))
    refused = auditor("trust", file)
    assert refused.returncode == 2
    line = refused.stderr.splitlines()[0]
    assert line.startswith(f"Would be sent: {KEY_VARIABLE} to {host}")
    assert line.endswith(f": {owner}")
    assert (written or "written as") in line or not written
    with pytest.raises(ConfigError, match=f"to .*{host}"):
        require_trust(config(url))
    monkeypatch.setattr("auditor.cli.trust.can_ask", lambda: True)
    assert run(["trust", str(file)], "n\n").returncode == 1
    assert not (tmp_path / "home" / "trust.txt").exists()
    assert run(["trust", str(file)], "y\n").returncode == 0
    require_trust(config(url))


def test_trust_in_a_provider_is_no_trust_in_a_name_that_looks_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@api.openai.com")
    with pytest.raises(ConfigError, match=r"to xn--pi-6kc\.openai\.com, which you have not allowed"):
        require_trust(config("https://\u0430pi.openai.com/v1"))
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@b\u00fccher.example")
    require_trust(config("https://xn--bcher-kva.example/v1"))


def test_texts_for_a_collector_that_only_the_config_names_need_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra 'telemetry' is not installed")
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@h")
    base = config("https://h/v1")
    telemetry = {"endpoint": "https://collect.example.org", "texts": True}
    audit = base.model_copy(update={"telemetry": TelemetrySection.model_validate(telemetry)})
    with pytest.raises(
        ConfigError, match=r"send the audit's questions and answers to collect\.example\.org"
    ) as refused:
        require_trust(audit)
    assert (refused.value.how_to_fix or "").endswith("TELEMETRY_TEXTS@collect.example.org")
    with monkeypatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collect.example.org")
        require_trust(audit)
    without_texts = TelemetrySection.model_validate({"endpoint": "https://collect.example.org"})
    require_trust(base.model_copy(update={"telemetry": without_texts}))
    add_trusted_bindings(required_bindings(audit))
    require_trust(audit)


def test_a_user_name_in_a_base_url_is_refused() -> None:
    with pytest.raises(ValueError, match="contains a user name or a password"):
        config("http://api.openai.com@evil.org:80/v1")


def test_bindings_are_read_from_the_environment_and_invalid_ones_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", "A@x.org, B@y.org:1")
    assert load_trusted_bindings() == [CredentialBinding("A", "x.org"), CredentialBinding("B", "y.org:1")]
    monkeypatch.setenv("AUDITOR_TRUST", "everybody")
    with pytest.raises(ConfigError, match=r"'everybody' .* is not of the form KEY@HOST"):
        load_trusted_bindings()


def test_base_urls_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://evil.org")
    monkeypatch.setenv("ANTHROPIC_API_BASE", "http://evil.org")
    bootstrap.prepare_environment()
    assert not [name for name in os.environ if name.endswith(("_BASE_URL", "_API_BASE"))]


def test_destinations_are_described_by_host_and_model() -> None:
    assert describe_destinations(config("http://h:1/v1", models=2)) == "Requests go to: h:1 (model-a, model-b)."


def test_no_destination_is_described_for_simulated_and_recorded_models() -> None:
    simulated = ModelSection(name="a", model="simulated/knows-every-culture")
    recorded = ModelSection(name="b", model="replay/b", answers="b.csv")
    for models, kinds in (([simulated], "simulated"), ([simulated, recorded], "simulated or recorded")):
        audit = config("http://h:1/v1").model_copy(update={"models": models, "judges": []})
        assert describe_destinations(audit) == f"All models are {kinds}: no request leaves this process."


def test_a_last_line_without_its_end_is_not_joined_to_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "home" / "trust.txt"
    file.parent.mkdir()
    file.write_text("OLD_KEY@api.example.org", encoding="utf-8")
    add_trusted_bindings([CredentialBinding("KEY", "other.example.org")])
    assert load_trusted_bindings() == [
        CredentialBinding("OLD_KEY", "api.example.org"),
        CredentialBinding("KEY", "other.example.org"),
    ]


def test_the_trust_file_is_private_to_its_user(tmp_path: Path) -> None:
    add_trusted_bindings([CredentialBinding("K", "h")])
    assert (tmp_path / "home" / "trust.txt").stat().st_mode & 0o077 == 0
    assert trust_file_path().name == "trust.txt"


async def test_a_custom_server_without_a_key_is_not_sent_the_providers_key(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for provider in ("openai", "anthropic", "hosted_vllm", "text-completion-openai"):
        section = ModelSection(name="m", model=f"{provider}/x", api_base=server.url)
        async with closing(Gateway([section], LimitsSection(max_attempts=1))) as gateway:
            await gateway.complete(Call("m", section.model, (Message("user", "hi"),), Purpose.DIRECT))
    assert len(server.requests) == 4
    assert KEY not in repr(server.requests)


def signing(model: str, **more: Any) -> AuditConfig:
    """A config of one model whose provider signs requests with credentials of the machine."""
    return config("http://h:1/v1").model_copy(update={"models": [ModelSection(name="m", model=model, **more)]})


@pytest.mark.parametrize(
    ("model", "message", "line"),
    [
        ("bedrock/anthropic.claude-3-haiku", "this machine's AWS credentials", "AWS_CREDENTIALS@amazonaws.com"),
        ("vertex_ai/gemini-2.5-flash", "this machine's Google credentials", "GOOGLE_CREDENTIALS@googleapis.com"),
    ],
)
def test_credentials_of_the_machine_are_not_used_before_they_are_trusted(
    model: str, message: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = signing(model)
    with pytest.raises(ConfigError, match=message) as refused:
        require_trust(audit)
    assert refused.value.how_to_fix is not None
    assert line in refused.value.how_to_fix
    with pytest.raises(ConfigError, match=r"at evil\.org, which you have not allowed"):
        require_trust(signing(model, api_base="https://evil.org/v1"))
    monkeypatch.setenv("AUDITOR_TRUST", line)
    require_trust(audit)
    with pytest.raises(ConfigError, match=r"at evil\.org"):
        require_trust(signing(model, api_base="https://evil.org/v1"))


def test_a_provider_that_finds_credentials_by_itself_is_refused() -> None:
    for provider in ("sagemaker", "sagemaker_chat", "github_copilot", "databricks"):
        with pytest.raises(ConfigError, match=f"'{provider}' looks up credentials and servers itself"):
            require_trust(signing(f"{provider}/x"))


@pytest.mark.parametrize(
    "name",
    ["api_base", "base_url", "api_key", "aws_bedrock_runtime_endpoint", "aws_role_name", "vertex_credentials", "client",
     "azure_ad_token", "use_litellm_proxy", "fallbacks", "num_retries", "custom_llm_provider"],
)  # fmt: skip
async def test_a_parameter_cannot_change_the_server_or_the_credentials(server: FakeServer, name: str) -> None:
    with FakeServer() as foreign_server:
        section = ModelSection(
            name="m", model="openai/x", api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}",
            params={name: foreign_server.url},
        )  # fmt: skip
        with pytest.raises(ConfigError, match=f"the parameter '{name}' is not allowed in params"):
            Gateway([section], LimitsSection(max_attempts=1))
        assert foreign_server.requests == []


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
from auditor.config import LimitsSection, ModelSection
from auditor.domain import Call, Message, Purpose
from auditor.models.gateway import Gateway
from auditor.run import resolve_storage_url
from auditor.storage.engine import remote_servers
async def main():
    for model in ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "vertex_ai/gemini-2.5-flash"):
        gateway = Gateway([ModelSection(name="m", model=model)], LimitsSection(max_attempts=1))
        try:
            print(await gateway.complete(Call("m", model, (Message("user", "hi"),), Purpose.DIRECT)))
        except Exception as error:
            print(error)
        await gateway.close()
asyncio.run(main())
print("ASKED", asked)
"""


def test_no_metadata_service_is_asked_for_credentials(tmp_path: Path) -> None:
    """On a cloud machine without credentials in files or variables, no metadata service is asked for any."""
    cloud_settings = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/c", "AWS_EC2_METADATA_DISABLED": "false",
        "NO_GCE_CHECK": "false", "HOME": str(tmp_path), "AWS_REGION_NAME": "eu-central-1", "VERTEXAI_LOCATION": "eu",
    }  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GOOGLE_", "VERTEX"))}
    process = subprocess.run(
        [sys.executable, "-c", NO_NETWORK], env=environment | cloud_settings, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "ASKED []" in process.stdout, process.stdout


@pytest.mark.parametrize(("provider", "api_key"), [("azure", None), ("azure_ai", None), ("azure", "os.environ/MY_KEY")])
def test_a_model_of_azure_without_a_key_sends_tokens_of_this_machines_credentials(
    provider: str, api_key: str | None
) -> None:
    section = {"name": "m", "model": f"{provider}/x", "api_base": "https://mine.openai.azure.com", "api_key": api_key}
    audit = AuditConfig.model_validate(
        {"name": "a", "survey": {"source": "wvs7-sample"}, "models": [section], "judges": [], "probes": {"direct": {}}}
    )
    key = "AZURE_CREDENTIALS" if api_key is None else "MY_KEY"
    assert [str(binding) for binding in required_bindings(audit)] == [f"{key}@mine.openai.azure.com"]


TRUSTED_NETWORK = (
    NO_NETWORK.split("from auditor.config")[0]
    + """
import sys
from auditor import run_audit
from auditor.config import AuditConfig
from auditor.errors import AuditorError
audit = AuditConfig.model_validate_json(sys.argv[1])
for line in sys.argv[3:]:
    os.environ["AUDITOR_TRUST"] = line
    try:
        run_audit(audit, storage=sys.argv[2])
    except AuditorError as error:
        print(error)
    hosts = sorted({str(a[0] if isinstance(a, tuple) else a) for a in asked})
    print("ASKED", hosts, os.environ["AWS_EC2_METADATA_DISABLED"])
"""
)


def test_a_clouds_library_may_fetch_credentials_of_the_machine_once_they_are_trusted(tmp_path: Path) -> None:
    """Its own request to the metadata service is exempt; without trust, nothing is asked."""
    audit = signing("bedrock/anthropic.claude-3-haiku-20240307-v1:0").model_copy(update={"judges": []})
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GOOGLE_", "VERTEX"))}
    environment |= {"HOME": str(tmp_path), "AWS_REGION_NAME": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "false"}
    lines = ("", "AWS_CREDENTIALS@amazonaws.com")
    process = subprocess.run(
        [sys.executable, "-c", TRUSTED_NETWORK, audit.model_dump_json(), f"sqlite:///{tmp_path}/a.db", *lines],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    asked = [line for line in process.stdout.splitlines() if line.startswith("ASKED")]
    assert asked == ["ASKED [] false", "ASKED ['169.254.169.254'] false"], process.stdout
