"""The probe `logic`: items of a set, compared in pairs."""
