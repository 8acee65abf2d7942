"""Where a sentence encoder is loaded from: a known model, a folder, the cache of the Hugging Face Hub, or the hub."""

from __future__ import annotations

from pathlib import Path

from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.models.catalog import KNOWN_WEIGHTS

HUB_CONNECT_TIMEOUT_S = 3.0
DEFAULT_ORGANISATION = "sentence-transformers"
ENCODER_HINT = "Use a sentence-transformers model or a folder that contains one; the default is all-MiniLM-L6-v2."


def resolve_encoder_source(model: str) -> tuple[str, bool]:
    """Return the folder or hub name to load a model from, and whether all of it is on this machine.

    Raises:
        ModelSetupError: there is no such folder, or the model must be downloaded and the hub cannot be reached.
    """
    if model in KNOWN_WEIGHTS:
        path = weights.locate_weights(model)
        if not path.is_dir():
            raise ModelSetupError(f"'{model}' is a language model, not a sentence encoder.", ENCODER_HINT)
        return str(path), True
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path), True
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelSetupError(f"the encoder '{model}' is a path to a folder that does not exist.", ENCODER_HINT)
    if _is_in_hub_cache(model):
        return model, True
    _require_hub_connection(model)
    return model, False


def _is_in_hub_cache(model: str) -> bool:
    """Whether the hub's cache on this machine has the model; ModelSetupError if the hub allows no such name."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    repository = model if "/" in model else f"{DEFAULT_ORGANISATION}/{model}"
    try:
        # The path of the cached file as a string; another type if it is not in the cache.
        return isinstance(try_to_load_from_cache(repository, "config.json"), str)
    except HFValidationError:
        raise ModelSetupError(f"the encoder '{model}' is not a valid model name.", ENCODER_HINT) from None


def _require_hub_connection(model: str) -> None:
    """Raise ModelSetupError if the hub cannot be reached.

    One short request: the hub's own client would retry for more than a minute.
    """
    import httpx
    from huggingface_hub import constants

    how_to_fix = f"Download it on a machine with a network. {ENCODER_HINT}"
    if constants.HF_HUB_OFFLINE:
        raise ModelSetupError(f"the encoder '{model}' is not on this machine, and HF_HUB_OFFLINE is set.", how_to_fix)
    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_CONNECT_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise ModelSetupError(
            f"the encoder '{model}' is not on this machine, and the Hugging Face Hub cannot be reached: {error}.",
            how_to_fix,
        ) from None
