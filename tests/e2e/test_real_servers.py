"""Audits of two models as peers run to their end against real servers: llama.cpp, transformers, a litellm proxy.

The model is far too small to answer well. What is tested is that requests, answers and errors of real servers are
understood. `make servers` runs all of it; without AUDITOR_REAL_SERVERS only llama.cpp's is asked, about one cell.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from auditor.models import weights
from tests.support.cli_runner import auditor, succeed
from tests.support.real_servers import litellm_proxy, llama_cpp_server, transformers_server

KEY = "sk-real-servers-0123456789"
KEY_VARIABLE = "REAL_SERVERS_KEY"
ALL_SERVERS = bool(os.environ.get("AUDITOR_REAL_SERVERS"))
COUNTRIES, TOPICS = (["Germany", "Nigeria"], ["divorce", "euthanasia"]) if ALL_SERVERS else (["Nigeria"], ["divorce"])
N_DIRECT_SAMPLES = 2 * len(COUNTRIES) * len(TOPICS)
"""Models × countries × topics."""
PROXY_PROGRAM = Path(os.environ.get("AUDITOR_LITELLM_PROXY", ".venv-servers/bin/litellm")).absolute()
needs_all_servers = pytest.mark.skipif(not ALL_SERVERS, reason="takes minutes: run `make servers`")


@pytest.fixture(scope="module")
def smollm2() -> Path:
    """The weights of the embedded model, fetched if missing."""
    return weights.pull_weights("smollm2-135m")


def write_config(folder: Path, models: list[tuple[str, str, bool]]) -> Path:
    """An audit of `COUNTRIES` and `TOPICS`; each model is litellm's id, base URL, and whether it needs the key."""
    tables = [
        f'[[models]]\nname = "model-{number}"\nmodel = "{model}"\napi_base = "{url}"\ntemperature = {temperature}\n'
        + (f'api_key = "os.environ/{KEY_VARIABLE}"\n' if needs_key else "")
        for number, ((model, url, needs_key), temperature) in enumerate(zip(models, (0.5, 1.0), strict=True))
    ]
    path = folder / "audit.toml"
    path.write_text(
        'name = "real"\njudges = "peers"\nembedding = { model = "none" }\n'
        f'survey = {{ source = "wvs7-sample", countries = {json.dumps(COUNTRIES)}, topics = {json.dumps(TOPICS)} }}\n'
        "limits = { max_attempts = 2 }\n" + "".join(tables) + "[probes]\nreview = { max_words = 8, max_tokens = 100 }\n"
        "direct = { samples = 1, max_words = 8, max_tokens = 100, repair = false }\n"
    )
    return path


def run_to_the_end(folder: Path, config: Path) -> Counter[str]:
    """Trust the config's servers, and run the audit; returns how many answers have each outcome and form."""
    env = {KEY_VARIABLE: KEY, "XDG_CONFIG_HOME": str(folder), "AUDITOR_STORAGE": f"sqlite:///{folder}/real.db"}
    succeed("trust", config, "--yes", cwd=folder, **env)
    completed = auditor("run", config, cwd=folder, **env)
    assert completed.returncode in (0, 4), completed.stderr
    report = json.loads(auditor("report", "real", "--format", "json", cwd=folder, **env).stdout)
    samples = next(row for row in report["coverage"]["total"] if row["stage"] == "direct")
    assert samples["planned"] == samples["ok"] + sum(samples["losses"].values()) == N_DIRECT_SAMPLES
    verified = auditor("verify", "real", cwd=folder, **env)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with closing(sqlite3.connect(folder / "real.db")) as connection:
        rows = connection.execute("SELECT purpose, outcome, form FROM answer").fetchall()
    assert {form for _, _, form in rows} <= {"json_schema", "json_object", "tool", "text"}
    return Counter(f"{outcome} by {form}" for purpose, outcome, form in rows if purpose == "direct")


def test_an_audit_ends_against_the_server_of_llama_cpp(smollm2: Path, tmp_path: Path) -> None:
    with llama_cpp_server(smollm2, KEY) as url:
        answers = run_to_the_end(tmp_path, write_config(tmp_path, [("openai/smollm2", url, True)] * 2))
    # Its grammar makes even this model write what the schema says.
    assert answers["ok by json_schema"] > 0
    assert all(key.endswith("by json_schema") for key in answers)


@needs_all_servers
def test_an_audit_ends_against_transformers_serve(smollm2: Path, tmp_path: Path) -> None:
    with transformers_server(smollm2, tmp_path / "model") as (url, name):
        answers = run_to_the_end(tmp_path, write_config(tmp_path, [(f"openai/{name}", url, False)] * 2))
    # It ignores the schema; a model this small keeps the richest form, since it reads no better in any other.
    assert sum(answers.values()) > 0


@needs_all_servers
@pytest.mark.skipif(not PROXY_PROGRAM.exists(), reason=f"{PROXY_PROGRAM} is not installed")
def test_an_audit_ends_against_a_litellm_proxy(smollm2: Path, tmp_path: Path) -> None:
    with llama_cpp_server(smollm2, KEY) as upstream:
        params = {"model": "openai/smollm2", "api_base": upstream, "api_key": KEY}
        with litellm_proxy(PROXY_PROGRAM, {"small": params}, KEY, tmp_path) as url:
            config = write_config(tmp_path, [("litellm_proxy/small", url, True), ("openai/small", url, True)])
            answers = run_to_the_end(tmp_path, config)
    assert answers["ok by json_schema"] > 0


@pytest.mark.skipif(not os.environ.get("AUDITOR_SERVER_URL"), reason="AUDITOR_SERVER_URL names no server")
def test_an_audit_ends_against_the_server_named_by_the_environment(tmp_path: Path) -> None:
    """For servers that are too large to install for a test, such as vLLM or SGLang."""
    url, name = os.environ["AUDITOR_SERVER_URL"], os.environ["AUDITOR_SERVER_MODEL"]
    answers = run_to_the_end(tmp_path, write_config(tmp_path, [(f"hosted_vllm/{name}", url, False)] * 2))
    assert sum(answers.values()) > 0
