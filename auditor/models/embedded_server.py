"""Embedded language models: llama.cpp servers on this machine with an OpenAI-compatible endpoint.

The server comes from the package xllamacpp. Each one runs in a separate process, listens on the loopback interface with
a random API key, and ends with this process. A model's servers start at its first use, and are shared in this process.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from auditor.domain.terms import split_model_id
from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.models.connections import bypass_proxies
from auditor.redaction import register_secrets

SLOTS = 8
"""Requests processed at the same time, by all servers of a model together."""
CONTEXT_TOKENS = 2048
"""Context size for one request and its answer, in tokens."""
STOP_TIMEOUT_S = 5.0
CPU_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


class EmbeddedServer:
    """An OpenAI-compatible server for one weights file; a context manager that starts and stops it.

    Attributes:
        weights_path: the model's `.gguf` file.
        name: the model's name in requests.
        slots: requests processed at the same time.
        context_tokens: context size of each slot.
        base_url: address of the API, ending in `/v1`; empty until started.
        api_key: the only key that the server accepts.
    """

    def __init__(
        self, weights_path: Path, name: str, *, slots: int = SLOTS, context_tokens: int = CONTEXT_TOKENS
    ) -> None:
        """Store the settings; the server starts when the context is entered."""
        self.weights_path = weights_path
        self.name = name
        self.slots = slots
        self.context_tokens = context_tokens
        self.api_key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server's process is alive."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        """Start the server's process and wait until its model is loaded.

        Raises:
            ModelSetupError: xllamacpp is not installed, or the model cannot be loaded.
        """
        require_xllamacpp()
        # A session of its own, so that Ctrl-C reaches only this process, which waits for the requests in flight.
        script = str(Path(__file__).with_name("llama_server_process.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        startup_message = self._load_model(self._process)
        if "url" not in startup_message:
            self.__exit__(None, None, None)
            raise ModelSetupError(
                f"the embedded model {self.name} does not start: {startup_message['error']}.",
                f"Check its weights ({self.weights_path}) with `auditor doctor`.",
            )
        self.base_url = f"{startup_message['url']}/v1"
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, exc_traceback: TracebackType | None
    ) -> None:
        """Stop the server's process, by force if it does not exit within `STOP_TIMEOUT_S` seconds."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)  # closes its standard input, which makes it exit
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
            process.wait()

    def _load_model(self, process: subprocess.Popen[str]) -> dict[str, str]:
        """Send the settings to the server's process and read its reply: a dict with the key `url`, or `error`."""
        settings = {
            "path": str(self.weights_path),
            "name": self.name,
            "api_key": self.api_key,
            "slots": self.slots,
            "context_tokens": self.context_tokens,
            # Several threads wait for each other at every step, and are slow when other programs use the cores too.
            "threads": 1,
        }
        assert process.stdin
        assert process.stdout
        try:
            print(json.dumps(settings), file=process.stdin, flush=True)
            startup_message: dict[str, str] = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            return {"error": "its process exited immediately"}
        return startup_message


def require_xllamacpp() -> None:
    """Raise ModelSetupError if xllamacpp, which runs embedded models, is not installed."""
    if not importlib.util.find_spec("xllamacpp"):
        raise ModelSetupError("embedded models need the package xllamacpp.", "Run `pip install 'auditor[embedded]'`.")


def available_cores() -> int:
    """Number of CPU cores that this process may use, by its affinity and its cgroup's quota; at least 1."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        # The file holds two numbers: the CPU time allowed per period, and the period, both in microseconds. The quota
        # can also be "max", which raises ValueError below and means that there is none.
        quota, period = CPU_QUOTA_FILE.read_text().split()
        return max(1, min(n_cores, int(quota) // int(period)))
    except (OSError, ValueError):
        return n_cores


# --- one server a process and model -------------------------------------------------------------------------------

# Keys: the model's name, and the index of the server among the model's servers.
_servers: dict[tuple[str, int], EmbeddedServer] = {}
_servers_lock = threading.Lock()


def start_server_replicas(model: str) -> tuple[tuple[str, str], ...]:
    """Start an embedded model's servers, one per core and at most `SLOTS`, and return (base URL, API key) of each.

    Raises:
        ModelSetupError: see `start_server`.
    """
    return tuple(start_server(model, replica) for replica in range(min(available_cores(), SLOTS)))


def start_server(model: str, replica: int = 0) -> tuple[str, str]:
    """Return (base URL, API key) of an embedded model's server, which is started if it is not running.

    Args:
        model: `embedded/smollm2-135m`, or the same without the prefix.
        replica: index of the server among the model's servers, from 0.

    Raises:
        ModelSetupError: no such model, its weights are not on this machine, or xllamacpp is not installed.
    """
    _, name = split_model_id(model)
    with _servers_lock:
        if (name, replica) not in _servers or not _servers[name, replica].is_running:
            path = weights.locate_weights(name)
            if path.is_dir():
                raise ModelSetupError(
                    f"{name} is a sentence encoder, not a language model.", "See `auditor models list`."
                )
            # `SLOTS` divided by the number of servers, rounded up.
            slots_per_server = -(-SLOTS // min(available_cores(), SLOTS))
            _servers[name, replica] = EmbeddedServer(path, name, slots=slots_per_server).__enter__()
        server = _servers[name, replica]
    register_secrets(server.api_key)
    bypass_proxies(server.base_url)
    return server.base_url, server.api_key


def stop_all_servers() -> None:
    """Stop all servers of this process; registered to run at exit."""
    with _servers_lock:
        while _servers:
            # The popped item is (key, server).
            _servers.popitem()[1].__exit__(None, None, None)


atexit.register(stop_all_servers)
