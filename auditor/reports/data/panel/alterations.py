"""Names of the alterations of traces that judges give further verdicts on."""

NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION, PADDED_ALTERATION = "neutral", "self", "none", "padded"
NOT_FAULTS = (NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION, PADDED_ALTERATION)
"""Alterations that are no injected fault."""
