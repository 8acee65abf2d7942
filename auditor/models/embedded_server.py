"""Language models that run on this machine, behind the same kind of endpoint as a remote provider's.

The server is llama.cpp's, from the package xllamacpp. It runs in a process of its own, listens on the loopback
interface under a key drawn anew each time, and ends with this process. One runs per process and model, from the first
question on.
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

from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.redaction import register_secrets

EMBEDDED_PREFIX = "embedded/"
SLOTS = 8
"""Questions answered at the same time, by all servers of a model together."""
CONTEXT_TOKENS = 2048
"""Room of one question with its answer."""
STOP_TIMEOUT_S = 5.0
CPU_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


class EmbeddedServer:
    """An OpenAI-compatible server for one weights file; a context manager that starts and stops it.

    Attributes:
        base_url: address of the API, ending in `/v1`; empty until started.
        api_key: the only key that the server takes.
    """

    def __init__(
        self, weights_path: Path, name: str, *, slots: int = SLOTS, context_tokens: int = CONTEXT_TOKENS
    ) -> None:
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
        require_xllamacpp()
        # A session of its own: Ctrl-C is for this process, which lets the answers under way come in.
        script = str(Path(__file__).with_name("llama_server_process.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        answer = self._load_model(self._process)
        if "url" not in answer:
            self.__exit__(None, None, None)
            raise ModelSetupError(
                f"the embedded model {self.name} does not start: {answer['error']}.",
                f"`auditor doctor` checks its weights, {self.weights_path}.",
            )
        self.base_url = f"{answer['url']}/v1"
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, exc_traceback: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)  # Closes its standard input, at which it ends.
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
            process.wait()

    def _load_model(self, process: subprocess.Popen[str]) -> dict[str, str]:
        """Hand over the settings and hear where the server listens, or why it does not."""
        settings = {
            "path": str(self.weights_path),
            "name": self.name,
            "api_key": self.api_key,
            "slots": self.slots,
            "context_tokens": self.context_tokens,
            "threads": 1,  # Several wait for each other at every step, and starve where other programs run too.
        }
        assert process.stdin
        assert process.stdout
        try:
            print(json.dumps(settings), file=process.stdin, flush=True)
            answer: dict[str, str] = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            return {"error": "its process ended at once"}
        return answer


def require_xllamacpp() -> None:
    """Raise ModelSetupError where embedded models cannot run."""
    if not importlib.util.find_spec("xllamacpp"):
        raise ModelSetupError("embedded models need the package xllamacpp.", "Run `pip install 'auditor[embedded]'`.")


def available_cores() -> int:
    """Cores this process may use: in a container often fewer than the machine's."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = CPU_QUOTA_FILE.read_text().split()
        return max(1, min(allowed, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed


# --- one server a process and model -------------------------------------------------------------------------------

_servers: dict[tuple[str, int], EmbeddedServer] = {}
_servers_lock = threading.Lock()


def start_server_replicas(model: str) -> tuple[tuple[str, str], ...]:
    """Base URL and key of each of an embedded model's servers: one for each core, which share its slots."""
    return tuple(start_server(model, replica) for replica in range(min(available_cores(), SLOTS)))


def start_server(model: str, replica: int = 0) -> tuple[str, str]:
    """Base URL and key of an embedded model's server, started at the first call and again should it have died.

    Args:
        model: `embedded/smollm2-135m`, or the same without the prefix.
        replica: which of its servers.

    Raises:
        ModelSetupError: no such model, its weights are not on this machine, or xllamacpp is not installed.
    """
    name = model.removeprefix(EMBEDDED_PREFIX)
    with _servers_lock:
        if (name, replica) not in _servers or not _servers[name, replica].is_running:
            path = weights.locate_weights(name)
            if path.is_dir():
                raise ModelSetupError(
                    f"{name} is a sentence encoder, not a language model.", "See `auditor models list`."
                )
            slots = -(-SLOTS // min(available_cores(), SLOTS))
            _servers[name, replica] = EmbeddedServer(path, name, slots=slots).__enter__()
        server = _servers[name, replica]
    register_secrets(server.api_key)
    return server.base_url, server.api_key


def stop_all_servers() -> None:
    """Stop every server of this process; runs at exit by itself."""
    with _servers_lock:
        while _servers:
            _servers.popitem()[1].__exit__(None, None, None)


atexit.register(stop_all_servers)
