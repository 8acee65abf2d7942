"""Purposes of calls: a closed list, and one for each probe of another package."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from auditor.domain import Purpose


def test_another_packages_probe_has_a_purpose_of_its_own_that_survives_pickling() -> None:
    purpose = Purpose.of_probe("confidence")
    assert purpose.value == "probe.confidence"
    assert pickle.loads(pickle.dumps(purpose)) is purpose is Purpose("probe.confidence")
    assert purpose not in list(Purpose)


def test_any_other_text_is_no_purpose() -> None:
    with pytest.raises(ValueError, match="confidence"):
        Purpose("confidence")


def test_a_declared_purpose_is_listed_and_survives_pickling_into_a_process_without_its_probe() -> None:
    purpose = Purpose.declare("moral")
    assert Purpose("moral") is purpose
    assert purpose in list(Purpose)
    assert pickle.loads(pickle.dumps(purpose)) is purpose
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).priority)"
    result = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(purpose), capture_output=True, check=True)
    assert result.stdout.strip() == b"2"
