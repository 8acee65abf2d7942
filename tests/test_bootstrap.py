from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from auditor import bootstrap, run_audit
from auditor.errors import AuditorError
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer
from tests.support.patience import PATIENCE_S

CONTRARY_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "False", "LITELLM_MODE": "DEV", "LANGSMITH_TRACING": "true",
    "LANGCHAIN_TRACING_V2": "true", "HF_HUB_DISABLE_TELEMETRY": "0",
}  # fmt: skip
"""Variables that a user's shell may set; each would allow network access or unsafe loading."""
NO_LOOKUPS_PREAMBLE = """
import socket
asked = []
def refuse(*args, **kwargs):
    asked.append(args[0])
    raise socket.gaierror("no look-ups here")
socket.getaddrinfo = refuse
from auditor import bootstrap
bootstrap.prepare_environment()
bootstrap.prepare_environment()
bootstrap.silence_libraries()
"""
CHECKS = {
    "litellm looks no prices up": """
import litellm, time
time.sleep(0.5)
assert litellm.model_cost
assert not asked, asked
""",
    "litellm reads no .env file": """
import litellm, os
assert "FROM_DOTENV" not in os.environ
""",
    "litellm's debug messages are off": """
import litellm, logging
assert not logging.getLogger("LiteLLM").isEnabledFor(logging.WARNING)
""",
    "nothing is traced": """
from langsmith.utils import tracing_is_enabled
assert not tracing_is_enabled()
""",
    "the hub hears nothing of us": """
from huggingface_hub import constants
assert constants.HF_HUB_DISABLE_TELEMETRY
assert constants.HF_HUB_DISABLE_PROGRESS_BARS
""",
}


def _check_program(checks: dict[str, str]) -> str:
    """A program that runs every check and prints the tracebacks of those that fail, as JSON by name."""
    return f"""
import json, traceback
wrong = {{}}
for name, check in json.loads({json.dumps(checks)!r}).items():
    try:
        exec(check)
    except Exception:
        wrong[name] = traceback.format_exc()
print(json.dumps(wrong))
"""


FAILING = {"one that fails": "assert not litellm.model_cost"}


@pytest.fixture(scope="module")
def failed_checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tracebacks, by name, of the checks that fail in a process with a contrary environment and `.env` file."""
    folder = tmp_path_factory.mktemp("contrary")
    (folder / ".env").write_text("FROM_DOTENV=1\n")
    command = [sys.executable, "-c", NO_LOOKUPS_PREAMBLE + _check_program(CHECKS | FAILING)]
    completed = subprocess.run(
        command, env=os.environ | CONTRARY_ENVIRONMENT, cwd=folder, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    failures: dict[str, str] = json.loads(completed.stdout.splitlines()[-1])
    return failures


@pytest.mark.parametrize("name", CHECKS)
def test_each_network_access_is_off_whatever_the_environment(failed_checks: dict[str, str], name: str) -> None:
    assert name not in failed_checks, failed_checks[name]


def test_a_failing_check_is_detected(failed_checks: dict[str, str]) -> None:
    assert "AssertionError" in failed_checks["one that fails"]


def test_litellm_alone_makes_lookups_and_reads_env_files(tmp_path: os.PathLike[str]) -> None:
    """Shows that the checks can fail: with litellm's own settings it makes look-ups and reads `.env`."""
    with open(os.path.join(tmp_path, ".env"), "w") as file:
        file.write("FROM_DOTENV=1\n")
    opened = NO_LOOKUPS_PREAMBLE.split("from auditor")[0]
    code = opened + "import litellm, os\nassert asked\nassert os.environ['FROM_DOTENV'] == '1'\n"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr


def test_bootstrap_loads_no_heavy_library() -> None:
    code = (
        "import sys; from auditor import bootstrap; bootstrap.prepare_environment(); bootstrap.silence_libraries();"
        "heavy = {'litellm', 'langgraph', 'torch', 'transformers', 'huggingface_hub'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_a_survey_needs_no_numpy() -> None:
    code = (
        'import sys; from auditor.surveys import load_survey; load_survey("wvs7-sample"); print("numpy" in sys.modules)'
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert completed.stdout.strip() == "False"


@pytest.fixture
def thresholds() -> Iterator[tuple[int, int, int]]:
    default_thresholds = gc.get_threshold()
    yield default_thresholds
    gc.set_threshold(*default_thresholds)


def test_garbage_collection_is_infrequent_only_while_requests_are_sent(thresholds: tuple[int, int, int]) -> None:
    def send() -> None:
        with bootstrap.infrequent_garbage_collection():
            assert gc.get_threshold() == bootstrap.GC_THRESHOLDS
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        send()
    assert gc.get_threshold() == thresholds


def test_imported_modules_are_excluded_from_garbage_collection() -> None:
    n_frozen = gc.get_freeze_count()
    bootstrap.freeze_imported_modules.__wrapped__()
    assert gc.get_freeze_count() > n_frozen


# --- the environment of a Python program ----------------------------------------------------------------------------

CALLERS_VARIABLES = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "LITELLM_MODE": "DEV", "HF_HUB_DISABLE_TELEMETRY": "0"}
"""Variables of a program that `run_audit` changes while it runs."""


def test_run_audit_leaves_the_environment_as_it_was(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CALLERS_VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    before, during = dict(os.environ), []

    def record_environment(request: Request) -> Reply:
        during.append({name: os.environ.get(name) for name in CALLERS_VARIABLES})
        return answer(request)

    server.script = record_environment
    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"]}
    run_audit(config(server.url, survey=survey), storage=storage)
    assert dict(os.environ) == before
    assert during[0] == {"OPENAI_BASE_URL": None, "LITELLM_MODE": "PRODUCTION", "HF_HUB_DISABLE_TELEMETRY": "1"}
    with pytest.raises(AuditorError):
        run_audit(config(server.url, survey={"source": "no-such-survey"}), storage=storage)
    assert dict(os.environ) == before
    # A second run in the same process is not redirected either.
    n_requests = len(server.requests)
    run_audit(config(server.url, survey=survey, name="second", seed=99), storage=storage)
    assert (len(server.requests) > n_requests, during[-1]["OPENAI_BASE_URL"]) == (True, None)


def test_the_environment_is_restored_when_the_last_of_two_calls_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    before = dict(os.environ)
    first, second = bootstrap.prepared_environment(), bootstrap.prepared_environment()
    with first:
        second.__enter__()
    assert "OPENAI_BASE_URL" not in os.environ
    second.__exit__(None, None, None)
    assert dict(os.environ) == before
