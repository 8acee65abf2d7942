"""Language models that run inside this process, behind the same kind of endpoint as a remote provider's.

The server is llama.cpp's, from the package xllamacpp; it listens on the loopback interface under a key drawn anew in
each process. One server runs per process and model, started at the first question.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from auditor.errors import ModelSetupError
from auditor.models import weights

PREFIX = "embedded/"
SLOTS = 8
"""Questions answered at the same time."""
CONTEXT_TOKENS = 2048
"""Room of one question with its answer."""


class EmbeddedServer:
    """An OpenAI-compatible server for one weights file; a context manager that starts and stops it.

    Attributes:
        base_url: address of the API, ending in `/v1`; empty while not running.
        api_key: the only key that the server takes.
    """

    def __init__(self, path: Path, name: str, *, slots: int = SLOTS, context_tokens: int = CONTEXT_TOKENS) -> None:
        self.path = path
        self.name = name
        self.slots = slots
        self.context_tokens = context_tokens
        self.api_key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._server: Any = None

    def __enter__(self) -> Self:
        library = _library()
        try:
            self._server = library.Server(self._params(library))
        except (RuntimeError, ValueError) as error:
            raise ModelSetupError(f"the embedded model {self.name} does not start: {error}.") from None
        self.base_url = f"{self._server.listening_address}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server = None  # The native server stops when it is let go of.
        self.base_url = ""

    def _params(self, library: Any) -> Any:
        params = library.CommonParams()
        params.model.path = str(self.path)
        params.model_alias = {self.name}
        params.hostnames, params.port = ["127.0.0.1"], 0
        params.api_keys = [self.api_key]
        params.ui = params.endpoint_slots = False
        params.verbosity = 0
        params.n_parallel, params.n_ctx = self.slots, self.slots * self.context_tokens
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _cores()
        # An answer must depend on its own question and seed only, not on what else is asked at the time or was before:
        # with these, log-probabilities are bitwise the same alone and in company.
        params.flash_attn_type = library.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_prompt = params.cache_idle_slots = False
        params.cache_ram_mib = params.n_ctx_checkpoints = 0
        return params


def _library() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelSetupError(
            f"embedded models need the package xllamacpp ({error}).", "Run `pip install 'auditor[embedded]'`."
        ) from None
    return xllamacpp


def _cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- one server a process and model -------------------------------------------------------------------------------

_running: dict[str, EmbeddedServer] = {}
_starting = threading.Lock()


def endpoint(model: str) -> tuple[str, str]:
    """Base URL and key of an embedded model's server in this process, started at the first call.

    Args:
        model: `embedded/smollm2-135m`, or the same without the prefix.

    Raises:
        ModelSetupError: no such model, its weights are not on this machine, or xllamacpp is not installed.
    """
    name = model.removeprefix(PREFIX)
    with _starting:
        if name not in _running:
            path = weights.locate(name)
            if path.is_dir():
                raise ModelSetupError(f"{name} is a sentence encoder, not a language model.")
            _running[name] = EmbeddedServer(path, name).__enter__()
        server = _running[name]
    return server.base_url, server.api_key


def stop_all() -> None:
    """Stop every server of this process; runs at exit by itself."""
    with _starting:
        while _running:
            _running.popitem()[1].__exit__(None, None, None)


atexit.register(stop_all)
