"""Real servers of language models on the loopback interface, with the small model that tests have."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.models import llama_server_process
from tests.support.patience import PATIENCE_S


@contextmanager
def llama_cpp_server(weights: Path, key: str) -> Iterator[str]:
    """The server of llama.cpp with the model `smollm2`, behind a key; yields its base URL for OpenAI's protocol."""
    settings = {"path": str(weights), "name": "smollm2", "api_key": key, "slots": 2, "context_tokens": 4096}
    process = subprocess.Popen(
        [sys.executable, llama_server_process.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings | {"threads": 1}) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())["url"] + "/v1"
    finally:
        process.communicate()


@contextmanager
def transformers_server(weights: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """`transformers serve` with the model in a GGUF file; yields its base URL and the model's name there."""
    save_transformers_model(weights, folder)
    port = free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder), "--host", "127.0.0.1"]
    with _running([*command, "--port", str(port), "--device", "cpu"], f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}/v1", str(folder)


@contextmanager
def litellm_proxy(program: Path, models: dict[str, dict[str, Any]], key: str, folder: Path) -> Iterator[str]:
    """A litellm proxy in front of other servers; yields its base URL.

    Args:
        program: the proxy's executable.
        models: litellm's parameters of each model, by the name under which the proxy offers it.
        key: the proxy's own key.
        folder: where its configuration is written.
    """
    model_list = [{"model_name": name, "litellm_params": params} for name, params in models.items()]
    path = folder / "proxy.json"  # JSON is YAML
    path.write_text(json.dumps({"model_list": model_list, "general_settings": {"master_key": key}}))
    port = free_port()
    command = [str(program), "--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
    with _running(command, f"http://127.0.0.1:{port}/health/liveliness"):
        yield f"http://127.0.0.1:{port}/v1"


def save_transformers_model(weights: Path, folder: Path) -> None:
    """Save a GGUF file's model and tokenizer in a folder as transformers does, with 32-bit weights."""
    import torch
    import transformers

    library: Any = transformers
    gguf = {"gguf_file": weights.name}
    quantized = library.AutoModelForCausalLM.from_pretrained(weights.parent, dtype=torch.float32, **gguf)
    config = quantized.config
    del config.quantization_config  # refused by `save_pretrained`; the weights are unpacked already
    model = library.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantized.state_dict(), strict=False)
    model.tie_weights()
    model.save_pretrained(folder)
    library.AutoTokenizer.from_pretrained(weights.parent, **gguf).save_pretrained(folder)


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def _running(command: Sequence[str], health_url: str) -> Iterator[None]:
    """Run a server from when it answers until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(health_url):
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer at {health_url}"
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False
