"""The probe `distribution`."""
