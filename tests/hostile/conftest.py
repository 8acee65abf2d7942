"""Fixture with the API key of all hostile cases, short retry delays, and a folder in memory for their databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.keys import KEY
from tests.support.audit_configs import KEY_VARIABLE


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A temporary folder (in memory if possible), with the key in the environment and short retry delays."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        patch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 0.01)
        yield Path(folder)
