"""The languages of prompts."""

from __future__ import annotations

ENGLISH, NATIVE = "en", "native"
LANGUAGES = ("ar", "de", "en", "es", "fr", "hi", "id", "ja", "pt", "ru", "sw", "tr", "zh")
"""Languages that have prompts, by ISO 639-1 code."""
