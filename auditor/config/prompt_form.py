"""The form of a probe's prompts."""

from __future__ import annotations

from typing import Literal

PromptForm = Literal["standard", "paper"]
"""`standard`, this program's own prompts; `paper`, prompts in the form that a paper describes."""
