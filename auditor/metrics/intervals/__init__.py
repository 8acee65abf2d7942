"""Estimates with intervals and tests: over countries and topics, units, pairs of measurements, lost observations."""
