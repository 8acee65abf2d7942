"""Providers' batch APIs: the same requests at a lower price, answered within a day.

litellm does not translate calls into lines of a batch and cannot submit Anthropic's batches. For OpenAI's it uses
separate clients, which take keys from the environment. So only its translation of single calls is used: each call is
written to the batch as it would be sent, and each result is parsed as its response would be. Requests about files and
batches use the same guarded transport as calls.
"""

from __future__ import annotations

import functools
import pkgutil
from typing import TYPE_CHECKING, Any, cast

from auditor.config import BatchSection, ModelSection
from auditor.config.signed_providers import extract_provider

if TYPE_CHECKING:
    from auditor.models.batches.provider import BatchProvider

_VERTEX_AI = "auditor.models.batches.vertex_ai:VertexBatches"
_OPENAI = "auditor.models.batches.openai:OPENAI"
_PROVIDERS = {
    "openai": _OPENAI,
    "groq": _OPENAI,
    "hosted_vllm": _OPENAI,
    "anthropic": "auditor.models.batches.anthropic:ANTHROPIC",
    "gemini": "auditor.models.batches.gemini:GEMINI",
}
"""Where the batch API of each of litellm's providers is; its module loads httpx (0.1 s).

A user's own server may lack batches, which `BatchProvider.has_batches` shows."""


def find_batch_provider(section: ModelSection, settings: BatchSection) -> BatchProvider | None:
    """The batch API of a model's provider, which is the part of its name before the slash.

    None if it is not supported, or if it needs a bucket and `batch.bucket` names none.
    """
    if needs_bucket(section):
        return None if settings.bucket is None else _load_provider(_VERTEX_AI)(settings.bucket)
    place = _PROVIDERS.get(extract_provider(section.model))
    return None if place is None else cast("BatchProvider", _load_provider(place))


def needs_bucket(section: ModelSection) -> bool:
    """Whether a model's batches are files in a bucket of the user's: those of Gemini on Vertex AI."""
    return section.model.startswith("vertex_ai/gemini")


@functools.cache
def _load_provider(place: str) -> Any:
    """Import the batch API at "module:attribute"."""
    return pkgutil.resolve_name(place)
