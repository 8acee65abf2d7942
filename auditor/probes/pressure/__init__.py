"""The probe `pressure`."""
