"""Set up heavy libraries before they are imported: no look-ups, no telemetry, no log output."""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import os
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from auditor.redaction import RedactingFilter

ENVIRONMENT_SETTINGS = {
    # litellm: prices from its own package instead of a look-up at import, and no `.env` file is loaded.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    # litellm: its search for secrets by their shape takes cubic time, in the event loop; `auditor.redaction` does it.
    "LITELLM_DISABLE_REDACT_SECRETS": "true",
    # litellm: one HTTP handler of its own for OpenAI's protocol too, at a third of the CPU time of OpenAI's library.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "true",
    # langgraph: nothing is traced to a server.
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
    # AWS and Google: no credentials from the metadata server of a cloud machine.
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
    "ANTHROPIC_FEDERATION_",  # litellm would fetch a token of the machine, past our rules
)
"""Prefixes of redirecting variables that have none of the suffixes above."""
METADATA_VARIABLES = {
    "AWS_CREDENTIALS": ("AWS_EC2_METADATA_DISABLED", "AWS_CONTAINER_CREDENTIALS_"),
    "GOOGLE_CREDENTIALS": ("NO_GCE_CHECK",),
}
"""Beginnings of the variables above that keep a cloud's library from its metadata service, by the credentials' name in
the trust file."""
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
"""Number of glibc's `mallopt` option for the number of heaps."""


def prepare_environment() -> None:
    """Set up this process; call it before litellm, langgraph or transformers are imported.

    The values override those of the user's shell: a look-up or a trace would send prompts to third parties, and a base
    URL from the environment would send keys to that server. Only the config names servers. Variables of credentials
    that `allow_machine_credentials` allowed stay as they are.
    """
    os.environ.update({name: value for name, value in ENVIRONMENT_SETTINGS.items() if not _is_allowed(name)})
    for name in redirecting_variables():
        if not _is_allowed(name):
            del os.environ[name]
    _use_one_malloc_arena()


def allow_machine_credentials(names: Iterable[str]) -> None:
    """Let clouds' libraries fetch this machine's own credentials from its metadata service, until the call ends.

    Args:
        names: of the credentials that the user trusts the config with, as in the trust file; others are ignored.
    """
    _allowed_credentials.update(name for name in names if name in METADATA_VARIABLES)
    for name in filter(_is_allowed, ENVIRONMENT_SETTINGS):
        os.environ.pop(name, None)
    os.environ.update({name: value for name, value in _caller_environment.items() if _is_allowed(name)})


def _is_allowed(variable: str) -> bool:
    """Whether a variable is left as the user has it, since it is about credentials that are allowed."""
    return any(variable.startswith(METADATA_VARIABLES[name]) for name in _allowed_credentials)


_allowed_credentials: set[str] = set()
_environment_lock = threading.Lock()
_environment_users = 0
_caller_environment: dict[str, str] = {}


@contextmanager
def prepared_environment() -> Iterator[None]:
    """Set up this process for a call from a Python program, and leave its environment variables as they were.

    They are restored when the last of several calls ends: meanwhile, they would redirect requests of the others.
    """
    global _environment_users
    with _environment_lock:
        if _environment_users == 0:
            _caller_environment.update(os.environ)
        _environment_users += 1
        prepare_environment()
    try:
        yield
    finally:
        with _environment_lock:
            _environment_users -= 1
            if _environment_users == 0:
                for name in os.environ.keys() - _caller_environment.keys():
                    del os.environ[name]
                os.environ.update(_caller_environment)
                _caller_environment.clear()
                _allowed_credentials.clear()


def _use_one_malloc_arena() -> None:
    """Let all threads allocate from one heap, if the C library is glibc.

    By default each thread has its own. Answers are allocated in one thread and freed in another, which fragments all
    heaps: 6 MB more for every 10,000 calls, against less than 1 MB with one heap.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library has no such option
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def redirecting_variables() -> list[str]:
    """Environment variables that make litellm send requests, and keys, to another server than the config names."""
    return sorted(
        name for name in os.environ if name.endswith(REDIRECTING_SUFFIXES) or name.startswith(REDIRECTING_PREFIXES)
    )


def silence_libraries() -> None:
    """Let other libraries log only errors, with secrets redacted, and hide pydantic's warnings about unusual answers.

    The libraries' debug output holds prompts.
    """
    warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        # instructor logs each answer that it cannot read as an error.
        logger.setLevel(logging.CRITICAL if name == "instructor" else logging.ERROR)
        if not any(isinstance(log_filter, RedactingFilter) for log_filter in logger.filters):
            logger.addFilter(RedactingFilter())


GC_THRESHOLDS = (10_000, 20, 100)
"""Thresholds of the cyclic garbage collector while requests are sent; Python's default for the first is 700."""


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Run the cyclic garbage collector less often, as while requests are sent.

    Requests leave almost no cycles behind. With hundreds of requests in flight, a collection would traverse tens of
    thousands of objects each second, and block the event loop for 40 ms.
    """
    previous_thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*previous_thresholds)


@functools.cache
def freeze_imported_modules() -> None:
    """Exclude all present objects from garbage collection, once per process: searching the modules takes 0.1 s."""
    gc.freeze()
