"""Providers' batch APIs: the same requests at a lower price, answered within a day.

litellm does not translate calls into lines of a batch and cannot submit Anthropic's batches. For OpenAI's it uses
separate clients, which take keys from the environment. So only its translation of single calls is used: each call is
written to the batch as it would be sent, and each result is parsed as its response would be. Requests about files and
batches use the same guarded transport as calls.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any, cast

from auditor.config import BatchSection, ModelSection
from auditor.config.providers import BatchApi

if TYPE_CHECKING:
    from auditor.models.batches.provider import BatchProvider


def find_batch_provider(section: ModelSection, settings: BatchSection) -> BatchProvider | None:
    """The batch API of a model's provider; a user's own server may lack it, which `BatchProvider.has_batches` shows.

    None if it is not supported, or if it needs a bucket and `batch.bucket` names none.
    """
    api = _batch_api(section)
    if api is None or (api.needs_bucket and settings.bucket is None):
        return None
    provider: Any = pkgutil.resolve_name(f"{__name__}.{api.place}")  # loads httpx (0.1 s)
    return cast("BatchProvider", provider(settings.bucket) if api.needs_bucket else provider)


def needs_bucket(section: ModelSection) -> bool:
    """Whether a model's batches are files in a bucket of the user's."""
    api = _batch_api(section)
    return api is not None and api.needs_bucket


def _batch_api(section: ModelSection) -> BatchApi | None:
    """What the table of providers says of a model's batches; None if it has none."""
    api = section.provider.batches
    return api if api is not None and section.unprefixed_model.startswith(api.models) else None
