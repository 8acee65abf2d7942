"""The process behind an embedded model: runs as a script of its own and imports nothing of this package.

A process apart, since the native server can neither be stopped nor outlived while it answers: stopping it then waits
for ever, and leaving it to the exit of its process can end in a crash of the whole program.

It reads one line of JSON from standard input, the settings; writes one line of JSON to standard output, `{"url": ...}`
or `{"error": ...}`; and ends when standard input closes, as it does when its parent ends, however that comes about.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def start_llama_server(settings: dict[str, Any]) -> Any:
    """Load the model and listen; see `EmbeddedServer` for the settings."""
    import xllamacpp as library

    params = library.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [settings["api_key"]]
    params.ui = params.endpoint_slots = False
    params.verbosity = 0
    params.n_parallel, params.n_ctx = settings["slots"], settings["slots"] * settings["context_tokens"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    # An answer depends on its own question and seed only, not on what else is asked at the time or was asked before:
    # with these, log-probabilities are bitwise the same alone and in company.
    params.flash_attn_type = library.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_prompt = params.cache_idle_slots = False
    params.cache_ram_mib = params.n_ctx_checkpoints = 0
    return library.Server(params)


def main() -> None:
    """Start, say where, and stay until the parent lets go."""
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        server = start_llama_server(json.loads(sys.stdin.readline()))
        answer = {"url": server.listening_address}
    except (ImportError, RuntimeError, ValueError, OSError) as error:
        answer = {"error": str(error).strip(" .") or type(error).__name__}
    print(json.dumps(answer), file=reply, flush=True)
    if "url" in answer:
        sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
