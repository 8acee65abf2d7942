"""Tests, mirroring the source tree; helpers are imported as `tests.x`."""
