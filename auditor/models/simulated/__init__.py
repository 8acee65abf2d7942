"""Simulated models, `simulated/NAME`: deterministic answers by a persona, for worked examples whose truth is known."""
