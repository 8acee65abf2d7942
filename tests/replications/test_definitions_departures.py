"""Departures of several audits, in one line each."""

from __future__ import annotations

from auditor.replications.definitions import describe_departure, format_setting, merge_departures
from auditor.reports.data.replication import Departure


def departure(audit: str, measured: str, published: str = "5") -> Departure:
    entry = Departure(
        id="samples", description="", subject="samples", measured=measured, published=published, is_wording=False,
        size=None, size_note="",
    )  # fmt: skip
    return describe_departure(entry, audit)


def test_equal_departures_are_one_with_all_audits() -> None:
    [merged] = merge_departures([departure("WVS", "2"), departure("PEW", "2")])
    assert (merged.description, merged.audits) == ("samples: 2 (published: 5)", ["WVS", "PEW"])


def test_different_values_name_their_audits() -> None:
    [merged] = merge_departures([departure("WVS", "2"), departure("PEW", "3"), departure("EVS", "2")])
    assert merged.description == "samples: WVS, EVS 2; PEW 3 (published: 5)"
    assert merged.audits == ["WVS", "PEW", "EVS"]


def test_different_published_values_are_named() -> None:
    [merged] = merge_departures([departure("WVS", "16", "1 045"), departure("PEW", "6", "312")])
    assert merged.description == "samples: WVS 16 (published: 1 045); PEW 6 (published: 312)"


def test_values_are_formatted() -> None:
    assert [format_setting(value) for value in (True, 1045, 0.3, [0.4, 1.0], "auto")] == [
        "True", "1\u202f045", "0.3", "0.4, 1", "auto",
    ]  # fmt: skip
