"""The probe `semantic`."""
