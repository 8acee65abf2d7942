"""Processes of verify start wherever the folder of temporary files is."""

from __future__ import annotations

import tempfile
from multiprocessing import get_all_start_methods

import pytest

from auditor.run import derivation_workers


@pytest.mark.skipif("forkserver" not in get_all_start_methods(), reason="the system has no server of processes")
def test_a_socket_with_too_long_a_path_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert derivation_workers._select_start_method() == "forkserver"
    monkeypatch.setattr(tempfile, "tempdir", f"/tmp/{'x' * 80}")
    assert derivation_workers._select_start_method() == "spawn"
