"""Server process of an embedded model: run as a script; imports nothing from this package.

The native server needs a process of its own: stopping it while it answers hangs forever, and exiting its process while
it answers can crash the program.

The process reads the settings from standard input, as one line of JSON. It writes one line of JSON to standard output,
`{"url": ...}` or `{"error": ...}`, and ends when standard input closes, which also happens when its parent dies.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def start_llama_server(settings: dict[str, Any]) -> Any:
    """Load the model and start to listen; returns the server.

    Args:
        settings: `path` of the weights, `name`, `api_key`, `slots`, `context_tokens` per slot and `threads`.
    """
    import xllamacpp as library

    params = library.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    # Port 0: any free port.
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [settings["api_key"]]
    params.ui = params.endpoint_slots = False
    params.verbosity = 0
    params.n_parallel, params.n_ctx = settings["slots"], settings["slots"] * settings["context_tokens"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    # With these settings an answer depends only on its request and seed, not on parallel or earlier requests: its
    # log-probabilities are bitwise equal to those of a request sent alone.
    params.flash_attn_type = library.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_prompt = params.cache_idle_slots = False
    params.cache_ram_mib = params.n_ctx_checkpoints = 0
    return library.Server(params)


def main() -> None:
    """Start the server, report its address to the parent, and exit when the parent closes standard input."""
    pipe_to_parent = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null_device = os.open(os.devnull, os.O_WRONLY)
    # 1 and 2 are standard output and error: what the library prints is discarded.
    os.dup2(null_device, 1)
    os.dup2(null_device, 2)
    try:
        server = start_llama_server(json.loads(sys.stdin.readline()))
        startup_message = {"url": server.listening_address}
    except (ImportError, RuntimeError, ValueError, OSError) as error:
        startup_message = {"error": str(error).strip(" .") or type(error).__name__}
    print(json.dumps(startup_message), file=pipe_to_parent, flush=True)
    if "url" in startup_message:
        sys.stdin.read()
    # At once and without clean-up: stopping the server while it answers would hang.
    os._exit(0)


if __name__ == "__main__":
    main()
