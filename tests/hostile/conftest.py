"""Fixture with the API key of all hostile cases, and a folder for their databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.keys import KEY
from tests.support.audit_configs import KEY_VARIABLE


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A temporary folder, with the key of the hostile cases in the environment."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv(KEY_VARIABLE, KEY)
        yield Path(folder)
