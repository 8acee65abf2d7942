"""Words, not code: what models are told, as files; one folder a language.

A file begins with front matter (id, version, purpose, fields) and holds the sections `[system]` and `[user]`.
Placeholders are `{name}`; they are filled in one pass, so that what a value contains is never read as a placeholder.
"""

if __name__ != "auditor.prompts":
    raise ImportError(f"import auditor.prompts, not {__name__}")

from auditor.prompts.loader import Prompt, fill_placeholders, load_prompt, read_prompt

__all__ = ["Prompt", "fill_placeholders", "load_prompt", "read_prompt"]
