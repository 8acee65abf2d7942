"""Test of the probe without an audit: what is read from answers."""

from auditor_probe_confidence import ConfidenceProbe, StatedConfidence

import auditor.probes as ap


def test_the_stated_confidence_is_read_as_a_share() -> None:
    answer = ap.ProbeAnswer(
        "model", ("Germany", "divorce"), 0, 0, "How sure are you?", "", StatedConfidence(confidence=70)
    )
    assert ConfidenceProbe().read(answer) == ap.Reading(0.7)
