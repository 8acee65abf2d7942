"""How long tests wait at most, so that no outcome depends on how busy the machine is."""

PATIENCE_S = 600.0
"""Upper bound of every wait, in seconds; what is waited for comes sooner. `make bench` measures speed."""
