"""Purposes of calls: a closed list, and one for each probe of another package."""

from __future__ import annotations

import pickle

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
