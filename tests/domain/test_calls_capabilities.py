from __future__ import annotations

from auditor.domain import Capability


def test_ids_of_capabilities_without_streaming_are_those_of_earlier_versions() -> None:
    assert Capability().id == "fd923c91aa40"
    assert Capability(stream=True).id != Capability().id
