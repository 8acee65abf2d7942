"""An audit written out for other programs."""
