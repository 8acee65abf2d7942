"""Providers' batch interfaces: the same requests at a lower price, answered within a day.

litellm does not translate calls into lines of a batch, cannot submit Anthropic's batches, and has clients of their own
behind OpenAI's, which take keys out of the environment. So only its translation of a single call is used: each is
written as it would go out, and what comes back is read as its answer would be. Files and batches go through the door
that calls go through.
"""

from __future__ import annotations

from auditor.config import ModelSection
from auditor.models.batches.anthropic import ANTHROPIC
from auditor.models.batches.openai import OPENAI
from auditor.models.batches.provider import BatchProvider

_PROVIDERS: dict[str, BatchProvider] = {
    "openai": OPENAI,
    "groq": OPENAI,
    "hosted_vllm": OPENAI,
    "anthropic": ANTHROPIC,
}
"""By provider; a server of one's own may speak the protocol without having batches, which asking it tells."""


def find_batch_provider(section: ModelSection) -> BatchProvider | None:
    """How batches are put to a model's provider; None where it has none that is known."""
    return _PROVIDERS.get(section.model.split("/", 1)[0])
