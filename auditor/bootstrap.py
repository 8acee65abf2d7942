"""What must be said to heavy libraries before they are imported: look nothing up, send nothing, stay quiet."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from auditor.redaction import RedactingFilter

ENVIRONMENT_SETTINGS = {
    # litellm: prices from its own package instead of a look-up at import, and no `.env` file of anybody's.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    # litellm: its search for secrets by their shape takes cubic time, in the event loop; `auditor.redaction` does it.
    "LITELLM_DISABLE_REDACT_SECRETS": "true",
    # litellm: one HTTP handler of its own for OpenAI's protocol too, at a third of the CPU time of OpenAI's library.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "true",
    # langgraph: a checkpoint is data and may not name code to run; nothing is traced to a server.
    "LANGGRAPH_STRICT_MSGPACK": "true",
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    # Hugging Face libraries: no telemetry, no progress bars of their own, no warning about forks.
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "RAY_USAGE_STATS_ENABLED": "0",
    # AWS and Google: no credentials from an address of the machine's own network.
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_GCE_CHECK": "true",
    # MLflow: no telemetry of its own.
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

REDIRECTING_SUFFIXES = ("_API_BASE", "_BASE_URL")
REDIRECTING_PREFIXES = (
    "AWS_BEDROCK_RUNTIME_ENDPOINT",
    "AWS_STS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_CONTAINER_CREDENTIALS_",
    "ANTHROPIC_FEDERATION_",  # a token of the machine's own, for which litellm would ask past our rules
)
"""Beginnings of the names of those that end otherwise."""
_NOISY_LOGGERS = (
    "LiteLLM",
    "LiteLLM Router",
    "LiteLLM Proxy",
    "httpx",
    "httpcore",
    "openai",
    "instructor",
    "asyncio",
    "mlflow",
)


M_ARENA_MAX = -8
"""glibc's number of the option."""


def prepare_environment() -> None:
    """Set up this process; call it before litellm, langgraph or transformers are imported.

    The values stand over what the user's shell says: a look-up or a trace would carry prompts to third parties, and a
    base URL of the environment would carry the keys; servers are named in the config alone.
    """
    os.environ.update(ENVIRONMENT_SETTINGS)
    for name in redirecting_variables():
        del os.environ[name]
    _use_one_malloc_arena()


def _use_one_malloc_arena() -> None:
    """Have all threads take memory from one heap, where the C library is glibc.

    By default each thread has its own. Answers are made in one thread and freed in another, which leaves holes in all
    of them: 6 MB more for every 10,000 calls, and less than 1 MB so.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library has no such option
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def redirecting_variables() -> list[str]:
    """Variables by which litellm would send requests, and keys with them, to another server than the config names."""
    return sorted(
        name for name in os.environ if name.endswith(REDIRECTING_SUFFIXES) or name.startswith(REDIRECTING_PREFIXES)
    )


def silence_libraries() -> None:
    """Keep other libraries' loggers to errors without secrets: their debug output holds prompts. pydantic warns of odd
    answers."""
    warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.ERROR)
        if not any(isinstance(known, RedactingFilter) for known in logger.filters):
            logger.addFilter(RedactingFilter())


GC_THRESHOLDS = (10_000, 20, 100)
"""Python looks for garbage that holds itself after so many new objects, not after 700."""


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Have Python look for garbage that holds itself less often while requests are sent.

    They leave next to none behind, but with hundreds in flight it would look through tens of thousands of objects each
    second, and nothing else could be done for 40 ms.
    """
    usual = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
