"""Where the weights of sentence encoders are: on this machine, or on the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.models.catalog import KNOWN_WEIGHTS

HUB_CONNECT_TIMEOUT_S = 3.0
DEFAULT_ORGANISATION = "sentence-transformers"
EncoderUse = Literal["encoder", "model of BERTScore"]
PICKLED_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
"""Ends of the names of files with pickled weights."""
TRAINING_FILES = frozenset({"training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt", "rng_state.pth"})
"""Files of a training that no model is loaded from."""
HINTS: Mapping[EncoderUse, str] = {
    "encoder": "Use a sentence-transformers model or a folder that contains one; the default is all-MiniLM-L6-v2.",
    "model of BERTScore": "Set bertscore_model to a folder with bert-base-uncased, or to its name.",
}
"""How to fix an encoder that cannot be used."""


def locate_encoder(model: str, use: EncoderUse = "encoder") -> tuple[str, bool]:
    """Return the folder or hub name to load a model from, and whether all of it is on this machine.

    Raises:
        ModelSetupError: there is no such folder, or the model must be downloaded and the hub cannot be reached.
    """
    if model in KNOWN_WEIGHTS:
        path = weights.locate_weights(model)
        if not path.is_dir():
            raise ModelSetupError(f"'{model}' is a language model, not a sentence encoder.", HINTS[use])
        return str(path), True
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path), True
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelSetupError(f"the {use} '{model}' is a path to a folder that does not exist.", HINTS[use])
    if _is_in_hub_cache(model, use):
        return model, True
    _require_hub_connection(model, use)
    return model, False


def require_safe_weights(source: str | Path, description: str) -> None:
    """Refuse a folder whose weights are pickled, which would let the file run code.

    Args:
        source: a folder; the name of a model on the hub is not checked, and its pickled files are never loaded.
        description: names the model in the error, such as "the encoder 'my-model'".

    Raises:
        ModelSetupError: a folder of the model has weights, and none of them as safetensors or GGUF.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    for module_folder in [folder, *_module_folders(folder)]:
        names = sorted(path.name for path in module_folder.glob("*") if path.is_file())
        pickled = [name for name in names if name.endswith(PICKLED_SUFFIXES) and name not in TRAINING_FILES]
        if pickled and not any(name.endswith((".safetensors", ".gguf")) for name in names):
            raise pickled_weights_error(description, str((module_folder / pickled[0]).relative_to(folder)))


def pickled_weights_error(description: str, file: str) -> ModelSetupError:
    """The error for weights that are in no other form than a pickled file."""
    return ModelSetupError(
        f"{description} has its weights in a pickled file ({file}), which could run code when it is loaded.",
        "Save the model again in the format safetensors, as save_pretrained does by default, or use another one.",
    )


def _module_folders(folder: Path) -> list[Path]:
    """Folders of the modules of a sentence encoder; none if it lists none."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        return [folder / str(module["path"]) for module in modules if module.get("path")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _is_in_hub_cache(model: str, use: EncoderUse) -> bool:
    """Whether the hub's cache on this machine has the model; ModelSetupError if the hub allows no such name."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    repository = model if "/" in model else f"{DEFAULT_ORGANISATION}/{model}"
    try:
        # The path of the cached file as a string; another type if it is not in the cache.
        return isinstance(try_to_load_from_cache(repository, "config.json"), str)
    except HFValidationError:
        raise ModelSetupError(f"the {use} '{model}' is not a valid model name.", HINTS[use]) from None


def _require_hub_connection(model: str, use: EncoderUse) -> None:
    """Raise ModelSetupError if the hub cannot be reached.

    One short request: the hub's own client would retry for more than a minute.
    """
    import httpx
    from huggingface_hub import constants

    how_to_fix = f"Download it on a machine with a network. {HINTS[use]}"
    if constants.HF_HUB_OFFLINE:
        raise ModelSetupError(f"the {use} '{model}' is not on this machine, and HF_HUB_OFFLINE is set.", how_to_fix)
    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_CONNECT_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise ModelSetupError(
            f"the {use} '{model}' is not on this machine, and the Hugging Face Hub cannot be reached: {error}.",
            how_to_fix,
        ) from None
