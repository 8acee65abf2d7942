"""Prompt templates and other texts for models, as files; one folder for each language.

A template starts with front matter (id, version, purpose, fields), followed by the sections `[system]` and `[user]`.
Placeholders are `{name}`; they are filled in one pass, so braces inside a value are never read as a placeholder.
"""

if __name__ != "auditor.prompts":
    raise ImportError(f"import auditor.prompts, not {__name__}")

from auditor.prompts.loader import Prompt, fill_placeholders, load_prompt, read_prompt

__all__ = ["Prompt", "fill_placeholders", "load_prompt", "read_prompt"]
