"""The probe `logic`."""
