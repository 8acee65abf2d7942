"""The embedded model server: these tests start it and generate a few hundred tokens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from auditor.errors import ModelSetupError
from auditor.models import embedded_server
from auditor.models.embedded_server import EmbeddedServer, available_cores, start_server, stop_all_servers
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(smollm2: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(smollm2, "smollm2-135m") as running:
        yield running


def ask(server: EmbeddedServer, question: str, **params: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": 16} | params
    headers = {"Authorization": f"Bearer {server.api_key}"}
    response = httpx.post(f"{server.base_url}/chat/completions", json=body, headers=headers, timeout=PATIENCE_S)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


def test_an_answer_has_the_models_name_and_no_path_of_its_weights(server: EmbeddedServer) -> None:
    answer = ask(server, "What is gravity?", temperature=0)
    assert "physics" in answer["choices"][0]["message"]["content"]
    assert answer["model"] == "smollm2-135m"
    assert str(server.weights_path.parent) not in str(answer)


def test_it_listens_on_the_loopback_interface_and_requires_its_key(server: EmbeddedServer) -> None:
    assert server.base_url.startswith("http://127.0.0.1:")
    response = httpx.post(f"{server.base_url}/chat/completions", json={"messages": []}, timeout=PATIENCE_S)
    assert response.status_code == 401


def test_its_key_is_in_no_command_line(server: EmbeddedServer) -> None:
    assert server._process
    assert server.api_key not in str(server._process.args)


def test_an_answer_depends_on_its_own_question_and_seed_only(server: EmbeddedServer) -> None:
    def answer(seed: int) -> tuple[str, Any]:
        question = f"{'Think of the old and of the young. ' * (seed % 3)}Is divorce wrong in country {seed % 2}?"
        response = ask(server, question, seed=seed, temperature=0.8, logprobs=True, top_logprobs=2, max_tokens=10)
        return response["choices"][0]["message"]["content"], response["choices"][0]["logprobs"]

    sequential_answers = [answer(seed) for seed in range(4)]
    order = [3, 1, 7, 0, 2, 6]
    with ThreadPoolExecutor(len(order)) as pool:
        concurrent_answers = dict(zip(order, pool.map(answer, order), strict=True))
    assert [concurrent_answers[seed] for seed in range(4)] == sequential_answers
    assert len({text for text, _ in sequential_answers}) > 1


def test_a_schema_is_obeyed(server: EmbeddedServer) -> None:
    schema = {"type": "object", "properties": {"score": {"enum": [-1, 0, 1]}}, "required": ["score"]}
    response_format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    answer = ask(server, "How good is rain?", response_format=response_format, max_tokens=40)
    text = answer["choices"][0]["message"]["content"]
    assert json.loads(text)["score"] in (-1, 0, 1)


def test_a_process_has_one_server_and_starts_another_when_it_died(smollm2: Path) -> None:
    del smollm2
    first = start_server("embedded/smollm2-135m")
    assert start_server("smollm2-135m") == first
    process = embedded_server._servers["smollm2-135m", 0]._process
    assert process
    process.kill()
    process.wait()
    second = start_server("smollm2-135m")
    assert second != first
    assert httpx.get(f"{second[0]}/models", headers={"Authorization": f"Bearer {second[1]}"}).status_code == 200
    stop_all_servers()
    assert not embedded_server._servers
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{second[0]}/models")


BUSY_PROGRAM = """
import sys, threading, time, httpx
from auditor.models.embedded_server import start_server
url, key = start_server("smollm2-135m")
begun = threading.Semaphore(0)
def ask():
    story = [{"role": "user", "content": "Tell a story."}]
    body = {"messages": story, "max_tokens": 1500, "ignore_eos": True, "stream": True}
    asking = {"json": body, "headers": {"Authorization": "Bearer " + key}, "timeout": 600}
    with httpx.stream("POST", url + "/chat/completions", **asking) as response:
        for number, _ in enumerate(response.iter_lines()):
            if number == 0:
                begun.release()
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
begun.acquire()  # one at least is being answered
print(url, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_the_server_ends_with_its_process_even_while_it_answers(smollm2: Path, end: str) -> None:
    del smollm2
    command = [sys.executable, "-c", BUSY_PROGRAM, "wait" if end == "kill" else "exit"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert program.stdout
    url = program.stdout.readline().decode().strip()
    if end == "kill":
        program.kill()
    assert program.wait(timeout=PATIENCE_S) == (-signal.SIGKILL if end == "kill" else 0)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/models", timeout=5)
        except httpx.ConnectError:
            break
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    else:
        pytest.fail("the server outlived its process")
    program.communicate()


def test_missing_weights_are_an_error_with_the_command_to_fetch_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_CACHE", str(tmp_path))
    with pytest.raises(ModelSetupError, match="auditor models pull smollm2-135m"):
        start_server("embedded/smollm2-135m")


@pytest.mark.parametrize(("name", "words"), [("gpt-5", "can download"), ("all-MiniLM-L6-v2", "sentence encoder")])
def test_a_name_that_is_no_language_model_is_refused(minilm: Path, name: str, words: str) -> None:
    del minilm
    with pytest.raises(ModelSetupError, match=words):
        start_server(f"embedded/{name}")


def test_unreadable_weights_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ModelSetupError, match="the embedded model bad does not start"):
        EmbeddedServer(tmp_path / "bad.gguf", "bad").__enter__()


def test_a_missing_package_is_an_error_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModelSetupError, match=r"xllamacpp.*pip install 'auditor\[embedded\]'"):
        EmbeddedServer(tmp_path / "any.gguf", "any").__enter__()


def test_cores_respect_a_containers_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(embedded_server, "CPU_QUOTA_FILE", tmp_path / "cpu.max")
    for quota, expected in (("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("9900000 100000", 8)):
        (tmp_path / "cpu.max").write_text(quota + "\n")
        assert available_cores() == expected
    os.remove(tmp_path / "cpu.max")
    assert available_cores() == 8
