"""The probe `reasoning`."""
