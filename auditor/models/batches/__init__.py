"""Providers' batch APIs: the same requests at a lower price, answered within a day.

litellm does not translate calls into lines of a batch and cannot submit Anthropic's batches. For OpenAI's it uses
separate clients, which take keys from the environment. So only its translation of single calls is used: each call is
written to the batch as it would be sent, and each result is parsed as its response would be. Requests about files and
batches use the same guarded transport as calls.
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
"""By litellm's provider; a user's own server may lack batches, which `BatchProvider.has_batches` shows."""


def find_batch_provider(section: ModelSection) -> BatchProvider | None:
    """The batch API of a model's provider, which is the part of its name before the slash; None if unsupported."""
    return _PROVIDERS.get(section.model.split("/", 1)[0])
