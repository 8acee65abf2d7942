"""Tests, mirroring the source tree; `tests.support` holds what they share."""
